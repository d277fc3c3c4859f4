//! Reads every line of the corpus as one compact object; the name of a file is the rule.

use std::path::Path;

use strict_json::{JsonError, Layout, Limits, Object, parse_object};

fn accept(path: &Path) -> datatest_stable::Result<()> {
    each_line(path, |line, read| match read {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("`{}` was refused: {error}", line.escape_ascii())),
    })
}

fn reject(path: &Path) -> datatest_stable::Result<()> {
    each_line(path, |line, read| match read {
        Ok(object) => Err(format!("`{}` was read as {object:?}", line.escape_ascii())),
        Err(_) => Ok(()),
    })
}

type Judge = fn(&[u8], Result<Object, JsonError>) -> Result<(), String>;

fn each_line(path: &Path, judge: Judge) -> datatest_stable::Result<()> {
    let limits = Limits {
        bytes: 1 << 20,
        depth: 8,
    };
    let bytes = std::fs::read(path)?;
    let lines = bytes
        .strip_suffix(b"\n")
        .ok_or("the file must end with a line feed")?;
    for line in lines.split(|byte| *byte == b'\n') {
        judge(line, parse_object(line, &limits, Layout::Compact))?;
    }
    Ok(())
}

datatest_stable::harness! {
    { test = accept, root = "tests/data/accept", pattern = r"\.ndjson$" },
    { test = reject, root = "tests/data/reject", pattern = r"\.ndjson$" },
}
