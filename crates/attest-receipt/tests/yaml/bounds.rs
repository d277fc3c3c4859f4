//! Documents that are too long, too deep or made to cost: refused early, read in linear time.
//!
//! Nothing here asserts a speed. The large documents have the shapes at which a reader's work
//! could grow with the square of their length; such a reader would not end within a test's time.

use attest_receipt::yaml::{self, IntoJson as _, Limits, MAX_VALUES, Node, Value, YamlError};

const LIMITS: Limits = Limits {
    bytes: 16 << 20,
    depth: 64,
};

/// Elements of a large document.
const MANY: usize = 1_000_000;

fn refused(document: &str) -> String {
    match yaml::parse(document.as_bytes(), &LIMITS) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a09_a_file_beyond_the_limit_is_not_read() {
    let error = yaml::parse(&vec![b'{'; (16 << 20) + 1], &LIMITS).unwrap_err();
    let (limit, actual) = (16 << 20, (16 << 20) + 1);
    assert_eq!(error, YamlError::TooLong { limit, actual });
    let comment = format!("#{}", " ".repeat((16 << 20) - 1));
    assert_eq!(comment.len(), LIMITS.bytes);
    assert!(yaml::parse(comment.as_bytes(), &LIMITS).is_ok());
}

#[test]
fn a09_depth_bombs() {
    let deep = "nested deeper than 64 levels";
    for bomb in [
        "[".repeat(1 << 20),
        "{a: ".repeat(1 << 20),
        "[\n".repeat(1 << 20),
        "- ".repeat(1 << 20),
        "? ".repeat(1 << 20),
        format!("{{\"a\":{}", "[".repeat(1 << 20)),
        "{\"a\":".repeat(1 << 20),
    ] {
        let error = refused(&bomb);
        assert!(
            error.contains(deep) || error.contains("a key must be a text"),
            "{}: {error}",
            &bomb[..8]
        );
    }
    let stairs: String = (0..100)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    assert!(refused(&stairs).contains(deep), "{}", refused(&stairs));
}

#[test]
fn the_depth_limit_is_met_exactly() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert_eq!(refused(&nested(64)), "");
        assert!(refused(&nested(65)).contains("nested deeper than 64 levels"));
    }
    let unlimited = Limits {
        depth: usize::MAX,
        ..LIMITS
    };
    // However much a caller allows, the recursion of what follows stays bounded.
    let nested = "[".repeat(strict_json::MAX_DEPTH + 1);
    let error = yaml::parse(nested.as_bytes(), &unlimited).unwrap_err();
    assert!(error.to_string().contains("nested deeper than 512 levels"));
}

fn elements(node: &Node) -> usize {
    match &node.value {
        Value::Sequence(items) => items.len(),
        Value::Mapping(members) => members.len(),
        Value::Scalar { text, .. } => text.len(),
    }
}

#[track_caller]
fn reads(document: &str, expected: usize) {
    let node = yaml::parse(document.as_bytes(), &LIMITS);
    assert_eq!(node.as_ref().map(elements), Ok(expected));
    assert!(node.and_then(Node::into_json).is_ok());
}

#[test]
fn a09_a_million_items_of_a_block_sequence() {
    reads(&"- a\n".repeat(MANY), MANY);
}

#[test]
fn a09_a_million_items_of_a_flow_sequence() {
    reads(&format!("[{}]", "a,".repeat(MANY)), MANY);
}

#[test]
fn a09_a_million_items_of_json() {
    let document = format!("{{\"a\":[{}0]}}", "0,".repeat(MANY));
    reads(&document, 1);
}

#[test]
fn a09_very_many_keys() {
    let keys: String = (0..MANY / 5).map(|key| format!("k{key}: 1\n")).collect();
    reads(&keys, MANY / 5);
    let twice = format!("{keys}k0: 1\n");
    assert_eq!(
        refused(&twice),
        "line 200001: duplicate entry with key \"k0\""
    );
}

#[test]
fn a09_one_very_long_scalar() {
    reads(&"a".repeat(4 << 20), 4 << 20);
    reads(&format!("\"{}\"", "a ".repeat(2 << 20)), 4 << 20);
    reads(&format!("|\n{}", "  a\n".repeat(1 << 20)), 2 << 20);
    reads(&format!("'{}'", "''".repeat(2 << 20)), 2 << 20);
    reads(&"!a".repeat(1 << 20).replacen('!', "x", 1), 2 << 20);
}

#[test]
fn a09_candidates_for_keys_that_come_to_nothing() {
    // Each opens something that could be a key until a kilobyte has passed.
    let lists = format!("[{}]", "[[[[]]]],".repeat(MANY / 5));
    reads(&lists, MANY / 5);
    let texts = format!("[{}]", "\"a\" ,".repeat(MANY / 2));
    reads(&texts, MANY / 2);
}

#[test]
fn the_number_of_values_is_bounded() {
    let short = format!("[{}]", "a,".repeat(MAX_VALUES));
    assert!(refused(&short).contains("more than 2097152 values"));
    let json = format!("{{\"a\":[{}0]}}", "0,".repeat(MAX_VALUES));
    assert!(refused(&json).contains("more than 2097152 values"));
}
