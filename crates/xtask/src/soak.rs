//! The soak: builds the programs and has them killed at random for a while. The judge is a program
//! of its own, `crates/soak`, so that this one needs no database.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::stage::Verdict;
use crate::tools;
use crate::workspace::{cargo, root};

/// How long the stage of `ci` makes faults.
const STAGE_SECONDS: u64 = 60;

/// `cargo xtask soak --minutes N [--seed S]`.
pub(crate) fn command(words: &[&str]) -> Result<Verdict> {
    let arguments = arguments(words)?;
    let root = root()?;
    let built = Command::new(cargo())
        .args(["build", "--quiet", "--locked", "--workspace", "--bins"])
        .current_dir(&root)
        .status()
        .context("cannot start cargo build")?;
    if !built.success() {
        bail!("the programs do not build");
    }
    run(&root, &arguments)
}

/// The stage of `ci`, whose programs are built.
pub(crate) fn stage(root: &Path) -> Result<Verdict> {
    run(root, &["--seconds".to_owned(), STAGE_SECONDS.to_string()])
}

fn run(root: &Path, arguments: &[String]) -> Result<Verdict> {
    let status = Command::new(tools::program(root, "soak")?)
        .arg("--programs")
        .arg(tools::target(root).join("debug"))
        .args(arguments)
        .current_dir(root)
        .status()
        .context("cannot start the soak")?;
    match status.code() {
        Some(0) => Ok(Verdict::Clean),
        Some(1) => Ok(Verdict::Found),
        _ => bail!("the soak could not be run: {status}"),
    }
}

/// The words of the soak itself.
fn arguments(words: &[&str]) -> Result<Vec<String>> {
    let mut minutes = None;
    let mut arguments = Vec::new();
    for pair in words.chunks(2) {
        match pair {
            ["--minutes", number] => minutes = Some(number.parse::<u64>()?),
            ["--seed", seed] => arguments.extend(["--seed".to_owned(), (*seed).to_owned()]),
            other => bail!(
                "cannot use `{}`: soak --minutes N [--seed S]",
                other.join(" ")
            ),
        }
    }
    let seconds = minutes.context("--minutes is missing")?.saturating_mul(60);
    arguments.extend(["--seconds".to_owned(), seconds.to_string()]);
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_become_seconds() {
        let words = arguments(&["--minutes", "3", "--seed", "9"]).unwrap();
        assert_eq!(words, ["--seed", "9", "--seconds", "180"]);
    }

    #[test]
    fn what_is_missing_or_unknown_is_refused() {
        for words in [
            &["--seed", "9"][..],
            &["--minutes"],
            &["--minutes", "x"],
            &["--hours", "1"],
        ] {
            assert!(arguments(words).is_err(), "{words:?}");
        }
    }
}
