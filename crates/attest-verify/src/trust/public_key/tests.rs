//! Which 32 bytes are a key, and which signatures are one.

use std::collections::BTreeSet;

use ed25519_dalek::{Signer as _, SigningKey};
use proptest::prelude::*;

use super::*;

#[path = "../../../tests/it/weak_points.rs"]
mod weak_points;

use weak_points::WEAK;

const KEY: &str = "6ef3714ba22a37b9819c46fdcd7dc6e19af7ffdd294f19bd9d6a32a89709f8af";
const KEY_PEM: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAbvNxS6IqN7mBnEb9zX3G4Zr3/90pTxm9nWoyqJcJ+K8=
-----END PUBLIC KEY-----
";

fn bytes_of(digits: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    }
    bytes
}

fn pem_of(raw: [u8; 32]) -> String {
    PublicKeyBytes(raw)
        .to_public_key_pem(LineEnding::LF)
        .unwrap()
}

#[test]
fn a15_every_point_of_small_order_is_refused_in_every_form() {
    assert_eq!(BTreeSet::from(WEAK).len(), 14);
    for (number, digits) in WEAK.into_iter().enumerate() {
        let is_identity = matches!(number, 0 | 8 | 12 | 13);
        let expected = if is_identity {
            KeyError::Identity
        } else {
            KeyError::SmallOrder
        };
        assert_eq!(
            PublicKey::from_hex(digits),
            Err(expected.clone()),
            "{digits}"
        );
        let pem = pem_of(bytes_of(digits));
        assert_eq!(
            PublicKey::from_spki_pem(&pem),
            Err(expected.clone()),
            "{digits}"
        );
        assert!(expected.to_string().contains("weak"), "{expected}");
    }
}

#[test]
fn a15_a_point_has_one_spelling() {
    let mut seen = 0;
    for y in 2..=18_u8 {
        for sign in [0, 0x80] {
            // y + p, which the arithmetic takes for y.
            let mut longer = bytes_of(WEAK[10]);
            longer[0] += y;
            longer[31] |= sign;
            let mut canonical = [0; 32];
            (canonical[0], canonical[31]) = (y, sign);
            match PublicKey::from_raw(canonical) {
                Ok(_) => {
                    assert_eq!(
                        PublicKey::from_raw(longer),
                        Err(KeyError::NotCanonical),
                        "{y}"
                    );
                    seen += 1;
                }
                Err(error) => assert_eq!(error, KeyError::NotAPoint, "{y}"),
            }
        }
    }
    assert!(seen > 4, "{seen} points have a second spelling");
}

#[test]
fn a_key_has_one_id_and_two_forms() {
    let key = PublicKey::from_spki_pem(KEY_PEM).unwrap();
    assert_eq!(key.hex(), KEY);
    assert_eq!(PublicKey::from_hex(KEY).unwrap(), key);
    assert_eq!(key.to_spki_pem(), KEY_PEM);
    assert_eq!(key.key_id().to_string(), "0654120df44ec106cbbfaecdac064695");
    assert_eq!(format!("{key:?}"), format!("PublicKey(\"{KEY}\")"));
}

#[test]
fn other_spellings_of_hex_and_ids_are_refused() {
    for text in [
        "",
        &KEY[1..],
        &format!("{KEY}0"),
        &KEY.to_uppercase(),
        &KEY.replace('a', "A"),
        &format!(" {}", &KEY[1..]),
        &"é".repeat(32),
    ] {
        assert_eq!(PublicKey::from_hex(text), Err(KeyError::Hex), "{text}");
    }
    for text in [
        "",
        "../../x",
        "0654120DF44ec106cbbfaecdac064695",
        "0654120df44ec106cbbfaecdac06469\n",
    ] {
        assert_eq!(KeyId::new(text), Err(KeyError::Id), "{text}");
    }
    // y = 2 is the coordinate of no point.
    let two = format!("02{}", "0".repeat(62));
    assert_eq!(PublicKey::from_hex(&two), Err(KeyError::NotAPoint));
}

#[test]
fn pem_is_one_block_of_a_public_key() {
    let crlf = KEY_PEM.replace('\n', "\r\n");
    for good in [KEY_PEM.trim_end(), &format!("\n  {KEY_PEM}\n\n"), &crlf] {
        assert!(PublicKey::from_spki_pem(good).is_ok(), "{good:?}");
    }
    // P-256 and a certificate's label, both with sound base64.
    let other = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n";
    let label = KEY_PEM.replace("PUBLIC KEY", "CERTIFICATE");
    let longer = KEY_PEM.replace("K8=", "K8A");
    let damaged = KEY_PEM.replace("bvNx", "bv!x");
    for bad in [
        "",
        KEY,
        other,
        &label,
        &longer,
        &damaged,
        &format!("{KEY_PEM}x"),
        &format!("x{KEY_PEM}"),
        &format!("{KEY_PEM}{KEY_PEM}"),
        &KEY_PEM.replace("-----END PUBLIC KEY-----\n", ""),
    ] {
        let error = PublicKey::from_spki_pem(bad).unwrap_err();
        assert!(matches!(error, KeyError::Pem(_)), "{bad:?}: {error}");
    }
}

#[test]
fn private_material_is_refused_wherever_it_stands() {
    let private = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for text in [
        private.to_owned(),
        format!("{private}{KEY_PEM}"),
        format!("{KEY_PEM}{private}"),
        format!(
            "{KEY_PEM}\n\n{}",
            private.replace("PRIVATE", "OPENSSH Private")
        ),
    ] {
        assert_eq!(PublicKey::from_spki_pem(&text), Err(KeyError::Private));
    }
}

#[test]
fn a15_a_scalar_that_is_not_reduced_is_no_signature() {
    let signing = SigningKey::from_bytes(&[7; 32]);
    let key = PublicKey::from_raw(signing.verifying_key().to_bytes()).unwrap();
    let signature = signing.sign(b"message").to_bytes();
    assert!(key.verify_strict(b"message", &signature));
    assert!(!key.verify_strict(b"other", &signature));

    // S + L, the same number in the group.
    let order = bytes_of("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let mut longer = signature;
    let mut carry = 0;
    for (byte, added) in longer[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(added) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    assert!(!key.verify_strict(b"message", &longer));

    for weak in WEAK {
        let mut replaced = signature;
        replaced[..32].copy_from_slice(&bytes_of(weak));
        assert!(!key.verify_strict(b"message", &replaced), "{weak}");
    }
    assert!(!key.verify_strict(b"message", &[0; 64]));
}

proptest! {
    #[test]
    fn what_is_read_is_written_alike(seed in any::<[u8; 32]>()) {
        let raw = SigningKey::from_bytes(&seed).verifying_key().to_bytes();
        let key = PublicKey::from_raw(raw).unwrap();
        prop_assert_eq!(&PublicKey::from_hex(&key.hex()).unwrap(), &key);
        prop_assert_eq!(&PublicKey::from_spki_pem(&key.to_spki_pem()).unwrap(), &key);
        prop_assert_eq!(KeyId::new(key.key_id().as_str()).unwrap(), key.key_id());
    }

    #[test]
    fn a_changed_signature_is_none(at in 0_usize..64, bit in 0_u8..8) {
        let signing = SigningKey::from_bytes(&[7; 32]);
        let key = PublicKey::from_raw(signing.verifying_key().to_bytes()).unwrap();
        let mut signature = signing.sign(b"message").to_bytes();
        signature[at] ^= 1 << bit;
        prop_assert!(!key.verify_strict(b"message", &signature));
    }
}
