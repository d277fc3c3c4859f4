//! What depends on a time: revocation, receipts from the future, tokens.

use attest_receipt::receipt::Receipt;
use attest_verify::timestamp::{Stamp, TokenJudge};
use attest_verify::trust::Trust;
use attest_verify::{CheckName, Options, Outcome, Status, verify, verify_with_tokens};

use crate::common::{
    check, fails, judge, key, now, options, passes, public, receipt, signed, store, time, usual,
};

/// Takes every token for one of this moment; `None` refuses each.
struct Authority(Option<&'static str>);

impl TokenJudge for Authority {
    fn judge(&self, token: &str, signature: &[u8; 64], _: &Trust) -> Result<Stamp, String> {
        assert_eq!(token, "dG9rZW4=");
        assert_ne!(signature, &[0; 64]);
        self.0
            .map(|text| Stamp {
                time: time(text),
                authority: "Test Authority".to_owned(),
            })
            .ok_or_else(|| "the token covers another signature".to_owned())
    }
}

fn revoked(since: &str) -> Trust {
    store(
        &key(),
        &format!("status = \"revoked\"\nrevoked_at = \"{since}\""),
    )
}

fn believing() -> Options {
    Options {
        trust_receipt_timestamp: true,
        ..options()
    }
}

fn stamped() -> Receipt {
    let mut receipt = signed(receipt());
    receipt.timestamp_token = Some("dG9rZW4=".to_owned());
    receipt
}

fn judge_token(trust: &Trust, options: &Options, authority: &Authority) -> Outcome {
    let text = stamped().to_yaml().unwrap();
    verify_with_tokens(text.as_bytes(), trust, options, None, authority).unwrap()
}

#[test]
fn a29_a_revoked_key_without_a_token_is_not_believed() {
    for since in ["2026-11-30T11:00:00Z", "2026-11-30T13:00:00Z"] {
        let outcome = judge(&signed(receipt()), &revoked(since), &options());
        fails(&outcome, CheckName::Signature, "signed by revoked key");
        fails(&outcome, CheckName::Signature, since);
        assert_eq!(outcome.signed_by, None);
    }
}

#[test]
fn a29_the_receipts_own_time_counts_only_when_asked_and_with_a_warning() {
    let whole = signed(receipt());
    let hex = public(&key()).hex();
    let outcome = judge(&whole, &revoked("2026-11-30T13:00:00Z"), &believing());
    passes(&outcome);
    assert_eq!(
        check(&outcome, CheckName::Signature).detail,
        "valid signature; signed by key revoked later"
    );
    assert_eq!(outcome.signed_by.as_deref(), Some(hex.as_str()));
    assert_eq!(outcome.warnings.len(), 2, "{:?}", outcome.warnings);
    assert!(outcome.warnings[0].contains("--trust-receipt-timestamp"));
    assert_eq!(
        outcome.warnings[1],
        format!("signed by key revoked later ({hex} revoked at 2026-11-30T13:00:00Z)")
    );

    let outcome = judge(&whole, &revoked("2026-11-30T11:00:00Z"), &believing());
    fails(
        &outcome,
        CheckName::Signature,
        &format!("signed by key {hex} after its revocation at 2026-11-30T11:00:00Z"),
    );
}

#[test]
fn a29_the_moment_of_the_revocation_itself_is_before_it() {
    let whole = signed(receipt());
    passes(&judge(
        &whole,
        &revoked("2026-11-30T12:00:00Z"),
        &believing(),
    ));
    let outcome = judge(
        &whole,
        &revoked("2026-11-30T11:59:59.999999999Z"),
        &believing(),
    );
    fails(&outcome, CheckName::Signature, "after its revocation");
}

#[test]
fn a29_a_revocation_without_a_date_is_for_ever() {
    let trust = store(&key(), "status = \"revoked\"");
    for options in [options(), believing()] {
        fails(
            &judge(&signed(receipt()), &trust, &options),
            CheckName::Signature,
            "revoked without a date",
        );
        fails(
            &judge_token(&trust, &options, &Authority(Some("2020-01-01T00:00:00Z"))),
            CheckName::Signature,
            "revoked without a date",
        );
    }
}

#[test]
fn a29_an_authoritys_time_decides_over_the_receipts_own() {
    let trust = revoked("2026-11-30T13:00:00Z");
    for options in [options(), believing()] {
        let outcome = judge_token(&trust, &options, &Authority(Some("2026-11-30T12:30:00Z")));
        passes(&outcome);
        assert_eq!(outcome.warnings.len(), 1, "nobody's word was taken");
        assert_eq!(
            check(&outcome, CheckName::Timestamp).detail,
            "signature timestamped 2026-11-30T12:30:00Z by Test Authority"
        );
        // The receipt says 12:00, the authority saw the signature after the revocation.
        let outcome = judge_token(&trust, &options, &Authority(Some("2026-11-30T13:00:01Z")));
        fails(&outcome, CheckName::Signature, "after its revocation");
    }
}

#[test]
fn a29_a_token_that_does_not_hold_saves_no_revoked_key() {
    let trust = revoked("2026-11-30T13:00:00Z");
    let outcome = judge_token(&trust, &options(), &Authority(None));
    fails(&outcome, CheckName::Timestamp, "covers another signature");
    fails(&outcome, CheckName::Signature, "signed by revoked key");
    // Even with the receipt's own word the token fails the verdict.
    let outcome = judge_token(&trust, &believing(), &Authority(None));
    assert_eq!(check(&outcome, CheckName::Signature).status, Status::Pass);
    assert!(!outcome.passed());
}

#[test]
fn a_token_needs_a_signature_to_cover() {
    let mut unsigned = receipt();
    unsigned.timestamp_token = Some("dG9rZW4=".to_owned());
    fails(
        &usual(&unsigned),
        CheckName::Timestamp,
        "receipt has a timestamp token but no signature for it to cover",
    );
    let mut malformed = stamped();
    malformed.signature = Some("00".to_owned());
    fails(
        &usual(&malformed),
        CheckName::Timestamp,
        "malformed signature",
    );
}

#[test]
fn a_token_that_nobody_can_verify_fails_and_a_receipt_without_one_skips() {
    fails(&usual(&stamped()), CheckName::Timestamp, "");
    let outcome = usual(&signed(receipt()));
    assert_eq!(
        check(&outcome, CheckName::Timestamp).status,
        Status::Skipped
    );
    assert_eq!(
        check(&outcome, CheckName::Timestamp).detail,
        "receipt carries no timestamp token"
    );
}

#[test]
fn a29_a_receipt_from_the_future_is_refused_beyond_what_clocks_differ() {
    let whole = signed(receipt());
    for (clock, passed) in [
        ("2026-11-30T12:00:00Z", true),
        ("2026-11-29T12:00:00Z", true),
        ("2026-11-29T11:59:59Z", false),
        ("2020-01-01T00:00:00Z", false),
        ("2100-01-01T00:00:00Z", true),
    ] {
        let options = Options::new(time(clock));
        let outcome = judge(&whole, &crate::common::trusting(), &options);
        assert_eq!(outcome.passed(), passed, "{clock}");
        if !passed {
            fails(
                &outcome,
                CheckName::Consistency,
                "ahead of this machine's clock",
            );
        }
    }
}

#[test]
fn a28_a_run_that_ends_before_it_starts() {
    let text = String::from_utf8(crate::common::vector("r1_pipeline_signed.yaml")).unwrap();
    let (from, to) = (
        "started_at: 2026-11-30T11:51:16.570383370Z",
        "started_at: 2026-11-30T11:51:16.626576632Z",
    );
    assert!(text.contains(from));
    let text = text.replace(from, to);
    let trust = crate::common::vector_trust("trust");
    let outcome = verify(text.as_bytes(), &trust, &options(), None).unwrap();
    fails(
        &outcome,
        CheckName::Consistency,
        "is after the end of the run",
    );
}

#[test]
fn a28_negative_and_huge_durations() {
    let whole = serde_json::to_string(&signed(receipt())).unwrap();
    for duration in ["-1", "18446744073709551616", "1.0", "1e0", "\"3\"", "-0"] {
        let text = whole.replace(
            "\"total_duration_secs\":3",
            &format!("\"total_duration_secs\":{duration}"),
        );
        assert_ne!(text, whole);
        let outcome = verify(
            text.as_bytes(),
            &revoked("2026-01-01T00:00:00Z"),
            &options(),
            None,
        );
        let outcome = outcome.unwrap();
        fails(&outcome, CheckName::Schema, "total_duration_secs");
    }
    let mut longest = receipt();
    longest.total_duration_secs = u64::MAX;
    passes(&usual(&signed(longest)));
    assert!(now() > receipt().timestamp);
}
