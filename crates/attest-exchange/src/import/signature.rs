//! The envelope's signature, and whether the key behind it counts.

use attest_receipt::time::Time;
use attest_verify::trust::{KeyId, PublicKey, Standing, Trust};

use super::ImportOptions;
use crate::dsse::{Envelope, pae};
use crate::statement::Statement;

/// Returns the key and the words of a signature that counts.
pub(super) fn check(
    envelope: &Envelope,
    statement: &Statement,
    options: &ImportOptions<'_>,
    warnings: &mut Vec<String>,
) -> Result<(String, String), String> {
    let signature = match envelope.signatures.as_slice() {
        [signature] => signature,
        [] => return Err("envelope is unsigned".to_owned()),
        // Whoever sees "valid" would take it for all of them.
        _ => return Err("an envelope with several signatures is not judged here".to_owned()),
    };
    let key = known(&signature.keyid, options.trust)?;
    let bytes: [u8; 64] = signature.bytes.as_slice().try_into().map_err(|_| {
        format!(
            "malformed signature material: {} bytes are no Ed25519 signature",
            signature.bytes.len()
        )
    })?;
    if !key.verify_strict(&pae(&envelope.payload_type, &envelope.payload), &bytes) {
        return Err("DSSE signature does not verify against the trusted key".to_owned());
    }
    standing(&key, statement, options, warnings)?;
    let detail = format!("valid DSSE signature by trusted key {}", key.key_id());
    Ok((key.hex(), detail))
}

fn known(keyid: &str, trust: &Trust) -> Result<PublicKey, String> {
    let store = match trust {
        Trust::Store(store) => store,
        Trust::Absent { looked_in } => {
            return Err(format!("there is no trust store in {looked_in}"));
        }
        Trust::Unreadable(error) => return Err(format!("cannot load trust store: {error}")),
    };
    let id = KeyId::new(keyid).map_err(|_| format!("keyid '{keyid}' is not the id of a key"))?;
    match store.key(&id) {
        Some(key) => Ok(key.clone()),
        None => Err(format!("keyid {id} is not in the trust store")),
    }
}

fn standing(
    key: &PublicKey,
    statement: &Statement,
    options: &ImportOptions<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    let id = key.key_id();
    let Trust::Store(store) = options.trust else {
        return Err("there is no trust store".to_owned());
    };
    let since = match store.lookup(key) {
        Standing::Trusted { .. } => return Ok(()),
        Standing::Unknown => {
            return Err(format!(
                "keyid {id} has a public key in the trust store but no trust entry"
            ));
        }
        Standing::Revoked { since, .. } => since,
    };
    if !options.trust_statement_time {
        return Err(format!(
            "signed by revoked key {id}, and only the signer says in the statement when that was; --trust-statement-time would take the signer's word"
        ));
    }
    let Some(since) = since else {
        return Err(format!(
            "signed by key {id}, which is revoked without a date and so was never trusted"
        ));
    };
    let finished = statement.predicate.run.metadata.finished_on.parse::<Time>();
    if finished.is_ok_and(|finished| finished <= since) {
        warnings.push(format!(
            "signed by key revoked later ({id} revoked at {since}), if the statement's own time is believed"
        ));
        Ok(())
    } else {
        Err(format!(
            "signed by key {id} after its revocation at {since}"
        ))
    }
}
