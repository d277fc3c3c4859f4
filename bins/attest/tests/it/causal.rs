//! `attest causal`: questions to the ledger.

use serde_json::Value;

use crate::bed::{Bed, snapshot};

const PIPELINE: &str = r#"version: "1"
steps:
  first: {run: "true"}
  second: {run: "true", needs: [first]}
  "third: step with a name that is much too long for its column": {run: "true", needs: [second]}
  apart: {run: "exit 3"}
"#;

fn built() -> Bed {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write("attest.yaml", PIPELINE);
    bed.attest(&["-q", "run"]).expect(1);
    bed
}

fn ids(bed: &Bed, step: &str) -> Vec<String> {
    let mut args = vec!["causal", "events", "--format", "json", "--limit", "100"];
    if !step.is_empty() {
        args.extend(["--step", step]);
    }
    let ran = bed.attest(&args).expect(0);
    let id = |line| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["event_id"].as_str().unwrap().to_owned()
    };
    ran.out.lines().map(id).collect()
}

#[test]
fn numbers_lists_paths_and_chains() {
    let bed = built();
    let before = snapshot(bed.folder());
    let ran = bed
        .attest(&["causal", "stats", "--format", "json", "--detailed"])
        .expect(0);
    assert_eq!(
        ran.out.trim_end(),
        r#"{"total_events":4,"total_chains":2,"root_events":2,"leaf_events":2,"avg_chain_length":2,"damaged":[]}"#
    );
    let ran = bed
        .attest(&["causal", "events", "-l", "3"])
        .expect(0)
        .says("showing 3 of 4 events");
    assert_eq!(ran.out.lines().count(), 3);
    assert!(
        ran.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.out
    );
    let ran = bed.attest(&["causal", "events"]).expect(0);
    assert!(
        !ran.out.contains('\u{1b}') && ran.out.contains("exit 3"),
        "{}",
        ran.out
    );

    let (first, second, apart) = (
        &ids(&bed, "first")[0],
        &ids(&bed, "second")[0],
        &ids(&bed, "apart")[0],
    );
    let ran = bed
        .attest(&["causal", "path", &first[..8], second, "--detailed"])
        .expect(0);
    assert!(
        ran.out.starts_with(&format!("from  {first}\n")),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains(&format!("to    {second}\n")),
        "{}",
        ran.out
    );
    bed.attest(&["causal", "path", second, first]).expect(1);
    bed.attest(&["causal", "path", apart, first]).expect(1);
    bed.attest(&["causal", "path", first, &"0".repeat(64)])
        .expect(1)
        .says("no event");
    bed.attest(&["causal", "path", first, "../x"])
        .expect(2)
        .says("not the id");
    bed.attest(&["causal", "chain"]).expect(2);
    let ran = bed
        .attest(&["causal", "chain", "--format", "json", second, first])
        .expect(0);
    let chain: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(chain["events"][0]["event_id"], first.as_str());
    assert_eq!(snapshot(bed.folder()), before, "questions change nothing");

    let ran = bed
        .attest(&["causal", "chain", "--save", second, first])
        .expect(0);
    let id = chain["chain_id"].as_str().unwrap();
    let name = format!(".attest/causal_ledger/chains/{id}.json");
    assert!(ran.out.contains(&name), "{}", ran.out);
    let saved: Value = serde_json::from_str(&bed.read(&name)).unwrap();
    assert_eq!(saved["chain_hash"], chain["chain_hash"]);
    bed.attest(&["causal", "chain", "--save", second, first])
        .expect(0);
    assert_eq!(bed.names(".attest/causal_ledger/chains").len(), 1);
}

#[test]
fn a31_a_damaged_event_is_named_and_takes_no_part() {
    let bed = built();
    let first = ids(&bed, "first")[0].clone();
    let second = ids(&bed, "second")[0].clone();
    let file = format!(".attest/causal_ledger/events/{first}.json");
    let good = bed.read(&file);
    for changed in [
        good.replace("\"first\"", "\"other\""),
        good.replace(&first, &second),
        "{}".to_owned(),
        "\u{1b}[2J".to_owned(),
    ] {
        bed.write(&file, changed);
        let ran = bed
            .attest(&["causal", "stats"])
            .expect(1)
            .says(&first)
            .says("is not believed");
        assert!(!ran.err.contains('\u{1b}'));
        assert!(ran.out.contains("events         3\n"), "{}", ran.out);
        bed.attest(&["causal", "path", &first, &second])
            .expect(1)
            .says("no event");
        let ran = bed
            .attest(&["causal", "events", "--format", "json"])
            .expect(1);
        assert_eq!(ran.out.lines().count(), 3);
    }
    bed.write(&file, &good);
    bed.write(".attest/causal_ledger/events/.half", "x");
    bed.attest(&["causal", "stats"]).expect(0);
    bed.write(".attest/causal_ledger/events/note.json", &good);
    bed.attest(&["causal", "stats"])
        .expect(1)
        .says("its name is no id");
}

#[test]
fn an_absent_ledger_is_empty() {
    let bed = Bed::new();
    let ran = bed.attest(&["causal", "events"]).expect(0);
    assert_eq!(ran.out, "no causal events recorded\n");
    bed.attest(&["causal", "events", "--format", "json"])
        .expect(0);
    let ran = bed.attest(&["causal", "stats"]).expect(0);
    assert!(ran.out.contains("events         0\n"), "{}", ran.out);
    assert!(bed.names(".").is_empty(), "nothing was made");
}
