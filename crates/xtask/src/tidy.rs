//! Small rules that keep the tree readable: file heads and sizes, lint tables, words that a
//! public repository does not need.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::floors::UNSAFE_CRATE;
use crate::stage::{Verdict, report};
use crate::workspace::{files, metadata, root};

/// Lines of a Rust file without its tests.
const LINES: usize = 700;

/// Runs the check.
pub(crate) fn run() -> Result<Verdict> {
    let root = root()?;
    let mut findings = Vec::new();
    let files = files(&root)?;
    for path in &files {
        let name = path.to_string_lossy();
        let Ok(text) = fs::read_to_string(root.join(path)) else {
            continue; // not text: pictures and corpora have no lines to judge
        };
        if name.ends_with(".rs") && !name.contains("/tests/data/") {
            rust_file(&name, &text, &mut findings);
        }
        words(&name, &text, &mut findings);
    }
    lint_tables(&root, &mut findings)?;
    Ok(report("tidy", &format!("{} files", files.len()), &findings))
}

fn rust_file(name: &str, text: &str, findings: &mut Vec<String>) {
    if !text.starts_with("//!") && !text.starts_with("#![") {
        findings.push(format!(
            "{name} does not open with `//!`, which says what it is for"
        ));
    }
    let tested =
        name.contains("/tests/") || name.ends_with("/tests.rs") || name.contains("/benches/");
    let lines = without_tests(text);
    if !tested && lines > LINES {
        findings.push(format!(
            "{name} has {lines} lines without its tests, {LINES} are the limit"
        ));
    }
    for word in ["todo!(", "unimplemented!(", "#[ignore"] {
        if text.contains(word) && !name.starts_with("crates/xtask/") {
            findings.push(format!("{name} contains `{word}`"));
        }
    }
}

fn without_tests(text: &str) -> usize {
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .count()
}

fn words(name: &str, text: &str, findings: &mut Vec<String>) {
    // A scenario speaks of machines that are made for it.
    let scenario = name
        .strip_prefix("e2e/")
        .is_some_and(|rest| rest.ends_with(".py") || rest.ends_with(".nix"));
    if scenario
        || name == "Cargo.lock"
        || name.starts_with("crates/xtask/")
        || name.contains("/tests/data/")
    {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        for word in ["/root/", "/home/runner", "/Users/"] {
            if line.contains(word) {
                findings.push(format!(
                    "{name}:{} names a path of one machine: {word}",
                    number + 1
                ));
            }
        }
    }
}

/// Every member inherits the lint table; the one crate with unsafe code repeats it.
fn lint_tables(root: &Path, findings: &mut Vec<String>) -> Result<()> {
    let shared: toml::Table = toml::from_str(&fs::read_to_string(root.join("Cargo.toml"))?)?;
    let shared = shared
        .get("workspace")
        .and_then(|table| table.get("lints"))
        .context("the root manifest has no [workspace.lints]")?
        .clone();
    for member in metadata(root)?.members.values() {
        let manifest = fs::read_to_string(member.folder.join("Cargo.toml"))?;
        let manifest: toml::Table = toml::from_str(&manifest)?;
        let Some(lints) = manifest.get("lints") else {
            findings.push(format!("`{}` has no [lints]", member.name));
            continue;
        };
        let inherits = lints.get("workspace").and_then(toml::Value::as_bool) == Some(true);
        if member.name != UNSAFE_CRATE {
            if !inherits {
                findings.push(format!("`{}` does not inherit the lint table", member.name));
            }
            continue;
        }
        let mut own = lints.clone();
        let unsafe_code = own
            .get_mut("rust")
            .and_then(toml::Value::as_table_mut)
            .and_then(|rust| rust.insert("unsafe_code".to_owned(), "forbid".into()));
        if unsafe_code.as_ref().and_then(toml::Value::as_str) != Some("deny") {
            findings.push(format!("`{UNSAFE_CRATE}` must set unsafe_code = \"deny\""));
        }
        if own != shared {
            findings.push(format!(
                "the lint table of `{UNSAFE_CRATE}` differs from the root's in more than unsafe_code"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_head_and_a_long_file_are_found() {
        let mut findings = Vec::new();
        rust_file("crates/a/src/lib.rs", "fn a() {}\n", &mut findings);
        assert_eq!(findings.len(), 1);
        let long = format!("//! Head.\n{}", "\n".repeat(LINES));
        rust_file("crates/a/src/long.rs", &long, &mut findings);
        assert_eq!(findings.len(), 2);
    }

    #[test]
    fn tests_do_not_count_as_lines() {
        let text = format!(
            "//! Head.\nfn a() {{}}\n#[cfg(test)]\n{}",
            "\n".repeat(LINES)
        );
        assert_eq!(without_tests(&text), 2);
    }

    #[test]
    fn a_machine_path_is_found() {
        let mut findings = Vec::new();
        words("docs/a.md", "see /root/clone\n", &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
