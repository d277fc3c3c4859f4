//! The workspace of the demonstration: two steps in a few lines of shell, and a build with a flaw.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::command::Ran;
use crate::error::DemoError;
use crate::place::Place;
use crate::present::quoted;

/// The receipt that is made.
pub(super) const RECEIPT: &str = "receipt.yaml";
/// The copy with another digit.
pub(super) const CHANGED: &str = "changed.yaml";

/// The receipt of a run that a plugin refuses, which is never made.
pub(super) const DENIED: &str = "denied.yaml";

/// What is typed to build twice.
pub(super) const TWICE: [&str; 6] = [
    "run",
    "--check-reproducibility",
    "-p",
    "stamped.yaml",
    "--receipt",
    "twice.yaml",
];

const PIPELINE: &str = "\
version: \"1.0\"
name: total
steps:
  sum:
    run: mkdir -p out && sh sum.sh < numbers.txt > out/total.txt
    inputs: [sum.sh, numbers.txt]
    outputs: [out/total.txt]
  report:
    needs: [sum]
    run: read sum < out/total.txt && echo \"the total is $sum\" > out/report.txt
    inputs: [out/total.txt]
    outputs: [out/report.txt]
";

const SUM: &str = "\
# Prints the sum of the numbers that it reads.
total=0
while read -r number; do
    total=$((total + number))
done
echo \"$total\"
";

/// One of its two files has a number that is another one each time.
const STAMPED: &str = "\
version: \"1.0\"
name: stamped
steps:
  build:
    run: mkdir -p out && cp sum.sh out/ && cat /proc/sys/kernel/random/uuid > out/stamp.txt
    inputs: [sum.sh]
    outputs: [out/sum.sh, out/stamp.txt]
";
const STAMP: &str = "out/stamp.txt";
const SAME: &str = "out/sum.sh";

/// What no step may do, for a plugin that is asked before anything runs.
const POLICY: &str = "\
version = 1

[[command]]
id = \"same-each-time\"
decision = \"deny\"
severity = \"high\"
deny = [\"*random*\"]
";
/// The rule that the build with the flaw breaks.
const RULE: &str = "same-each-time";

const LONGEST_RECEIPT: u64 = 1 << 20;

/// A folder that a pipeline can run in.
#[derive(Debug)]
pub(super) struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    pub(super) fn make(place: &Place) -> Result<Self, DemoError> {
        place.folder("tmp")?;
        place.folder("work")?;
        for (name, text) in [
            ("attest.yaml", PIPELINE),
            ("stamped.yaml", STAMPED),
            ("sum.sh", SUM),
            ("numbers.txt", "19\n23\n"),
        ] {
            place.write(&format!("work/{name}"), text)?;
        }
        let folder = place.path("work");
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Declares a plugin that judges by a policy: this program under a hidden name, behind a script
    /// since a plugin is started without arguments.
    pub(super) fn declare_plugin(place: &Place) -> Result<(), DemoError> {
        let program = quoted(&place.program);
        let script = format!("#!/bin/sh\nexec {program} __attest-policy\n");
        let script = place.write_script("attest-policy", &script)?;
        let plugins = format!(
            "schema_version = 1\n\n[[plugin]]\nname = \"policy\"\ncommand = {}\ndigest = \"\"\n\
             protocol = \"1\"\nhooks = [\"pipeline.validate\"]\ndeterministic = true\n",
            json!(script)
        );
        place.write("work/.attest/plugins.toml", &plugins)?;
        place.write("work/.attest/policy.toml", POLICY)?;
        Ok(())
    }

    /// Insists that the plugin's rule stopped a run before it did or left anything.
    pub(super) fn denial(&self, ran: &Ran) -> Result<String, DemoError> {
        let said = ran.messages();
        let told = said.contains("policy") && said.contains(RULE);
        if told && !self.folder.join(DENIED).exists() {
            return Ok(RULE.to_owned());
        }
        Err(ran.otherwise(&format!("no receipt, and the rule {RULE}"), said))
    }

    /// Copies the receipt with one digit of a hash changed, and returns the line before and after.
    pub(super) fn forge_a_digit(&self) -> Result<(String, String), DemoError> {
        let read = |source| DemoError::State {
            what: "read",
            source,
        };
        let path = self.folder.join(RECEIPT);
        let bytes = safe_fs::read_bounded(&path, LONGEST_RECEIPT).map_err(read)?;
        let text = String::from_utf8_lossy(&bytes);
        let (before, after) = other_digit(&text).ok_or_else(|| DemoError::Broken {
            what: "the receipt",
            expected: "the hash of an input".to_owned(),
            found: format!("{} bytes without one", text.len()),
        })?;
        let changed = text.replacen(&before, &after, 1);
        safe_fs::write_atomic(&self.folder.join(CHANGED), changed.as_bytes(), 0o600).map_err(
            |source| DemoError::State {
                what: "write",
                source,
            },
        )?;
        let shown = |line: &str| super::command::short(line.trim_start());
        Ok((shown(&before), shown(&after)))
    }
}

/// The first line with the hash of an input, and the same line with another first digit.
fn other_digit(receipt: &str) -> Option<(String, String)> {
    const FIELD: &str = "input_hash: ";
    let line = receipt
        .lines()
        .find(|line| line.trim_start().starts_with(FIELD))?;
    let (field, hash) = line.split_at(line.find(FIELD)? + FIELD.len());
    let (first, rest) = hash.split_at_checked(1)?;
    let other = if first == "0" { "1" } else { "0" };
    Some((line.to_owned(), format!("{field}{other}{rest}")))
}

/// The steps as the user wrote them.
pub(super) fn told() -> String {
    commands(PIPELINE)
}

/// The policy as its author wrote it.
pub(super) fn told_policy() -> String {
    let lines = POLICY.lines().skip_while(|line| !line.starts_with('['));
    let lines: Vec<String> = lines.map(|line| format!("   {line}")).collect();
    lines.join("\n")
}

/// The step with the flaw.
pub(super) fn told_stamped() -> String {
    commands(STAMPED)
}

/// The commands of a pipeline, each below its step's name.
fn commands(pipeline: &str) -> String {
    let mut out = String::new();
    let mut name = "";
    for line in pipeline.lines() {
        if let Some(command) = line.trim_start().strip_prefix("run: ") {
            out.push_str(&forge_client::wrap(
                command,
                &format!("   {name:<8}"),
                &" ".repeat(11),
            ));
        } else if let Some(step) = line.strip_suffix(':') {
            name = step.trim_start();
        }
    }
    out.trim_end().to_owned()
}

/// Insists that what differs between the two builds is the one file, and returns it.
pub(super) fn differing(ran: &Ran) -> Result<String, DemoError> {
    let said = ran.messages();
    let names = |name: &str| said.lines().any(|line| line.ends_with(&format!(" {name}")));
    if names(STAMP) && !names(SAME) {
        return Ok(STAMP.to_owned());
    }
    Err(ran.otherwise(STAMP, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_digit_becomes_another_one() {
        for (digit, other) in [("0", "1"), ("1", "0"), ("f", "0")] {
            let receipt = format!("steps:\n- name: a\n  input_hash: {digit}abc\n  x: y\n");
            let (before, after) = other_digit(&receipt).unwrap();
            assert_eq!(before, format!("  input_hash: {digit}abc"));
            assert_eq!(after, format!("  input_hash: {other}abc"));
        }
        assert_eq!(other_digit("input_hash: "), None);
        assert_eq!(other_digit("steps: []\n"), None);
    }

    #[test]
    fn the_commands_that_are_told_fit_the_screen() {
        let text = [told(), told_stamped()].join("\n");
        assert!(
            text.starts_with("   sum     mkdir -p out && sh sum.sh"),
            "{text}"
        );
        assert!(
            text.contains("\n   report  read sum") && text.contains("\n   build   "),
            "{text}"
        );
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
