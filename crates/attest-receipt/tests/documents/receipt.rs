//! Which documents are receipts: every field, its type, its absence, at every depth.

use attest_receipt::receipt::{self, ReadError, SchemaError};
use serde_json::{Value, json};

use crate::sample::{self, full, path, pointers, refusal, with};

/// The fields that may be absent; where `true`, they may also be null.
const OPTIONAL: &[(&str, bool)] = &[
    ("/schema_version", false),
    ("/signature", true),
    ("/signer_public_key", true),
    ("/causal_chain_hash", true),
    ("/reproducibility", true),
    ("/provenance", true),
    ("/timestamp_token", true),
    ("/isolation", true),
    ("/plugins", true),
    ("/steps/0/capsule_hash", true),
    ("/provenance/invocation_id", true),
    ("/provenance/started_at", true),
    ("/provenance/pipeline_name", true),
    ("/provenance/source", true),
    ("/provenance/source/repository", true),
    ("/provenance/source/branch", true),
    ("/provenance/ci", true),
    ("/provenance/ci/run_id", true),
    ("/provenance/ci/job_id", true),
    ("/provenance/execution", true),
    ("/isolation/capsule_steps", false),
    ("/plugins/1/annotation", true),
];

fn objects() -> Vec<String> {
    let full = full();
    let is_typed = |pointer: &&String| !pointer.contains("annotation");
    pointers(&full)
        .iter()
        .filter(is_typed)
        .filter(|pointer| full.pointer(pointer).unwrap().is_object())
        .cloned()
        .collect()
}

/// Returns every member of every typed object: its object's pointer and its name.
fn members() -> Vec<(String, String)> {
    let full = full();
    objects()
        .into_iter()
        .flat_map(|object| {
            let members = full.pointer(&object).unwrap().as_object().unwrap();
            let names: Vec<String> = members.keys().cloned().collect();
            names.into_iter().map(move |name| (object.clone(), name))
        })
        .collect()
}

fn without(object: &str, name: &str) -> Value {
    let mut receipt = full();
    let members = receipt.pointer_mut(object).unwrap();
    members.as_object_mut().unwrap().remove(name).unwrap();
    receipt
}

fn words(object: &str, wrong: &str) -> String {
    if object.is_empty() {
        wrong.to_owned()
    } else {
        format!("{}: {wrong}", path(object))
    }
}

#[test]
fn the_full_receipt_is_read_and_written_with_every_field() {
    let receipt = sample::read(&full()).unwrap();
    let written: Value = serde_json::to_value(&receipt).unwrap();
    assert_eq!(written, full());
    let yaml = receipt.to_yaml().unwrap();
    assert_eq!(receipt::read(yaml.as_bytes()).unwrap(), receipt);
}

#[test]
fn a02_an_unknown_field_is_refused_and_named_at_every_depth() {
    let objects = objects();
    assert!(objects.len() >= 15, "{objects:?}");
    for object in objects {
        let mut receipt = full();
        let members = receipt.pointer_mut(&object).unwrap();
        let members = members.as_object_mut().unwrap();
        members.insert("extra".into(), json!(1));
        let error = sample::read(&receipt).unwrap_err().to_string();
        assert_eq!(error, words(&object, "unknown field `extra`"));
    }
}

#[test]
fn a02_a_native_execution_has_no_command_wherever_its_mode_stands() {
    for execution in [
        "{mode: native, command: [a]}",
        "{command: [a], mode: native}",
        "{mode: native, command: null}",
        "{mode: wrapped, command: [a], shell: true}",
        "{mode: wrapped}",
        "{mode: Native}",
        "{command: [a]}",
        "{}",
        "native",
    ] {
        let yaml = sample::read(&full()).unwrap().to_yaml().unwrap();
        let (head, tail) = yaml.split_once("  execution:\n").unwrap();
        let (_, tail) = tail.split_once("timestamp_token").unwrap();
        let with = |execution: &str| {
            let yaml = format!("{head}  execution: {execution}\ntimestamp_token{tail}");
            receipt::read(yaml.as_bytes())
        };
        assert!(with("{command: [a], mode: wrapped}").is_ok());
        assert!(with("{mode: native}").is_ok());
        assert!(with(execution).is_err(), "{execution}");
    }
}

#[test]
fn a_field_that_is_missing_is_named_and_only_optional_ones_may_be() {
    for (object, name) in members() {
        let pointer = format!("{object}/{name}");
        let result = sample::read(&without(&object, &name));
        if OPTIONAL.iter().any(|(optional, _)| *optional == pointer) {
            let read = result.unwrap_or_else(|error| panic!("{pointer}: {error}"));
            assert_ne!(read, sample::read(&full()).unwrap());
        } else if pointer != "/plugins/0/reason" {
            let error = result.unwrap_err().to_string();
            assert_eq!(error, words(&object, &format!("missing field `{name}`")));
        }
    }
}

#[test]
fn null_is_absent_where_a_field_is_optional_and_refused_elsewhere() {
    for (object, name) in members() {
        let pointer = format!("{object}/{name}");
        let result = with(&pointer, Value::Null);
        let nullable = OPTIONAL.contains(&(pointer.as_str(), true));
        if nullable {
            let read = result.unwrap_or_else(|error| panic!("{pointer}: {error}"));
            assert_eq!(read, sample::read(&without(&object, &name)).unwrap());
        } else if pointer != "/plugins/0/reason" {
            let error = result.unwrap_err().to_string();
            assert_eq!(
                error,
                words(&object, &format!("field `{name}` must not be null"))
            );
        }
    }
}

#[test]
fn every_value_has_its_type() {
    for pointer in pointers(&full()) {
        if pointer.contains("annotation/") || pointer.is_empty() {
            continue;
        }
        let full = full();
        let given = full.pointer(&pointer).unwrap();
        for other in [
            json!("x"),
            json!(1),
            json!(0.5),
            json!(true),
            json!([]),
            json!({}),
        ] {
            let same = matches!(
                (given, &other),
                (Value::Bool(_), Value::Bool(_)) | (Value::Object(_), Value::Object(_))
            ) || (given.is_string() && other.is_string())
                || (given.is_array() && other.is_array())
                || (given.is_u64() && other.is_u64())
                || (given.is_i64() && other.is_u64());
            if !same {
                let error = refusal(&pointer, other);
                assert!(error.contains("must be"), "{pointer}: {error}");
            }
        }
    }
}

#[test]
fn a05_integers_are_plain_decimals_in_range() {
    let integers = [
        ("schema_version", "4294967296"),
        ("total_duration_secs", "18446744073709551616"),
        ("runs", "4294967296"),
        ("exit_code", "2147483648"),
        ("exit_code", "-2147483649"),
        ("protocol", "4294967296"),
    ];
    let json = full().to_string();
    let at = |name: &str, number: &str| {
        let start = json.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
        let end = start + json[start..].find([',', '}']).unwrap();
        format!("{}{number}{}", &json[..start], &json[end..])
    };
    for (name, _) in integers {
        assert!(receipt::read(at(name, "1").as_bytes()).is_ok(), "{name}");
        for number in [
            "1.0", "1e0", "-0", "1e400", "0x1", "01", "NaN", "\"1\"", "1_0",
        ] {
            let text = at(name, number);
            assert!(receipt::read(text.as_bytes()).is_err(), "{name}: {number}");
        }
    }
    for (name, number) in integers {
        let text = at(name, number);
        assert!(receipt::read(text.as_bytes()).is_err(), "{name}: {number}");
    }
    assert!(receipt::read(at("total_duration_secs", "18446744073709551615").as_bytes()).is_ok());
    assert!(receipt::read(at("exit_code", "-2147483648").as_bytes()).is_ok());
    assert!(receipt::read(at("exit_code", "2147483647").as_bytes()).is_ok());
}

#[test]
fn a_number_that_is_none_is_told_the_range_of_its_field() {
    let small = "must be a plain integer from 0 to 4294967295";
    let signed = "must be a plain integer from -2147483648 to 2147483647";
    let version = "must be a plain integer from 0 to 3";
    for (pointer, range) in [
        ("/schema_version", version),
        ("/reproducibility/runs", small),
        ("/plugins/0/protocol", small),
        ("/steps/0/exit_code", signed),
    ] {
        for value in [json!("3"), json!(0.5), json!(-3_000_000_000_i64)] {
            let error = refusal(pointer, value);
            assert!(error.contains(range), "{pointer}: {error}");
        }
    }
    assert_eq!(
        refusal("/steps/0/exit_code", json!(0.0)),
        format!("steps[0]: field `exit_code` {signed}, not a number that is no plain integer")
    );
    assert_eq!(
        refusal("/schema_version", json!("3")),
        format!("field `schema_version` {version}, not a string")
    );
}

#[test]
fn a_fault_of_a_field_is_said_once() {
    let mut receipt = full();
    receipt.as_object_mut().unwrap().remove("steps");
    let error = receipt::read(receipt.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "missing field `steps`");
    assert!(std::error::Error::source(&error).is_none());
}

#[test]
fn a28_negative_and_huge_durations_are_refused() {
    for pointer in ["/total_duration_secs", "/steps/0/duration_secs"] {
        assert!(with(pointer, json!(u64::MAX)).is_ok());
        refusal(pointer, json!(-1));
        refusal(pointer, json!(1.5));
        refusal(pointer, json!(18_446_744_073_709_551_616_f64));
    }
}

#[test]
fn words_of_closed_sets_are_exact() {
    for (pointer, words) in [
        ("/provenance/ci/provider", &["github", "gitlab"][..]),
        ("/provenance/artifacts/0/kind", &["file", "symlink"]),
        (
            "/isolation/mode",
            &["none", "process", "container", "strict-container"],
        ),
        (
            "/isolation/controls/0/status",
            &["enforced", "not-enforced", "not-available"],
        ),
    ] {
        for word in words {
            assert!(with(pointer, json!(word)).is_ok(), "{word}");
            refusal(pointer, json!(word.to_uppercase()));
            refusal(pointer, json!(format!("{word} ")));
        }
        let error = refusal(pointer, json!("other"));
        assert!(error.contains(&words.join(", ")), "{error}");
    }
}

#[test]
fn times_are_rfc_3339_in_utc() {
    for pointer in ["/timestamp", "/provenance/started_at"] {
        assert!(with(pointer, json!("2026-11-30T12:00:00.5Z")).is_ok());
        for (time, wrong) in [
            ("2026-11-30T12:00:00+00:00", "must be a time in UTC"),
            ("2026-11-30t12:00:00z", "must be a time such as"),
            ("now", "must be a time such as"),
            ("", "must be a time such as"),
            ("2016-12-31T23:59:60Z", "has a second 60"),
            ("2026-02-30T12:00:00Z", "is no day of the calendar"),
            ("10000-01-01T00:00:00Z", "is later than 9999-12-30"),
        ] {
            let error = refusal(pointer, json!(time));
            assert!(error.contains(wrong), "{error}");
        }
    }
}

#[test]
fn a06_the_order_of_keys_and_white_space_change_nothing() {
    let yaml = sample::read(&full()).unwrap().to_yaml().unwrap();
    // A map of JSON values is sorted by key, so this document has another order than the file.
    let sorted = serde_json::to_string_pretty(&full()).unwrap();
    let spaced = yaml.replace("\nsteps:\n", "\n\n# a comment\nsteps:   \n");
    assert_ne!(spaced, yaml);
    let one = receipt::read(yaml.as_bytes()).unwrap();
    for other in [sorted, spaced] {
        let other = receipt::read(other.as_bytes()).unwrap();
        assert_eq!(other, one);
        assert_eq!(other.signing_bytes(), one.signing_bytes());
    }
}

#[test]
fn a07_reordered_steps_and_events_have_the_same_signing_bytes() {
    let mut receipt = sample::read(&full()).unwrap();
    let signing = receipt.signing_bytes();
    receipt.steps.reverse();
    receipt.causal_events.reverse();
    assert_eq!(receipt.signing_bytes(), signing);
    receipt.steps.pop();
    assert_ne!(receipt.signing_bytes(), signing);
}

#[test]
fn a33_versions_up_to_3_are_read_with_every_optional_field() {
    for version in 0..=3 {
        assert_eq!(
            with("/schema_version", json!(version))
                .unwrap()
                .schema_version,
            Some(version)
        );
    }
    let absent = sample::read(&without("", "schema_version")).unwrap();
    assert_eq!(absent.schema_version, None);
}

#[test]
fn a33_a_later_version_says_upgrade_before_anything_else_is_judged() {
    for (version, shown) in [(json!(4), 4), (json!(99), 99), (json!(u64::MAX), u64::MAX)] {
        let unknown = json!({"schema_version": version, "something": "else"});
        let error = sample::read(&unknown).unwrap_err();
        assert_eq!(error, ReadError::Schema(SchemaError::Newer(shown)));
        assert_eq!(
            error.to_string(),
            format!(
                "receipt schema_version {shown} is newer than the latest supported version (3); \
                 upgrade attest to verify this receipt"
            )
        );
    }
}

#[test]
fn a33_a_version_that_is_no_plain_number_is_refused() {
    for version in [json!("3"), json!(null), json!(-1), json!(3.0), json!([3])] {
        let error = refusal("/schema_version", version);
        assert!(error.contains("`schema_version`"), "{error}");
    }
}

#[test]
fn what_is_no_mapping_is_no_receipt() {
    for text in ["", "[]", "- a", "text", "3", "null"] {
        let error = receipt::read(text.as_bytes()).unwrap_err();
        assert!(
            matches!(error, ReadError::Schema(SchemaError::NotAMapping(_))),
            "{text:?}: {error}"
        );
    }
}

#[test]
fn a09_what_is_too_long_or_too_deep_is_refused_before_it_is_judged() {
    let long = vec![b' '; receipt::MAX_BYTES + 1];
    assert!(matches!(
        receipt::read(&long),
        Err(ReadError::Unreadable(_))
    ));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [deep.clone(), format!("a: {deep}")] {
        assert!(matches!(
            receipt::read(text.as_bytes()),
            Err(ReadError::Unreadable(_))
        ));
    }
}

#[test]
fn a01_a_key_that_stands_twice_is_refused_at_every_depth() {
    let yaml = sample::read(&full()).unwrap().to_yaml().unwrap();
    let mut refused = 0;
    for (index, line) in yaml.lines().enumerate() {
        let is_leaf = line.contains(": ") && !line.trim_start().starts_with("- ");
        if is_leaf && !line.ends_with('|') {
            let mut lines: Vec<&str> = yaml.lines().collect();
            lines.insert(index, line);
            let error = receipt::read(lines.join("\n").as_bytes()).unwrap_err();
            assert!(matches!(error, ReadError::Unreadable(_)), "{line}: {error}");
            refused += 1;
        }
    }
    assert!(refused > 40, "{refused}");
}
