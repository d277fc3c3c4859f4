//! Certificates in a file, as PEM or DER. Only the outer form is judged here.

use ed25519_dalek::pkcs8::spki::der::asn1::AnyRef;
use ed25519_dalek::pkcs8::spki::der::{Decode as _, Tag, Tagged as _, pem};

use super::error::KeyError;

const LABEL: &str = "CERTIFICATE";
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// The greatest number of certificates in one file.
const MAX: usize = 64;

/// Takes the certificates out of a file: one in DER, or blocks in PEM with any text around them.
///
/// # Errors
///
/// There is none, a block is damaged or is something else, or private key material is there.
pub fn certificates(bytes: &[u8]) -> Result<Vec<Vec<u8>>, KeyError> {
    let refused = |problem| Err(KeyError::Certificate(problem));
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains(BEGIN) => from_pem(text),
        _ if is_sequence(bytes) => Ok(vec![bytes.to_vec()]),
        _ => refused("it contains no certificate, expected PEM or DER"),
    }
}

fn from_pem(text: &str) -> Result<Vec<Vec<u8>>, KeyError> {
    let refused = |problem| Err(KeyError::Certificate(problem));
    if text.to_ascii_uppercase().contains("PRIVATE") {
        return Err(KeyError::Private);
    }
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        let block = rest.get(start..).unwrap_or_default();
        let Some(end) = block.find(END) else {
            return refused("a block has no end");
        };
        // The end of the line that begins with the mark.
        let tail = block.get(end..).unwrap_or_default();
        let line = tail.find('\n').unwrap_or(tail.len());
        let (block, after) = block
            .split_at_checked(end.saturating_add(line))
            .unwrap_or((block, ""));
        match pem::decode_vec(block.trim_ascii_end().as_bytes()) {
            Ok((LABEL, der)) if is_sequence(&der) => found.push(der),
            Ok((LABEL, _)) | Err(_) => return refused("a block is damaged"),
            Ok(_) => return refused("a block is something else than a certificate"),
        }
        if found.len() > MAX {
            return refused("it has more than 64 certificates");
        }
        rest = after;
    }
    Ok(found)
}

/// Tells whether the bytes are one SEQUENCE in DER and nothing after it.
fn is_sequence(bytes: &[u8]) -> bool {
    AnyRef::from_der(bytes).is_ok_and(|any| any.tag() == Tag::Sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence of 3 bytes, as `MAMCAQE=` in base64.
    const DER: [u8; 5] = [0x30, 3, 2, 1, 1];
    const PEM: &str = "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n";

    #[test]
    fn pem_and_der_are_taken_apart() {
        assert_eq!(certificates(&DER), Ok(vec![DER.to_vec()]));
        assert_eq!(certificates(PEM.as_bytes()), Ok(vec![DER.to_vec()]));
        let two = format!("subject=CN = one\n{PEM}issuer\n{}", PEM.trim_end());
        assert_eq!(certificates(two.as_bytes()), Ok(vec![DER.to_vec(); 2]));
        let crlf = PEM.replace('\n', "\r\n");
        assert_eq!(certificates(crlf.as_bytes()), Ok(vec![DER.to_vec()]));
    }

    #[test]
    fn other_files_are_refused() {
        let trailing = [&DER[..], &[0]].concat();
        let long_form = [0x30, 0x81, 3, 2, 1, 1];
        let key = PEM.replace("CERTIFICATE", "PRIVATE KEY");
        let both = format!("{PEM}{key}");
        let other = format!("{PEM}{}", PEM.replace("CERTIFICATE", "X509 CRL"));
        let many = PEM.repeat(MAX + 1);
        for bytes in [
            &b""[..],
            b"text",
            b"0",
            &DER[..4],
            &trailing,
            &long_form,
            &[0x31, 3, 2, 1, 1],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            PEM.replace("MAMC", "MA!C").as_bytes(),
            PEM.replace("MAMCAQE=", "AgEB").as_bytes(),
            PEM.replace("-----END CERTIFICATE-----", "").as_bytes(),
            PEM.replace("END CERTIFICATE", "END X").as_bytes(),
            key.as_bytes(),
            both.as_bytes(),
            other.as_bytes(),
            many.as_bytes(),
        ] {
            assert!(
                certificates(bytes).is_err(),
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
        assert_eq!(certificates(both.as_bytes()), Err(KeyError::Private));
        assert!(certificates(PEM.repeat(MAX).as_bytes()).is_ok());
    }
}
