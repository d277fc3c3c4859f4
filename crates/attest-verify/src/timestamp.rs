//! The check of time-stamp tokens, and the place where their verification plugs in.

use attest_receipt::receipt::Receipt;
use attest_receipt::time::Time;

use crate::outcome::{Check, CheckName};
use crate::trust::Trust;

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

/// Refuses every token: what cannot be verified is never taken for verified.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTokens;

impl TokenJudge for NoTokens {
    fn judge(&self, _: &str, _: &[u8; 64], _: &Trust) -> Result<Stamp, String> {
        Err("this program cannot verify timestamp tokens yet".to_owned())
    }
}

/// Judges the receipt's token; the signature itself is judged after it, because a revocation goes
/// by the authority's time where there is one.
pub(crate) fn check(
    receipt: &Receipt,
    trust: &Trust,
    judge: &dyn TokenJudge,
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
