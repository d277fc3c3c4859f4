//! A token with any byte changed, cut or added is refused, or proves the very same.

use attest_timestamp::{Authority, Token};
use stamp_authority::Ca;

use crate::common::{WORLD, judge_by};
use crate::openssl::vector;

#[test]
fn a_change_of_any_byte_of_a_token_with_one_certificate_is_refused() {
    every_change_is_refused(&WORLD.stamper().token(), &WORLD.pinned());
}

#[test]
fn a_change_of_any_byte_of_an_rsa_token_is_refused() {
    let pinned = [Authority::new("a", &vector("rsa2048-ca.der")).unwrap()];
    every_change_is_refused(&vector("rsa2048.tst"), &pinned);
}

#[track_caller]
fn every_change_is_refused(token: &[u8], pinned: &[Authority]) {
    judge_by(token, pinned).unwrap();
    for at in 0..token.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = token.to_vec();
            changed[at] ^= change;
            assert!(
                judge_by(&changed, pinned).is_err(),
                "byte {at}, {change:#x}"
            );
        }
    }
}

#[test]
fn a_change_in_a_certificate_that_nobody_asks_proves_nothing_else() {
    let mut stamper = WORLD.stamper();
    stamper
        .certificates
        .push(Ca::honest("Other").identity.der.clone());
    let token = stamper.token();
    let pinned = WORLD.pinned();
    let stamp = judge_by(&token, &pinned).unwrap();
    let mut same = 0;
    for at in 0..token.len() {
        let mut changed = token.clone();
        changed[at] ^= 1;
        if let Ok(found) = judge_by(&changed, &pinned) {
            assert_eq!(found, stamp, "byte {at}");
            same += 1;
        }
    }
    assert!(same > 0, "the other certificate is not verified");
}

#[test]
fn a_token_that_is_cut_or_longer_is_refused() {
    let token = WORLD.stamper().token();
    for end in 0..token.len() {
        assert!(Token::from_der(&token[..end]).is_err(), "{end}");
    }
    for more in [&[0][..], &[5, 0], &token] {
        assert!(Token::from_der(&[token.as_slice(), more].concat()).is_err());
    }
}
