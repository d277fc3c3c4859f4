//! The signature, and whether the key behind it counts.

use attest_receipt::receipt::Receipt;
use attest_receipt::time::Time;

use crate::outcome::{Check, CheckName};
use crate::timestamp::Stamp;
use crate::trust::{PublicKey, Standing, Trust};

const NAME: CheckName = CheckName::Signature;

/// Reads 128 lowercase hexadecimal digits.
pub(crate) fn bytes_64(text: &str) -> Option<[u8; 64]> {
    if !attest_receipt::is_hex(text, 128) {
        return None;
    }
    let mut bytes = [0; 64];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(bytes)
}

/// Judges the signature; the key is returned only if it passes.
pub(crate) fn check(
    receipt: &Receipt,
    trust: &Trust,
    stamp: Option<&Stamp>,
    believe_receipt: bool,
    warnings: &mut Vec<String>,
) -> (Check, Option<String>) {
    let key = match holds(receipt) {
        Ok(key) => key,
        Err(detail) => return (Check::fail(NAME, detail), None),
    };
    let signed_at = || signed_at(receipt, &key, stamp, believe_receipt);
    match standing(&key, trust, signed_at, warnings) {
        Ok(detail) => (Check::pass(NAME, detail), Some(key.hex())),
        Err(detail) => (Check::fail(NAME, detail), None),
    }
}

/// Verifies the signature against the key that the receipt names, whoever trusts it, and returns
/// that key.
///
/// # Errors
/// What is wrong, in words.
pub fn holds(receipt: &Receipt) -> Result<PublicKey, String> {
    let (Some(signature), Some(key)) = (&receipt.signature, &receipt.signer_public_key) else {
        return Err("receipt is unsigned".to_owned());
    };
    let malformed = |why: &dyn std::fmt::Display| format!("malformed signature material: {why}");
    let key = PublicKey::from_hex(key).map_err(|error| malformed(&error))?;
    let signature = bytes_64(signature)
        .ok_or_else(|| malformed(&"a signature is 128 lowercase hexadecimal digits"))?;
    if key.verify_strict(&receipt.signing_bytes(), &signature) {
        Ok(key)
    } else {
        Err("Ed25519 signature does not verify against signer_public_key".to_owned())
    }
}

/// Judges the key of a signature that holds.
fn standing(
    key: &PublicKey,
    trust: &Trust,
    signed_at: impl FnOnce() -> Result<(Time, Option<String>), String>,
    warnings: &mut Vec<String>,
) -> Result<String, String> {
    let untrusted = || {
        format!(
            "valid signature but signed by untrusted key {}",
            key.key_id()
        )
    };
    let store = match trust {
        Trust::Store(store) => store,
        Trust::Absent { looked_in } => {
            warnings.push(format!("there is no trust store in {looked_in}"));
            return Err(untrusted());
        }
        Trust::Unreadable(error) => return Err(format!("cannot load trust store: {error}")),
    };
    warnings.extend_from_slice(store.doubts());
    let key_hex = key.hex();
    let since = match store.lookup(key) {
        Standing::Unknown => return Err(untrusted()),
        Standing::Trusted { .. } => {
            return Ok(format!("valid signature by trusted key {key_hex}"));
        }
        Standing::Revoked { since, .. } => since,
    };
    let Some(since) = since else {
        return Err(format!(
            "signed by key {key_hex}, which is revoked without a date and so was never trusted"
        ));
    };
    let (signed_at, doubt) = signed_at().map_err(|why| format!("{why} at {since}"))?;
    warnings.extend(doubt);
    if signed_at > since {
        return Err(format!(
            "signed by key {key_hex} after its revocation at {since}"
        ));
    }
    warnings.push(format!(
        "signed by key revoked later ({key_hex} revoked at {since})"
    ));
    Ok("valid signature; signed by key revoked later".to_owned())
}

/// Says when the receipt was signed, for a key that no longer counts: an authority's word, or the
/// receipt's own if the caller takes it, which deserves a warning.
fn signed_at(
    receipt: &Receipt,
    key: &PublicKey,
    stamp: Option<&Stamp>,
    believe_receipt: bool,
) -> Result<(Time, Option<String>), String> {
    if let Some(stamp) = stamp {
        return Ok((stamp.time, None));
    }
    let key = key.hex();
    if believe_receipt {
        let doubt = format!(
            "key {key} is revoked and no timestamp token says when this receipt was signed; its own timestamp is taken for it (--trust-receipt-timestamp), which the holder of the key could set to anything"
        );
        return Ok((receipt.timestamp, Some(doubt)));
    }
    Err(format!(
        "signed by revoked key {key}, and without a valid timestamp token only the signer says that it was before the revocation; --trust-receipt-timestamp would take the signer's word. The key was revoked"
    ))
}
