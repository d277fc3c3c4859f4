//! Signatures that are none: absent, malformed, of weak points, of somebody or something else.

use attest_receipt::encode::hex;
use attest_receipt::receipt::Receipt;
use attest_verify::trust::{Trust, TrustStore};
use attest_verify::{CheckName, Options, Outcome, verify};
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::scalar::Scalar;
use ed25519_dalek::{Signature, Signer as _, Verifier as _, VerifyingKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use crate::common::{
    SIGNED, check, fails, judge, key, options, other_key, passes, public, receipt, signed,
    signed_by, step, trusting, usual, vector, vector_trust,
};
use crate::weak_points::WEAK;

const UNVERIFIED: &str = "Ed25519 signature does not verify against signer_public_key";

/// The order of the group, little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

fn bytes_32(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
    }
    bytes
}

/// A receipt as JSON, so that fields can take values that the type does not have.
fn tree(receipt: &Receipt) -> Value {
    serde_json::to_value(receipt).unwrap()
}

fn judge_tree(tree: &Value) -> Outcome {
    let text = serde_json::to_vec(tree).unwrap();
    verify(&text, &trusting(), &options(), None).unwrap()
}

#[test]
fn a11_a_signature_or_key_that_is_absent_null_or_empty() {
    let whole = tree(&signed(receipt()));
    passes(&judge_tree(&whole));
    for field in ["signature", "signer_public_key"] {
        let mut absent = whole.clone();
        absent.as_object_mut().unwrap().remove(field);
        fails(
            &judge_tree(&absent),
            CheckName::Signature,
            "receipt is unsigned",
        );
        for (value, name, words) in [
            (Value::Null, CheckName::Signature, "receipt is unsigned"),
            (
                json!(""),
                CheckName::Signature,
                "malformed signature material",
            ),
            (json!([]), CheckName::Schema, field),
            (json!({}), CheckName::Schema, field),
            (json!(0), CheckName::Schema, field),
        ] {
            let mut changed = whole.clone();
            changed[field] = value;
            fails(&judge_tree(&changed), name, words);
        }
    }
}

#[test]
fn a12_zeros_are_no_signature_and_no_key() {
    let mut zeros = signed(receipt());
    zeros.signature = Some("0".repeat(128));
    fails(&usual(&zeros), CheckName::Signature, UNVERIFIED);
    let mut zeros = signed(receipt());
    zeros.signer_public_key = Some("0".repeat(64));
    fails(
        &usual(&zeros),
        CheckName::Signature,
        "malformed signature material",
    );
}

#[test]
fn a13_signatures_and_keys_of_another_length() {
    let whole = signed(receipt());
    let (signature, public) = (
        whole.signature.clone().unwrap(),
        whole.signer_public_key.clone().unwrap(),
    );
    for (start, end) in [(0, 127), (0, 126), (1, 128), (2, 128), (0, 64), (0, 1)] {
        let mut short = whole.clone();
        short.signature = Some(signature[start..end].to_owned());
        fails(
            &usual(&short),
            CheckName::Signature,
            "malformed signature material",
        );
    }
    for more in ["0", "00", "\n", " "] {
        let mut long = whole.clone();
        long.signature = Some(format!("{signature}{more}"));
        fails(
            &usual(&long),
            CheckName::Signature,
            "malformed signature material",
        );
        let mut long = whole.clone();
        long.signer_public_key = Some(format!("{public}{more}"));
        fails(
            &usual(&long),
            CheckName::Signature,
            "malformed signature material",
        );
    }
    let mut short = whole;
    short.signer_public_key = Some(public[..62].to_owned());
    fails(
        &usual(&short),
        CheckName::Signature,
        "malformed signature material",
    );
}

#[test]
fn a14_a_scalar_that_is_not_reduced_is_no_second_signature() {
    for file in SIGNED {
        let text = String::from_utf8(vector(file.0)).unwrap();
        let receipt = attest_receipt::receipt::read(text.as_bytes()).unwrap();
        let old = receipt.signature.unwrap();
        let scalar = bytes_32(&old[64..]);
        let mut sum = [0_u8; 32];
        let mut carry = 0_u16;
        for (at, byte) in sum.iter_mut().enumerate() {
            carry += u16::from(scalar[at]) + u16::from(ORDER[at]);
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        let new = format!("{}{}", &old[..64], hex(&sum));
        let text = text.replace(&old, &new);
        let outcome = verify(text.as_bytes(), &vector_trust(file.1), &options(), None).unwrap();
        fails(&outcome, CheckName::Signature, UNVERIFIED);
    }
    // The order itself as the scalar, and the greatest number there is.
    for scalar in [hex(&ORDER), "f".repeat(64)] {
        let mut whole = signed(receipt());
        let old = whole.signature.unwrap();
        whole.signature = Some(format!("{}{scalar}", &old[..64]));
        fails(&usual(&whole), CheckName::Signature, UNVERIFIED);
    }
}

/// Looks for a receipt that the lax equation accepts for a key of small order: anybody can.
fn forged(point: &str) -> Option<Receipt> {
    let lax = VerifyingKey::from_bytes(&bytes_32(point)).ok()?;
    let mut forgery = receipt();
    forgery.signer_public_key = Some(point.to_owned());
    for duration in 0..64 {
        forgery.total_duration_secs = duration;
        let message = forgery.signing_bytes();
        for nonce in WEAK {
            let signature = [bytes_32(nonce), [0; 32]].concat();
            let signature: [u8; 64] = signature.try_into().unwrap();
            if lax
                .verify(&message, &Signature::from_bytes(&signature))
                .is_ok()
            {
                forgery.signature = Some(hex(&signature));
                return Some(forgery);
            }
        }
    }
    None
}

#[test]
fn a15_keys_of_small_order_sign_nothing_though_the_lax_equation_holds() {
    let mut found = 0;
    for point in WEAK {
        let Some(forgery) = forged(point) else {
            continue;
        };
        found += 1;
        fails(
            &usual(&forgery),
            CheckName::Signature,
            "malformed signature material",
        );
    }
    assert!(found >= 8, "the attack works on {found} points only");
}

#[test]
fn a15_a_nonce_of_small_order_signs_nothing_even_with_the_trusted_key() {
    // The holder of the key makes a signature whose R is the identity: S = k·a.
    let key = key();
    let mut signed = receipt();
    let message = signed.signing_bytes();
    let identity = CompressedEdwardsY(bytes_32(WEAK[0]));
    let public_bytes = key.verifying_key().to_bytes();
    let hash = Sha512::new()
        .chain_update(identity.as_bytes())
        .chain_update(public_bytes)
        .chain_update(&message)
        .finalize();
    let k = Scalar::from_bytes_mod_order_wide(&hash.into());
    let scalar = k * key.to_scalar();
    let signature: [u8; 64] = [identity.to_bytes(), scalar.to_bytes()]
        .concat()
        .try_into()
        .unwrap();
    let lax = key.verifying_key();
    assert!(
        lax.verify(&message, &Signature::from_bytes(&signature))
            .is_ok(),
        "the lax equation holds, or this proves nothing"
    );
    signed.signature = Some(hex(&signature));
    signed.signer_public_key = Some(public(&key).hex());
    fails(&usual(&signed), CheckName::Signature, UNVERIFIED);
    for point in WEAK {
        let mut swapped = signed.clone();
        swapped.signature = Some(format!("{point}{}", hex(&scalar.to_bytes())));
        fails(&usual(&swapped), CheckName::Signature, UNVERIFIED);
    }
}

#[test]
fn a16_a_key_that_only_the_receipt_vouches_for_is_not_trusted() {
    let outcome = usual(&signed_by(receipt(), &other_key()));
    let id = public(&other_key()).key_id();
    fails(
        &outcome,
        CheckName::Signature,
        &format!("valid signature but signed by untrusted key {id}"),
    );
    assert_eq!(outcome.signed_by, None);
}

#[test]
fn a17_the_trusted_key_beside_another_keys_signature() {
    let mut mixed = signed_by(receipt(), &other_key());
    mixed.signer_public_key = Some(public(&key()).hex());
    fails(&usual(&mixed), CheckName::Signature, UNVERIFIED);
}

#[test]
fn a18_a21_a22_fields_that_receipts_do_not_have_are_refused() {
    let whole = tree(&signed(receipt()));
    for (field, value) in [
        ("signatures", json!([whole["signature"], "00"])),
        ("algorithm", json!("none")),
        ("alg", json!("ed25519")),
        ("signed_at", json!("2026-11-30T12:00:00Z")),
        ("status", json!("success")),
        ("key_id", json!(public(&key()).key_id().to_string())),
    ] {
        let mut more = whole.clone();
        more[field] = value;
        let outcome = judge_tree(&more);
        fails(&outcome, CheckName::Schema, field);
        assert_eq!(
            check(&outcome, CheckName::Signature).detail,
            "schema check failed"
        );
    }
    let mut list = whole.clone();
    list["signature"] = json!([whole["signature"], whole["signature"]]);
    fails(&judge_tree(&list), CheckName::Schema, "signature");
}

#[test]
fn a19_upper_case_and_other_alphabets_are_no_hexadecimal() {
    let whole = signed(receipt());
    let (signature, public) = (
        whole.signature.clone().unwrap(),
        whole.signer_public_key.clone().unwrap(),
    );
    assert_ne!(signature, signature.to_uppercase());
    for text in [
        signature.to_uppercase(),
        format!("0x{signature}"),
        signature.replacen('a', "A", 1),
        format!("{} {}", &signature[..64], &signature[64..]),
        // base64 of 64 bytes, of both alphabets and with padding
        "A".repeat(86) + "==",
        "-_".repeat(43),
    ] {
        if text == signature {
            continue;
        }
        let mut other = whole.clone();
        other.signature = Some(text);
        fails(
            &usual(&other),
            CheckName::Signature,
            "malformed signature material",
        );
    }
    let mut other = whole;
    other.signer_public_key = Some(public.to_uppercase());
    fails(
        &usual(&other),
        CheckName::Signature,
        "malformed signature material",
    );
}

#[test]
fn a20_the_signature_of_another_receipt() {
    let first = signed(receipt());
    let mut second = receipt();
    second.steps.push(step("more"));
    let mut second = signed(second);
    passes(&usual(&second));
    second.signature = first.signature;
    fails(&usual(&second), CheckName::Signature, UNVERIFIED);

    // Two receipts of the original, swapped.
    let read = |file: &str| attest_receipt::receipt::read(&vector(file)).unwrap();
    let (mut r1, mut r6) = (read(SIGNED[0].0), read(SIGNED[1].0));
    std::mem::swap(&mut r1.signature, &mut r6.signature);
    let trust = vector_trust("trust");
    for swapped in [r1, r6] {
        fails(
            &judge(&swapped, &trust, &options()),
            CheckName::Signature,
            UNVERIFIED,
        );
    }
}

#[test]
fn a20_the_signature_over_the_stored_file_instead_of_the_signing_bytes() {
    let mut whole = receipt();
    let signature = key().sign(whole.to_yaml().unwrap().as_bytes());
    whole.signature = Some(hex(&signature.to_bytes()));
    whole.signer_public_key = Some(public(&key()).hex());
    fails(&usual(&whole), CheckName::Signature, UNVERIFIED);
}

#[test]
fn a23_fields_that_are_moved_to_another_place() {
    let whole = tree(&signed(receipt()));
    // The signature into a step, a step's hash to the top, the steps into provenance.
    let mut moved = whole.clone();
    moved["steps"][0]["signature"] = whole["signature"].clone();
    fails(&judge_tree(&moved), CheckName::Schema, "signature");
    moved.as_object_mut().unwrap().remove("signature");
    fails(&judge_tree(&moved), CheckName::Schema, "signature");
    let mut moved = whole.clone();
    moved["output_hash"] = whole["steps"][0]["output_hash"].clone();
    fails(&judge_tree(&moved), CheckName::Schema, "output_hash");
    // The text of one field at the end of the one before it.
    let mut moved = signed(receipt());
    moved.steps[0].stderr = std::mem::take(&mut moved.steps[0].stdout);
    fails(&usual(&moved), CheckName::Signature, UNVERIFIED);
}

#[test]
fn a06_order_and_white_space_of_the_document_are_not_signed() {
    let whole = signed(receipt());
    let mut keys: Vec<_> = tree(&whole)
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .collect();
    keys.reverse();
    let members: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("\n  {} :  {value}", json!(key)))
        .collect();
    let text = format!("{{{}}}\n", members.join(","));
    let outcome = verify(text.as_bytes(), &trusting(), &options(), None).unwrap();
    passes(&outcome);
    assert_eq!(
        outcome.receipt.unwrap().signing_bytes(),
        whole.signing_bytes()
    );
}

#[test]
fn a07_reordered_steps_are_the_same_receipt_and_repeated_ones_are_none() {
    let mut turned = signed(receipt());
    turned.steps.reverse();
    passes(&usual(&turned));
    let mut twice = receipt();
    twice.steps.push(step("build"));
    fails(&usual(&signed(twice)), CheckName::Consistency, "build");
}

#[test]
fn signatures_can_be_left_out_and_then_nobody_is_named() {
    let options = Options {
        check_signatures: false,
        ..options()
    };
    let outcome = judge(&receipt(), &trusting(), &options);
    passes(&outcome);
    assert_eq!(
        check(&outcome, CheckName::Signature).detail,
        "disabled by --check-signatures false"
    );
    assert_eq!(outcome.signed_by, None);
}

#[test]
fn what_is_doubtful_of_a_store_is_told_whatever_it_says_of_the_key() {
    let doubt = "anybody can write it";
    for (trust, verdict) in [
        (trusting(), "pass"),
        (Trust::Store(TrustStore::default().into()), "fail"),
    ] {
        let Trust::Store(store) = trust else {
            panic!("a store")
        };
        let trust = Trust::Store(store.doubted(vec![doubt.to_owned()]).into());
        let bytes = serde_json::to_vec(&tree(&signed(receipt()))).unwrap();
        let outcome = verify(&bytes, &trust, &options(), None).unwrap();
        assert_eq!(outcome.warnings, [doubt]);
        assert_eq!(outcome.verdict.as_str(), verdict);
        let unchecked = Options {
            check_signatures: false,
            ..options()
        };
        let outcome = verify(&bytes, &trust, &unchecked, None).unwrap();
        assert!(outcome.warnings.is_empty(), "nobody asked the store");
    }
}
