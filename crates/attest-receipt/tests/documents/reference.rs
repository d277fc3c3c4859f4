//! The reference pages name what there is.

use attest_receipt::pipeline::Pipeline;
use serde_json::Value;

use crate::sample::full;

const RECEIPT: &str = include_str!("../../../../docs/reference/receipt.md");
const PIPELINE: &str = include_str!("../../../../docs/reference/pipeline.md");

/// Collects the keys of all objects, but not those of an annotation, which are foreign.
fn keys(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                found.push(key.clone());
                if key != "annotation" && key != "env" && key != "steps" {
                    keys(value, found);
                }
                if let (true, Value::Array(_)) = (key == "steps", value) {
                    keys(value, found);
                }
                if let (true, Value::Object(steps)) = (key == "steps", value) {
                    steps.values().for_each(|step| keys(step, found));
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

fn named(page: &str, value: &Value) -> usize {
    let mut found = Vec::new();
    keys(value, &mut found);
    for key in &found {
        let mentioned = page.contains(&format!("`{key}`")) || page.contains(&format!("`{key}: "));
        assert!(mentioned, "the page does not name `{key}`");
    }
    found.len()
}

#[test]
fn the_page_of_receipts_names_every_field() {
    assert!(named(RECEIPT, &full()) > 70);
}

#[test]
fn the_page_of_pipelines_has_an_example_that_is_one_and_names_every_key() {
    let (_, example) = PIPELINE.split_once("```yaml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let pipeline = Pipeline::read(example.as_bytes()).unwrap();
    assert_eq!(pipeline.order(), ["build", "test"]);
    let every_key = "{schema_version: 1, version: x, name: x, secrets: [A], steps: {a: {run: x,
        attestation: {type: x}}}}";
    let pipeline = Pipeline::read(every_key.as_bytes()).unwrap();
    assert!(named(PIPELINE, &serde_json::to_value(&pipeline).unwrap()) > 22);
}
