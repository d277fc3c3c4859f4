//! A stored receipt with a bit of any byte changed is refused, or is what it was, or shows under the
//! signature.

use attest_receipt::receipt::{self, Receipt};

use crate::vectors::{self, bytes};

/// What the signature and its check see of a receipt.
fn seen(receipt: &Receipt) -> (Vec<u8>, [Option<&String>; 3]) {
    let beside = [
        receipt.signature.as_ref(),
        receipt.signer_public_key.as_ref(),
        receipt.timestamp_token.as_ref(),
    ];
    (receipt.signing_bytes(), beside)
}

fn flip(name: &str) {
    let stored = bytes(name);
    let original = receipt::read(&stored).unwrap();
    let expected = seen(&original);
    let (mut refused, mut same) = (0, 0);
    for index in 0..stored.len() {
        // The bit that tells upper from lower case, and one that differs from byte to byte.
        for bit in [5, index % 8] {
            let mut flipped = stored.clone();
            flipped[index] ^= 1 << bit;
            let Ok(read) = receipt::read(&flipped) else {
                refused += 1;
                continue;
            };
            if seen(&read) == expected {
                assert_eq!(read, original, "{name}: byte {index}, bit {bit}");
                same += 1;
            }
        }
    }
    // Both kinds must occur, or the loop proves nothing.
    assert!(refused > stored.len() / 2, "{refused}");
    assert!(same < stored.len() / 20, "{same}");
}

#[test]
fn a23_a_flip_of_any_byte_of_a_pipelines_receipt_is_noticed() {
    flip(vectors::ALL[0]);
}

#[test]
fn a23_a_flip_of_any_byte_of_an_unsigned_receipt_is_noticed() {
    flip(vectors::ALL[1]);
}

#[test]
fn a23_a_flip_of_any_byte_of_a_wrapped_commands_receipt_is_noticed() {
    flip(vectors::ALL[2]);
}

#[test]
fn a23_a_flip_of_any_byte_of_an_old_receipt_is_noticed() {
    flip(vectors::ALL[3]);
}
