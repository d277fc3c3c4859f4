//! The page about policy files: its example is one, and it knows every key.

use attest_verify::Policy;

fn page() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/attest-verify-policy.md"
    );
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_example_of_the_page_is_a_policy_with_every_rule() {
    let page = page();
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let policy = Policy::parse(example.as_bytes()).unwrap();
    let rules: Vec<_> = policy
        .requirements()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        rules,
        [
            "success",
            "plugin:policy",
            "policy:signer",
            "policy:steps",
            "policy:max_age"
        ]
    );
}

#[test]
fn the_page_names_every_key_of_the_file() {
    let error = Policy::parse(b"version = 1\nnonsense = 1\n").unwrap_err();
    let error = error.to_string();
    let (_, keys) = error.split_once("expected one of ").unwrap();
    let page = page();
    for key in keys.split(", ") {
        let key = key.trim_matches('`');
        let told = page.contains(&format!("| `{key}` |")) || page.contains(&format!("[[{key}]]"));
        assert!(told, "{key}");
    }
}
