//! A receipt with a timestamp token: both programs take it, and neither takes it when it is changed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// The receipt and its trust store, which the tests of the crate verify too.
const VECTOR: &str = "crates/attest-verify/tests/vectors/stamped";

/// Has both programs judge it; returns how many comparisons there were and what was found.
pub(super) fn run(
    root: &Path,
    programs: [&Path; 2],
    folder: &Path,
) -> Result<(usize, Vec<String>)> {
    fs::create_dir_all(folder)?;
    let vector = root.join(VECTOR);
    let receipt = fs::read_to_string(vector.join("receipt.yaml"))?;
    let (head, tail) = receipt
        .split_once("timestamp_token: MIIG")
        .context("the receipt has no token")?;
    let middle = tail.len().min(400);
    let (kept, rest) = tail.split_at_checked(middle).context("a short token")?;
    let (letter, rest) = rest.split_at_checked(1).context("a short token")?;
    let other = if letter == "A" { "B" } else { "A" };
    let changed = format!("{head}timestamp_token: MIIG{kept}{other}{rest}");
    let cases = [("whole", receipt.as_str(), 0), ("changed", &changed, 1)];
    let mut findings = Vec::new();
    let mut count = 0_usize;
    for (what, text, expected) in cases {
        let path = folder.join(format!("{what}.yaml"));
        fs::write(&path, text)?;
        for program in programs {
            count += 1;
            let status = Command::new(program)
                .args(["verify", "--require", "timestamp", "--trust-store"])
                .arg(vector.join("trust"))
                .arg(&path)
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .with_context(|| format!("cannot start {}", program.display()))?;
            if status.code() != Some(expected) {
                findings.push(format!(
                    "stamped receipt, {what}: {} ended with {status} instead of {expected}",
                    program.display()
                ));
            }
        }
    }
    Ok((count, findings))
}
