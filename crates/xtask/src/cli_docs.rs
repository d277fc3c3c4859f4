//! `docs/reference/cli.md` is what the programs themselves say.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::stage::{Verdict, report};
use crate::tools::program;
use crate::workspace::{cargo, metadata, root};

const PAGE: &str = "docs/reference/cli.md";
const HEAD: &str = "\
# Command line

Written by `cargo xtask cli-docs --write` from the programs' own definitions; `cargo xtask ci`
refuses a difference. Exit codes: [exit-codes.md](exit-codes.md).
";

/// Runs the check; with `write` it also writes the page.
pub(crate) fn run(write: bool) -> Result<Verdict> {
    let root = root()?;
    let built = Command::new(cargo())
        .args(["build", "--quiet", "--locked", "--bins"])
        .current_dir(&root)
        .status()
        .context("cannot start cargo build")?;
    if !built.success() {
        bail!("the programs do not build");
    }
    let mut names: Vec<String> = metadata(&root)?
        .members
        .into_values()
        .filter(|member| member.family == "bins")
        .map(|member| member.name)
        .collect();
    names.sort();
    let mut page = HEAD.to_owned();
    for name in &names {
        page.push('\n');
        page.push_str(section(&root, name)?.trim_end());
        page.push('\n');
    }
    let path = root.join(PAGE);
    let current = fs::read_to_string(&path).unwrap_or_default();
    let mut findings = Vec::new();
    if current != page {
        if write {
            fs::write(&path, &page)?;
            println!("cli-docs: wrote {PAGE}");
        } else {
            findings.push(format!(
                "{PAGE} is not what the programs say: run `cargo xtask cli-docs --write`"
            ));
        }
    }
    Ok(report(
        "cli-docs",
        &format!("{} programs", names.len()),
        &findings,
    ))
}

fn section(root: &Path, name: &str) -> Result<String> {
    let output = Command::new(program(root, name)?)
        .args(["--generate", "markdown"])
        .env_clear()
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() || output.stdout.is_empty() {
        bail!(
            "`{name} --generate markdown` failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}
