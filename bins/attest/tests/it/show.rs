//! `attest show`: readable, 80 columns, every foreign text made visible.

use crate::bed::Bed;

const PLUGINS: &str = "plugins:
- name: policy
  version: 1.0.0
  protocol: 1
  digest: blake3:0000000000000000000000000000000000000000000000000000000000000000
  decision: warn
  deterministic: true
  annotation:
    note: \"all is \\e[32mfine\\e[0m\\u202E\"
";

/// Lines of a log are shown as they were, all others fit the screen.
fn fits(text: &str) {
    for line in text.lines().filter(|line| !line.starts_with("  | ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_receipt_is_readable_in_80_columns() {
    let bed = Bed::with_vectors();
    for name in [
        "r1_pipeline_signed.yaml",
        "r3_unsigned.yaml",
        "r6_wrapped.yaml",
        "v0.1.0/r1_pipeline_signed.yaml",
    ] {
        let ran = bed.attest(&["show", name]).expect(0);
        fits(&ran.out);
        assert_eq!(ran.err, "");
        for needed in ["execution", "success", "pipeline hash", "steps ("] {
            assert!(ran.out.contains(needed), "{needed} in {}", ran.out);
        }
    }
    let out = bed.attest(&["show", "r1_pipeline_signed.yaml"]).out;
    assert!(out.contains("build: out/ab.txt"), "{out}");
    assert!(out.contains("commit 9b8b02c52031"), "{out}");
    // Hashes have their algorithm, whole ones and those that are cut.
    let receipt = bed.read("r1_pipeline_signed.yaml");
    let written = |field: &str| {
        let rest = receipt.split(field).nth(1).unwrap_or_default();
        rest.split_whitespace().next().unwrap_or_default()
    };
    let whole = format!("pipeline hash\n  blake3:{}\n", written("pipeline_hash: "));
    assert!(out.contains(&whole), "{whole} in {out}");
    for field in ["input_hash: ", "output_hash: "] {
        let cut = format!("blake3:{}…", &written(field)[..8]);
        assert!(out.contains(&cut), "{cut} in {out}");
    }
    assert!(out.contains("0654120df44ec106cbbfaecdac064695"), "{out}");
    assert!(!out.contains("alone true"), "{out}");
}

#[test]
fn logs_are_shown_line_by_line_and_obeyed_by_no_terminal() {
    let bed = Bed::with_vectors();
    let out = bed
        .attest(&["show", "--logs", "r1_pipeline_signed.yaml"])
        .out;
    assert!(out.contains("  | hi alone true\n"), "{out}");
    assert!(out.contains("\\u{1b}[1mx"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
}

#[test]
fn annotations_are_untrusted_text_and_the_originals_answer_is_told() {
    let bed = Bed::with_vectors();
    let receipt = bed.read("r1_pipeline_signed.yaml") + PLUGINS;
    bed.write("plugins.yaml", receipt);
    let out = bed.attest(&["show", "plugins.yaml"]).expect(0).out;
    fits(&out);
    assert!(out.contains("policy 1.0.0: warn"), "{out}");
    assert!(out.contains("nobody has checked"), "{out}");
    assert!(out.contains("| {\"note\":\"all is"), "{out}");
    assert!(
        !out.contains('\u{1b}') && !out.contains('\u{202e}'),
        "{out}"
    );
    assert!(out.contains("0.1.0 to 0.4.0"), "{out}");
}

#[test]
fn json_has_the_receipt_as_it_is() {
    let bed = Bed::with_vectors();
    let ran = bed.attest(&["--format", "json", "show", "r1_pipeline_signed.yaml"]);
    let record: serde_json::Value = serde_json::from_str(&ran.expect(0).out).unwrap();
    assert_eq!(record["receipt"], "r1_pipeline_signed.yaml");
    assert_eq!(record["problems"], serde_json::json!([]));
    assert_eq!(record["document"]["steps"][1]["name"], "build");
}

#[test]
fn an_incoherent_receipt_is_shown_with_its_problems() {
    let bed = Bed::with_vectors();
    let receipt = bed
        .read("r3_unsigned.yaml")
        .replace("name: alone", "name: test");
    bed.write("twice.yaml", receipt);
    let out = bed.attest(&["show", "twice.yaml"]).expect(0).out;
    assert!(out.contains("problem: "), "{out}");
    fits(&out);
}

#[test]
fn what_cannot_be_shown_is_told_with_its_name() {
    let bed = Bed::with_vectors();
    bed.attest(&["show"]).expect(2).says("<RECEIPT>");
    bed.write("broken.yaml", "steps: [\n");
    bed.attest(&["show", "nosuch.yaml"])
        .expect(2)
        .says("`nosuch.yaml`");
    bed.attest(&["show", "."])
        .expect(2)
        .says("not a regular file");
    bed.attest(&["show", "broken.yaml"]).expect(2).says("line ");
    bed.write("list.yaml", "- a\n");
    bed.attest(&["show", "list.yaml"])
        .expect(1)
        .says("is not a receipt");
    bed.attest(&["show", "r3_unsigned.yaml", "--nonsense"])
        .expect(2);
    let piped = bed.attest(&["show", "nosuch\u{1b}[2J.yaml"]).expect(2);
    assert!(!piped.err.contains('\u{1b}'), "{}", piped.err);
}

#[test]
fn a_receipt_that_is_none_says_why_once() {
    let bed = Bed::with_vectors();
    bed.write("none.yaml", "schema_version: 3\n");
    let ran = bed.attest(&["show", "none.yaml"]).expect(1);
    assert_eq!(
        ran.err,
        "error: `none.yaml` is not a receipt\n  because: missing field `pipeline_hash`\n"
    );
}

#[test]
fn json_escapes_what_a_terminal_obeys() {
    let bed = Bed::with_vectors();
    let odd = "\u{9b}\u{7f}\u{202e}\u{2066}\u{200b}\u{2028}";
    let yaml = r#""\x9B\x7F\u202E\u2066\u200B\u2028""#;
    let text =
        bed.read("r3_unsigned.yaml")
            .replacen("runner_os: linux", &format!("runner_os: {yaml}"), 1);
    bed.write("odd.yaml", text);
    let json = ["--format", "json"];
    for args in [
        &["show", "odd.yaml"][..],
        &["diff", "odd.yaml", "r3_unsigned.yaml"],
        &["verify", "odd.yaml", "r3_unsigned.yaml\u{202e}"],
    ] {
        let ran = bed.attest(&[args, &json].concat());
        assert!(
            !ran.out
                .chars()
                .any(|c| c != '\n' && (c.is_control() || odd.contains(c))),
            "{args:?} {}",
            ran.out
        );
        for line in ran.out.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        assert!(ran.out.contains("\\u202e"), "{args:?} {}", ran.out);
    }
    let ran = bed.attest(&["--format", "json", "show", "odd.yaml"]);
    let record: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(record["document"]["provenance"]["runner_os"], odd);
}

#[test]
fn logs_without_effect_are_refused() {
    let bed = Bed::with_vectors();
    bed.attest(&["--format", "json", "show", "--logs", "r3_unsigned.yaml"])
        .expect(2)
        .says("--logs requires --format human");
}
