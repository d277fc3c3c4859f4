//! `attest diff`: what tells two receipts apart, down to the recorded file.

use serde_json::Value;

use crate::bed::Bed;

const SIGNED: &str = "r1_pipeline_signed.yaml";
const DIGEST: &str = "da870eab2652b566399771058ea69513ca51374a3331926287223cecff63aad4";

fn json(bed: &Bed, a: &str, b: &str, code: i32) -> Value {
    let ran = bed.attest(&["diff", "--format", "json", a, b]).expect(code);
    serde_json::from_str(&ran.out).unwrap()
}

fn paths(list: &Value) -> Vec<String> {
    let path = |one: &Value| -> Vec<String> {
        let parts = one["path"].as_array().unwrap().iter();
        parts
            .map(|part| part.as_str().unwrap().to_owned())
            .collect()
    };
    let list = list.as_array().unwrap().iter();
    list.map(|one| path(one).join("/")).collect()
}

#[test]
fn a_receipt_is_the_same_as_itself() {
    let bed = Bed::with_vectors();
    let ran = bed.attest(&["diff", SIGNED, SIGNED]).expect(0);
    assert!(ran.out.ends_with("same: nothing differs\n"), "{}", ran.out);
    let record = json(&bed, SIGNED, SIGNED, 0);
    assert_eq!(record["verdict"], "same");
}

#[test]
fn times_and_signatures_are_shown_and_do_not_tell_apart() {
    let bed = Bed::with_vectors();
    let text = bed.read(SIGNED);
    let later = text
        .replace(
            "timestamp: 2026-11-30T11:51:16",
            "timestamp: 2026-11-30T11:51:17",
        )
        .replacen("duration_secs: 0", "duration_secs: 7", 1)
        .replace("signature: ea3b", "signature: ea3c");
    bed.write("later.yaml", later);
    let record = json(&bed, SIGNED, "later.yaml", 0);
    assert_eq!(record["differences"], serde_json::json!([]));
    assert_eq!(
        paths(&record["expected"]),
        ["steps/alone/duration_secs", "timestamp", "signature"]
    );
    let out = bed.attest(&["diff", SIGNED, "later.yaml"]).expect(0).out;
    assert!(out.contains("expected to differ"), "{out}");
    assert!(out.contains("steps[alone].duration_secs"), "{out}");
}

#[test]
fn a_run_and_its_repetition_from_the_cache_are_the_same() {
    let bed = Bed::new();
    std::fs::create_dir(bed.path(".attest")).unwrap();
    bed.write(
        "attest.yaml",
        "version: '1.0'\nsteps:\n  s:\n    run: echo x > o\n    outputs: [o]\n",
    );
    for receipt in ["first.yaml", "again.yaml"] {
        bed.attest(&["run", "--receipt", receipt]).expect(0);
    }
    let record = json(&bed, "first.yaml", "again.yaml", 0);
    let expected = paths(&record["expected"]);
    for needed in ["steps/s/cache_hit", "isolation/controls/inputs/detail"] {
        assert!(
            expected.iter().any(|path| path == needed),
            "{needed}: {expected:?}"
        );
    }
}

#[test]
fn another_file_is_named() {
    let bed = Bed::with_vectors();
    let other = DIGEST.replace("da87", "0000");
    let changed = bed.read(SIGNED).replace(DIGEST, &other);
    bed.write("changed.yaml", changed);
    let record = json(&bed, SIGNED, "changed.yaml", 1);
    assert_eq!(record["verdict"], "different");
    assert_eq!(
        paths(&record["differences"]),
        ["provenance/artifacts/build: out/ab.txt/digest"]
    );
    assert_eq!(record["differences"][0]["a"], DIGEST);
    assert_eq!(record["differences"][0]["b"], other);
    let out = bed.attest(&["diff", SIGNED, "changed.yaml"]).expect(1).out;
    assert!(
        out.contains("provenance.artifacts[build: out/ab.txt].digest\n  a: da87"),
        "{out}"
    );
    assert!(out.ends_with("different: 1 field\n"), "{out}");
}

#[test]
fn steps_are_compared_by_name_and_output_by_line() {
    let bed = Bed::with_vectors();
    let text = bed.read(SIGNED);
    let changed = text
        .replace("name: alone\n", "name: alone2\n")
        .replace("    err\n", "    err\n    more\n    evil \u{202e}\n");
    bed.write("changed.yaml", changed);
    let out = bed.attest(&["diff", SIGNED, "changed.yaml"]).expect(1).out;
    assert!(out.contains("steps[alone]\n"), "{out}");
    assert!(out.contains("steps[alone2]\n  a: (absent)"), "{out}");
    assert!(out.contains("steps[test].stderr (line 2, and "), "{out}");
    assert!(!out.contains('\u{202e}'), "{out}");
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn every_field_of_a_receipt_is_compared() {
    let bed = Bed::with_vectors();
    let record = json(&bed, "r1_pipeline_signed.yaml", "r6_wrapped.yaml", 1);
    let paths = paths(&record["differences"]);
    for needed in [
        "pipeline_hash",
        "steps/wrapit",
        "provenance/execution/mode",
        "provenance/execution/command",
    ] {
        assert!(
            paths.iter().any(|path| path == needed),
            "{needed}: {paths:?}"
        );
    }
}

#[test]
fn what_cannot_be_compared_is_exit_code_2() {
    let bed = Bed::with_vectors();
    bed.attest(&["diff", SIGNED]).expect(2).says("<B>");
    bed.attest(&["diff", SIGNED, "nosuch"])
        .expect(2)
        .says("`nosuch`");
    bed.attest(&["diff", "trust", SIGNED])
        .expect(2)
        .says("not a regular file");
    bed.write("list.yaml", "- a\n");
    bed.attest(&["diff", SIGNED, "list.yaml"])
        .expect(2)
        .says("is not a receipt");
    bed.attest(&["diff", SIGNED, SIGNED, SIGNED]).expect(2);
}

#[test]
fn an_order_of_steps_is_a_remark_and_what_only_one_has_is_none() {
    let bed = Bed::with_vectors();
    let text = bed.read(SIGNED);
    let steps = text.find("steps:\n").unwrap() + 7;
    let end = steps + text[steps..].find("\ntimestamp:").unwrap() + 1;
    let mut all: Vec<&str> = text[steps..end].split_inclusive("\n- name").collect();
    assert!(all.len() > 2, "{all:?}");
    let last = all.pop().unwrap();
    // Every piece but the last ends in the start of the next element.
    let first = all.remove(0).strip_suffix("\n- name").unwrap().to_owned() + "\n";
    let middle: String = all.concat();
    let middle = middle.strip_suffix("- name").unwrap();
    let turned = format!("- name{last}- name{middle}{first}");
    bed.write("turned.yaml", text.replace(&text[steps..end], &turned));
    let record = json(&bed, SIGNED, "turned.yaml", 0);
    assert_eq!(record["verdict"], "same");
    assert_eq!(paths(&record["expected"]), ["steps/(order)"]);

    let unsigned: String = text
        .lines()
        .filter(|line| !line.starts_with("signature:"))
        .map(|line| format!("{line}\n"))
        .collect();
    bed.write("unsigned.yaml", unsigned);
    let record = json(&bed, SIGNED, "unsigned.yaml", 1);
    assert_eq!(paths(&record["differences"]), ["signature"]);
    let start = text.find("causal_events:\n").unwrap() + 15;
    let line = start + text[start..].find('\n').unwrap() + 1;
    bed.write("fewer.yaml", format!("{}{}", &text[..start], &text[line..]));
    let record = json(&bed, SIGNED, "fewer.yaml", 1);
    let told = paths(&record["differences"]);
    assert!(told.iter().all(|path| path.starts_with("causal_events/")) && told.len() == 1);
    bed.write("stamped.yaml", format!("{text}timestamp_token: AAAA\n"));
    let record = json(&bed, SIGNED, "stamped.yaml", 1);
    assert_eq!(paths(&record["differences"]), ["timestamp_token"]);
}

/// Laying out in quadratic time would not come to an end within the suite's limits.
#[test]
fn texts_of_megabytes_are_cut_where_they_differ() {
    let bed = Bed::with_vectors();
    let text = bed.read("r3_unsigned.yaml");
    let long = |end: &str| {
        let stdout = format!("stdout: {}{end}\n", "x".repeat(4 << 20));
        let start = text.find("stdout: ").unwrap();
        let next = start + text[start..].find("  stderr:").unwrap();
        format!("{}{stdout}{}", &text[..start], &text[next..])
    };
    bed.write("a.yaml", long("a"));
    bed.write("b.yaml", long("b"));
    let out = bed.attest(&["diff", "a.yaml", "b.yaml"]).expect(1).out;
    assert!(out.len() < 1_000, "{}", out.len());
    assert!(out.contains("[4194272 bytes as there] xxx"), "{out}");
    assert!(out.contains("xxxa\n") && out.contains("xxxb\n"), "{out}");
    let out = bed
        .attest(&["diff", "a.yaml", "r3_unsigned.yaml"])
        .expect(1)
        .out;
    assert!(
        out.contains("more\n     bytes]") || out.contains("more bytes]"),
        "{out}"
    );
    assert!(out.len() < 12_000, "{}", out.len());
    let out = bed.attest(&["show", "--logs", "a.yaml"]).expect(0).out;
    assert!(out.len() > 4 << 20);
    let platform = format!("runner_os: {}\n", "x".repeat(4 << 20));
    let start = text.find("runner_os: ").unwrap();
    let end = start + text[start..].find('\n').unwrap() + 1;
    bed.write(
        "wide.yaml",
        format!("{}{platform}{}", &text[..start], &text[end..]),
    );
    let out = bed.attest(&["show", "wide.yaml"]).expect(0).out;
    assert!(out.len() < 10_000, "{}", out.len());
}
