//! A time stamp over a signature: asked for, verified, and only then believed.

use std::cell::RefCell;

use attest_receipt::time::Time;
use attest_timestamp::{Nonce, Token};
use attest_verify::timestamp::{encoded, is_from_the_future, pinned};
use attest_verify::trust::Trust;
use clap::Args;
use cli_shell::{CliError, Ui, clock};
use timestamp_http::{TOTAL_TIME, TsaUrl, fetch};

use crate::prerequisite::Rule;

/// Whether a signature is to be stamped, and by whom.
#[derive(Debug, Clone, Args)]
pub(crate) struct Wish {
    /// Have the signature timestamped; needs `--tsa`
    #[arg(long)]
    timestamp: bool,
    /// The RFC 3161 timestamp authority to ask: https, or http on this machine
    #[arg(long, value_name = "URL")]
    tsa: Option<TsaUrl>,
}

impl Wish {
    /// The rules that hold wherever a stamp can be wished for.
    pub(crate) fn rules(&self, signs: bool) -> [Rule; 3] {
        [
            Rule {
                option: "--timestamp",
                given: self.timestamp,
                requires: "--sign",
                met: signs,
                why: "there is no signature to timestamp",
            },
            Rule {
                option: "--tsa",
                given: self.tsa.is_some(),
                requires: "--timestamp",
                met: self.timestamp,
                why: "an authority was named but no timestamp was requested",
            },
            Rule {
                option: "--timestamp",
                given: self.timestamp,
                requires: "--tsa <URL>",
                met: self.tsa.is_some(),
                why: "no authority is asked that was not named",
            },
        ]
    }

    /// Returns whom to ask, if anybody.
    pub(crate) fn authority(&self) -> Option<&TsaUrl> {
        self.tsa.as_ref().filter(|_| self.timestamp)
    }
}

/// Asks one authority, and judges what it says by a trust store.
pub(crate) struct Stamping<'a> {
    authority: &'a TsaUrl,
    ui: &'a Ui,
    trust: Box<dyn Fn() -> Trust + 'a>,
    failure: RefCell<Option<CliError>>,
}

impl<'a> Stamping<'a> {
    /// The trust store is read when there is a token to judge.
    pub(crate) fn new(authority: &'a TsaUrl, ui: &'a Ui, trust: impl Fn() -> Trust + 'a) -> Self {
        Self {
            authority,
            ui,
            trust: Box::new(trust),
            failure: RefCell::new(None),
        }
    }

    /// Fetches a token over a signature, as receipts carry it.
    pub(crate) fn stamp(&self, signature: &[u8; 64]) -> Result<String, CliError> {
        self.token(signature)
            .map_err(|error| error.because("timestamping failed"))
    }

    /// Does the same for those who go on without; [`Self::failure`] says why they have to.
    pub(crate) fn try_stamp(&self, signature: &[u8; 64]) -> Option<String> {
        match self.stamp(signature) {
            Ok(token) => Some(token),
            Err(error) => {
                self.failure.replace(Some(error));
                None
            }
        }
    }

    /// Returns why there is no token, once.
    pub(crate) fn failure(&self) -> Option<CliError> {
        self.failure.take()
    }

    fn token(&self, signature: &[u8; 64]) -> Result<String, CliError> {
        let nonce = nonce()?;
        let token = apart(|| fetch(self.authority, signature, &nonce, TOTAL_TIME))?;
        let token = token.map_err(CliError::operation)?;
        self.judge(&token, signature, &nonce).map_err(|error| {
            error.because(format!(
                "what the timestamp authority at {} sent is refused",
                self.authority
            ))
        })?;
        Ok(encoded(&token))
    }

    /// Requires all that `verify` would, so that no receipt carries what nobody will take.
    fn judge(&self, der: &[u8], signature: &[u8; 64], nonce: &Nonce) -> Result<(), CliError> {
        let token = Token::from_der(der).map_err(CliError::operation)?;
        let examined = token.examine(signature, Some(nonce));
        let examined = examined.map_err(CliError::operation)?;
        let (time, now) = (Time::from(examined.time()), Time::from(clock::now()));
        if is_from_the_future(time, now) {
            return Err(CliError::operation(format!(
                "its time {time} is more than a day ahead of this machine's clock ({now})"
            )));
        }
        let trust = (self.trust)();
        if let Trust::Unreadable(error) = &trust {
            return Err(CliError::operation(format!(
                "cannot load trust store: {error}"
            )));
        }
        match pinned(&trust) {
            Err(_) => {
                self.ui.warn(
                    "no timestamp authority is pinned, so the token's own word is all there is and `attest verify` will refuse it",
                );
                self.ui
                    .hint("`attest keys trust-tsa CERTIFICATE --name NAME` pins an authority");
            }
            Ok((authorities, _)) => {
                let stamp = examined.issued_by(&authorities);
                stamp.map_err(|error| {
                    CliError::operation(error).hint(
                        "`attest keys trust-tsa CERTIFICATE --name NAME` pins another authority",
                    )
                })?;
            }
        }
        self.ui.status(format_args!(
            "signature timestamped {time} by {}",
            examined.signer()
        ));
        Ok(())
    }
}

impl std::fmt::Debug for Stamping<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stamping")
            .field("authority", self.authority)
            .finish_non_exhaustive()
    }
}

/// Calls something on a thread of its own: it starts a runtime, and the caller may be inside of one.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, CliError> {
    let failed = |why: &str| CliError::operation(why.to_owned());
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work);
        let thread = thread.map_err(|error| CliError::operation(error).because("no thread"))?;
        thread
            .join()
            .map_err(|_| failed("the request ended without an answer"))
    })
}

fn nonce() -> Result<Nonce, CliError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|error| CliError::operation(error).because("no random numbers"))?;
    Ok(Nonce::new(random))
}
