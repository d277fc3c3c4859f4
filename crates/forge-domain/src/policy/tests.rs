//! The bounds of a policy, and its one spelling.

use super::*;

const TEXT: &str = r#"{"version":1,"worker_pool":"coding","lease_ttl_nanos":30000000000,"retry_base_nanos":1000000000,"max_attempts":3,"retry_algorithm":"exponential-v1","retry_max_nanos":86400000000000,"execution":{"plugin_id":"reference","environment":[],"plugin_timeout_nanos":900000000000,"check_timeout_nanos":600000000000,"git_timeout_nanos":60000000000,"cleanup_timeout_nanos":10000000000,"plugin_output_bytes":1048576,"check_output_bytes":2048,"git_output_bytes":1048576}}"#;

fn read(text: &str) -> Result<ResolvedPolicy, DomainError> {
    ResolvedPolicy::from_canonical(text)
}

#[test]
fn the_canonical_form_round_trips() {
    let policy = read(TEXT).unwrap();
    assert_eq!(policy.canonical(), TEXT);
    assert_eq!(policy.digest(), Sha256Text::of(TEXT.as_bytes()));
    assert_eq!((policy.version(), policy.max_attempts()), (1, 3));
    assert_eq!(policy.lease_ttl(), Duration::from_secs(30));
    assert_eq!(policy.execution().plugin_id().as_str(), "reference");
    assert!(policy.execution().target().is_none());
    let coding = TEXT.replace(
        r#"{"plugin_id""#,
        r#"{"repository_id":"r","default_branch":"main","plugin_id""#,
    );
    assert_eq!(
        read(&coding)
            .unwrap()
            .execution()
            .target()
            .unwrap()
            .repository_id
            .as_str(),
        "r"
    );
}

#[test]
fn another_spelling_of_the_same_policy_is_refused() {
    for (from, to) in [
        (r#"{"version""#, r#"{ "version""#),
        (
            r#""version":1,"worker_pool":"coding""#,
            r#""worker_pool":"coding","version":1"#,
        ),
        (r#""coding""#, r#""c\u006fding""#),
    ] {
        assert!(read(&TEXT.replace(from, to)).is_err(), "{to}");
    }
}

#[test]
fn each_bound_holds_at_both_ends() {
    let day = 86_400_000_000_000u64;
    let cases: &[(&str, u64, u64)] = &[
        ("lease_ttl_nanos\":30000000000", 1_000_000, day),
        ("retry_base_nanos\":1000000000", 1_000_000, day),
        ("max_attempts\":3", 1, 100),
        ("plugin_timeout_nanos\":900000000000", 1_000_000, day),
        ("check_timeout_nanos\":600000000000", 1_000_000, day),
        ("git_timeout_nanos\":60000000000", 1_000_000, day),
        ("cleanup_timeout_nanos\":10000000000", 1_000_000, day),
        ("plugin_output_bytes\":1048576", 1, 64 << 20),
        ("check_output_bytes\":2048", 1, 1 << 20),
        ("git_output_bytes\":1048576", 1, 64 << 20),
    ];
    for (field, least, most) in cases {
        let name = field.split('"').next().unwrap();
        let with = |value: u64| TEXT.replacen(field, &format!("{name}\":{value}"), 1);
        assert_ne!(with(*least), TEXT, "{field}");
        for good in [*least, *most] {
            assert!(read(&with(good)).is_ok(), "{name} {good}");
        }
        for bad in [least - 1, most + 1, u64::MAX] {
            assert!(read(&with(bad)).is_err(), "{name} {bad}");
        }
    }
}

#[test]
fn what_does_not_belong_is_refused() {
    for (from, to) in [
        (r#""version":1"#, r#""version":2"#),
        ("exponential-v1", "linear-v1"),
        (
            r#""retry_max_nanos":86400000000000"#,
            r#""retry_max_nanos":86400000000001"#,
        ),
        (r#""plugin_id""#, r#""repository_id":"r","plugin_id""#),
        (r#""plugin_id""#, r#""default_branch":"main","plugin_id""#),
        (
            r#""plugin_id""#,
            r#""delivery_policy":"review","plugin_id""#,
        ),
        (
            r#""version":1"#,
            r#""version":1,"delivery_policy":"review""#,
        ),
        (r#""environment":[]"#, r#""environment":null"#),
        (r#""environment":[]"#, r#""environment":["PATH","PATH"]"#),
        (r#""environment":[]"#, r#""environment":["path"]"#),
        (r#""max_attempts":3"#, r#""max_attempts":3.0"#),
        (r#""max_attempts":3"#, r#""max_attempts":-1"#),
        (r#""worker_pool":"coding","#, ""),
    ] {
        let text = TEXT.replace(from, to);
        assert_ne!(text, TEXT);
        assert!(read(&text).is_err(), "{to}");
    }
}

#[test]
fn sixty_four_environment_names_pass_and_one_more_does_not() {
    let names = |count: usize| {
        (0..count)
            .map(|index| format!("\"NAME_{index}\""))
            .collect::<Vec<_>>()
            .join(",")
    };
    let with = |count| {
        read(&TEXT.replace(
            r#""environment":[]"#,
            &format!(r#""environment":[{}]"#, names(count)),
        ))
    };
    assert_eq!(with(64).unwrap().execution().environment().len(), 64);
    assert!(with(65).is_err());
}

#[test]
fn a_policy_must_fit_into_sixteen_kibibytes() {
    // 64 names of up to 128 bytes and one branch of 255 bytes stay below; so the bound is kept by
    // the other bounds, and the check is the last line.
    let names: Vec<String> = (0..64).map(|index| format!("\"N{index:0>127}\"")).collect();
    let text = TEXT.replace(
        r#""environment":[]"#,
        &format!(r#""environment":[{}]"#, names.join(",")),
    );
    let policy = read(&text).unwrap();
    assert!(policy.canonical().len() <= MAX_POLICY_BYTES);
}

#[test]
fn a_ceiling_names_the_limit_that_is_above_it() {
    let limits = *read(TEXT).unwrap().execution().limits();
    assert_eq!(limits.within(&limits), Ok(()));
    let second = Duration::from_secs(1);
    let lower: [(&str, ExecutionLimits); 7] = [
        (
            "plugin_timeout",
            ExecutionLimits {
                plugin_timeout: second,
                ..limits
            },
        ),
        (
            "check_timeout",
            ExecutionLimits {
                check_timeout: second,
                ..limits
            },
        ),
        (
            "git_timeout",
            ExecutionLimits {
                git_timeout: second,
                ..limits
            },
        ),
        (
            "cleanup_timeout",
            ExecutionLimits {
                cleanup_timeout: second,
                ..limits
            },
        ),
        (
            "plugin_output_bytes",
            ExecutionLimits {
                plugin_output_bytes: 1,
                ..limits
            },
        ),
        (
            "check_output_bytes",
            ExecutionLimits {
                check_output_bytes: 1,
                ..limits
            },
        ),
        (
            "git_output_bytes",
            ExecutionLimits {
                git_output_bytes: 1,
                ..limits
            },
        ),
    ];
    for (name, ceilings) in lower {
        assert_eq!(limits.within(&ceilings).unwrap_err().as_str(), name);
        assert_eq!(ceilings.within(&limits), Ok(()));
    }
}
