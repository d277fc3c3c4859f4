//! Reads every document of the corpus; the name of a file is the rule, its neighbour the tree or
//! the message.

use std::path::Path;

use attest_receipt::fuzz_entry;
use attest_receipt::yaml::{self, IntoJson as _, Limits, Node};
use strict_json::{Json, Layout, to_line};

const LIMITS: Limits = Limits {
    bytes: 1 << 16,
    depth: 8,
};

fn read(path: &Path) -> std::io::Result<Result<Json, String>> {
    let bytes = std::fs::read(path)?;
    fuzz_entry::document(&bytes);
    Ok(yaml::parse(&bytes, &LIMITS)
        .and_then(Node::into_json)
        .map_err(|error| error.to_string()))
}

fn accept(path: &Path) -> datatest_stable::Result<()> {
    let tree = read(path)?.map_err(|error| format!("it was refused: {error}"))?;
    let limits = strict_json::Limits {
        bytes: LIMITS.bytes,
        depth: LIMITS.depth,
    };
    let expected = std::fs::read(path.with_extension("json"))?;
    let expected = strict_json::parse_value(&expected, &limits, Layout::Spaced)?;
    if tree == expected {
        return Ok(());
    }
    Err(format!("it was read as {}", to_line(&tree).escape_ascii()).into())
}

fn reject(path: &Path) -> datatest_stable::Result<()> {
    let message = match read(path)? {
        Ok(tree) => return Err(format!("it was read as {tree:?}").into()),
        Err(message) => message,
    };
    let expected = std::fs::read_to_string(path.with_extension("message"))?;
    if expected.strip_suffix('\n') == Some(&message) {
        return Ok(());
    }
    Err(format!("it was refused with: {message}").into())
}

datatest_stable::harness! {
    { test = accept, root = "tests/corpus/accept", pattern = r"\.yaml$" },
    { test = reject, root = "tests/corpus/reject", pattern = r"\.yaml$" },
}
