//! The check of time-stamp tokens against the authorities that a trust store pins.

use attest_receipt::receipt::Receipt;
use attest_receipt::time::Time;
use attest_timestamp::{Authority, Token, TokenError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bounded::text::visible;

use crate::judge::is_ahead;
use crate::outcome::{Check, CheckName};
use crate::trust::{AUTHORITIES, Trust, certificates};

/// What an authority said about a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// When it saw the signature.
    pub time: Time,
    /// Its name in its certificate.
    pub authority: String,
}

/// Verifies time-stamp tokens against the pinned authorities of a trust store.
pub trait TokenJudge {
    /// Verifies the token of a receipt over the 64 bytes of its signature.
    ///
    /// # Errors
    /// Why it does not hold, for the check's detail.
    fn judge(&self, token: &str, signature: &[u8; 64], trust: &Trust) -> Result<Stamp, String>;
}

/// Verifies tokens against the certificates in the trust store's folder `tsa/`.
#[derive(Debug, Clone, Copy, Default)]
pub struct PinnedAuthorities;

impl TokenJudge for PinnedAuthorities {
    fn judge(&self, token: &str, signature: &[u8; 64], trust: &Trust) -> Result<Stamp, String> {
        let token = decoded(token)?;
        let (authorities, unusable) = pinned(trust)?;
        let token = Token::from_der(&token).map_err(|error| error.to_string())?;
        let examined = token.examine(signature, None);
        let stamp = examined.and_then(|examined| examined.issued_by(&authorities));
        stamp
            .map(|stamp| Stamp {
                time: Time::from(stamp.time),
                authority: stamp.signer,
            })
            .map_err(|error| match unusable.first() {
                Some(file) if matches!(error, TokenError::NotPinned { .. }) => {
                    format!("{error}; of the pinned certificates {file}")
                }
                _ => error.to_string(),
            })
    }
}

/// Writes a token as receipts carry it.
#[must_use]
pub fn encoded(token: &[u8]) -> String {
    STANDARD.encode(token)
}

/// Returns the bytes of a receipt's signature, which a token covers.
#[must_use]
pub fn signature_of(receipt: &Receipt) -> Option<[u8; 64]> {
    crate::signature::bytes_64(receipt.signature.as_deref()?)
}

/// Tells whether a token's time lies further ahead of now than clocks differ.
#[must_use]
pub fn is_from_the_future(time: Time, now: Time) -> bool {
    is_ahead(time, now)
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    // Before anything of that size is made; base64 is four characters for three bytes.
    if text.len() / 4 * 3 > Token::MAX_BYTES + 3 {
        return Err(TokenError::TooLong {
            bytes: text.len() / 4 * 3,
            limit: Token::MAX_BYTES,
        }
        .to_string());
    }
    STANDARD
        .decode(text)
        .map_err(|_| "timestamp token is not valid base64".to_owned())
}

/// Returns the authorities of a trust store, and what is wrong with those that cannot be one.
///
/// # Errors
/// There is no certificate at all.
pub fn pinned(trust: &Trust) -> Result<(Vec<Authority>, Vec<String>), String> {
    let none = |place: &str| {
        Err(format!(
            "no pinned timestamp authority in {place}; add the issuing CA certificate to verify this token"
        ))
    };
    let store = match trust {
        Trust::Store(store) => store,
        Trust::Absent { looked_in } => return none(&below(looked_in)),
        Trust::Unreadable(error) => return Err(format!("cannot load trust store: {error}")),
    };
    if store.authorities().is_empty() {
        return none(&match store.place() {
            Some(place) => below(place),
            None => "the trust store".to_owned(),
        });
    }
    let mut authorities = Vec::new();
    let mut unusable = Vec::new();
    for file in store.authorities() {
        let name = file.file.strip_suffix(".crt").unwrap_or(&file.file);
        let found = certificates(&file.bytes).map_err(|error| error.to_string());
        let found = found.and_then(|found| {
            let each = found.iter().map(|der| Authority::new(name, der));
            let each: Result<Vec<_>, _> = each.collect();
            each.map_err(|error| error.to_string())
        });
        match found {
            Ok(found) => authorities.extend(found),
            Err(error) => unusable.push(format!("`{}` {error}", visible(&file.file))),
        }
    }
    Ok((authorities, unusable))
}

fn below(place: &str) -> String {
    format!("{place}/{}", AUTHORITIES.trim_end_matches('/'))
}

/// Judges the receipt's token; the signature itself is judged after it, because a revocation goes
/// by the authority's time where there is one.
pub(crate) fn check(
    receipt: &Receipt,
    trust: &Trust,
    judge: &dyn TokenJudge,
    now: Time,
) -> (Check, Option<Stamp>) {
    let name = CheckName::Timestamp;
    let Some(token) = &receipt.timestamp_token else {
        return (
            Check::skipped(name, "receipt carries no timestamp token"),
            None,
        );
    };
    let Some(signature) = &receipt.signature else {
        let detail = "receipt has a timestamp token but no signature for it to cover";
        return (Check::fail(name, detail), None);
    };
    let Some(signature) = crate::signature::bytes_64(signature) else {
        let detail = "receipt has a timestamp token but a malformed signature";
        return (Check::fail(name, detail), None);
    };
    match judge.judge(token, &signature, trust) {
        Ok(stamp) if is_ahead(stamp.time, now) => {
            let detail = format!(
                "timestamp token's time {} is more than a day ahead of this machine's clock ({now})",
                stamp.time
            );
            (Check::fail(name, detail), None)
        }
        Ok(stamp) => {
            let detail = format!(
                "signature timestamped {} by {}",
                stamp.time, stamp.authority
            );
            (Check::pass(name, detail), Some(stamp))
        }
        Err(detail) => (Check::fail(name, detail), None),
    }
}
