//! Which records a Gate takes.

use super::*;

const BASE: &str = "1111111111111111111111111111111111111111";
const CANDIDATE: &str = "2222222222222222222222222222222222222222";
const ID: &str = "cccccccccccccccccccccccccccccccc";

fn record(members: &str) -> Result<EvidenceRecord, FieldError> {
    let text = format!(r#"{{"evidence_id":"{ID}","base_sha":"{BASE}",{members}}}"#);
    let object = parse_object(
        text.as_bytes(),
        &Limits {
            bytes: 4096,
            depth: 4,
        },
        Layout::Spaced,
    )
    .unwrap();
    EvidenceRecord::from_fields(object.fields("evidence[0]"))
}

fn check(members: &str) -> Result<EvidenceRecord, FieldError> {
    record(&format!(
        r#""phase":"scoped_check","reason":"scoped_check_passed","check_index":0,"duration_ms":1{members}"#
    ))
}

fn task() -> CodingTask {
    let text = format!(
        r#"{{"repository_id":"r","base_sha":"{BASE}","instruction":"fix","tests":[["a"],["b"]]}}"#
    );
    CodingTask::from_canonical(&text).unwrap()
}

fn limits() -> ExecutionLimits {
    ExecutionLimits {
        plugin_timeout: Duration::from_secs(100),
        check_timeout: Duration::from_secs(7200),
        git_timeout: Duration::from_secs(60),
        cleanup_timeout: Duration::from_secs(10),
        plugin_output_bytes: 1,
        check_output_bytes: 1,
        git_output_bytes: 1,
    }
}

#[test]
fn each_reason_belongs_to_one_phase() {
    for phase in Phase::ALL {
        for reason in Reason::ALL {
            let index = if *phase == Phase::ScopedCheck {
                r#","check_index":0"#
            } else {
                ""
            };
            let read = record(&format!(
                r#""phase":"{phase}","reason":"{reason}","duration_ms":0{index}"#
            ));
            assert_eq!(read.is_ok(), reason.phase() == *phase, "{phase} {reason}");
        }
    }
    assert_eq!((Phase::ALL.len(), Reason::ALL.len()), (6, 16));
    for foreign in [
        "source_policy_invalid",
        "clone_failed",
        "fetch_failed",
        "base_unavailable",
        "Cleanup_failed",
    ] {
        assert!(foreign.parse::<Reason>().is_err());
    }
}

#[test]
fn the_canonical_form_leaves_out_what_is_empty() {
    let read = check(r#","output":"","output_redacted":false,"output_truncated":false"#).unwrap();
    let canonical = format!(
        r#"{{"evidence_id":"{ID}","phase":"scoped_check","reason":"scoped_check_passed","check_index":0,"duration_ms":1,"base_sha":"{BASE}"}}"#
    );
    assert_eq!(read.canonical(), canonical);
    assert_eq!(EvidenceRecord::from_canonical(&canonical).unwrap(), read);
    assert!(EvidenceRecord::from_canonical(&canonical.replace(":1,", ": 1,")).is_err());
}

#[test]
fn an_output_is_empty_or_redacted() {
    let redacted = |truncated| Output::Redacted { truncated };
    for (members, expected) in [
        ("", Some(Output::Empty)),
        (
            r#","output":"[REDACTED]","output_redacted":true"#,
            Some(redacted(false)),
        ),
        (
            r#","output":"[REDACTED]","output_redacted":true,"output_truncated":true"#,
            Some(redacted(true)),
        ),
        (r#","output":"[REDACTED]""#, None),
        (r#","output":"secret""#, None),
        (r#","output":"secret","output_redacted":true"#, None),
        (r#","output_redacted":true"#, None),
        (r#","output_truncated":true"#, None),
        (r#","output":null"#, None),
        (r#","output":"[REDACTED]","output_redacted":null"#, None),
    ] {
        assert_eq!(
            check(members).ok().map(|record| record.output),
            expected,
            "{members}"
        );
    }
}

#[test]
fn check_fields_are_for_checks() {
    let plugin = r#""phase":"plugin","reason":"plugin_failed","duration_ms":1"#;
    assert!(record(plugin).is_ok());
    assert!(record(&format!(r#"{plugin},"check_index":0"#)).is_err());
    assert!(record(&format!(r#"{plugin},"exit_code":0"#)).is_err());
    assert!(
        record(r#""phase":"scoped_check","reason":"scoped_check_passed","duration_ms":1"#).is_err()
    );
    assert_eq!(check(r#","exit_code":255"#).unwrap().exit_code, Some(255));
    for bad in ["256", "-1", "1.0", "null", "\"1\""] {
        assert!(check(&format!(r#","exit_code":{bad}"#)).is_err(), "{bad}");
    }
}

#[test]
fn a_check_that_did_not_pass_names_no_candidate() {
    for reason in ["scoped_check_failed", "scoped_check_timeout"] {
        let members = format!(
            r#""phase":"scoped_check","reason":"{reason}","check_index":0,"duration_ms":1"#
        );
        assert!(record(&members).is_ok());
        assert!(record(&format!(r#"{members},"candidate_sha":"{CANDIDATE}""#)).is_err());
    }
    assert!(check(&format!(r#","candidate_sha":"{CANDIDATE}""#)).is_ok());
}

#[test]
fn nothing_else_is_accepted() {
    for extra in [r#","argv":["x"]"#, r#","argv_redacted":true"#, r#","x":1"#] {
        assert!(
            check(extra).unwrap_err().to_string().contains("unknown"),
            "{extra}"
        );
    }
    assert!(record(r#""phase":"cleanup","reason":"cleanup_failed""#).is_err());
}

#[test]
fn a_batch_holds_one_to_thirty_four_records_once_each() {
    let many = |count: usize| {
        let records = (0..count)
            .map(|index| {
                let mut record = check("").unwrap();
                record.evidence_id = format!("{index:032x}").parse().unwrap();
                record
            })
            .collect();
        EvidenceBatch::new(records)
    };
    assert_eq!(many(34).unwrap().records().len(), 34);
    assert!(many(0).is_err() && many(35).is_err());
    assert!(EvidenceBatch::new(vec![check("").unwrap(), check("").unwrap()]).is_err());
}

#[test]
fn elements_that_are_no_objects_are_refused() {
    let array = |text: &str| {
        let object = parse_object(
            text.as_bytes(),
            &Limits {
                bytes: 4096,
                depth: 4,
            },
            Layout::Spaced,
        )
        .unwrap();
        EvidenceBatch::from_elements("evidence", object.fields("").array("evidence").unwrap())
    };
    assert!(array(r#"{"evidence":[]}"#).is_err());
    assert!(array(r#"{"evidence":[1]}"#).is_err());
    assert!(array(r#"{"evidence":[null]}"#).is_err());
}

#[test]
fn durations_are_bounded_by_the_policy_of_the_attempt() {
    let task = task();
    let limits = limits();
    let context = EvidenceContext {
        task: &task,
        limits: &limits,
    };
    for (reason, most) in [
        (Reason::ScopedCheckTimeout, 7_201_000),
        (Reason::CleanupFailed, 11_000),
        (Reason::PluginFailed, 101_000),
        (Reason::WorktreeSetupFailed, 961_000),
        (Reason::NoChanges, 961_000),
        (Reason::CandidateCommitFailed, 961_000),
    ] {
        let judge = |duration_ms| {
            let mut record = check("").unwrap();
            record.reason = reason;
            record.duration_ms = duration_ms;
            EvidenceBatch::new(vec![record]).unwrap().check(&context)
        };
        assert!(judge(most).is_ok(), "{reason}");
        assert!(judge(most + 1).is_err(), "{reason}");
        assert!(judge(u64::MAX).is_err(), "{reason}");
    }
}

#[test]
fn a_batch_is_about_its_task() {
    let task = task();
    let limits = limits();
    let context = EvidenceContext {
        task: &task,
        limits: &limits,
    };
    let judge = |change: fn(&mut EvidenceRecord)| {
        let mut record = check("").unwrap();
        change(&mut record);
        EvidenceBatch::new(vec![record]).unwrap().check(&context)
    };
    assert!(judge(|record| record.check_index = Some(1)).is_ok());
    assert!(
        judge(|record| record.check_index = Some(2))
            .unwrap_err()
            .to_string()
            .contains("evidence[0].check_index")
    );
    assert!(
        judge(|record| record.base_sha = CANDIDATE.parse().unwrap())
            .unwrap_err()
            .to_string()
            .contains("base_sha")
    );
}

#[test]
fn a_candidate_needs_every_check_to_name_it() {
    let candidate: GitSha = CANDIDATE.parse().unwrap();
    let named = check(&format!(r#","candidate_sha":"{CANDIDATE}""#)).unwrap();
    let other = check(&format!(r#","candidate_sha":"{BASE}""#)).unwrap();
    let unnamed = check("").unwrap();
    let cleanup = record(r#""phase":"cleanup","reason":"cleanup_failed","duration_ms":1"#).unwrap();
    assert!(agrees_with_candidate([], &candidate).is_ok());
    assert!(agrees_with_candidate([&named, &cleanup], &candidate).is_ok());
    assert_eq!(
        agrees_with_candidate([&named, &other], &candidate),
        Err(Refused::EvidenceDisagrees)
    );
    assert_eq!(
        agrees_with_candidate([&unnamed], &candidate),
        Err(Refused::EvidenceDisagrees)
    );
}
