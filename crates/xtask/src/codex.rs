//! The real Codex CLI, fetched for the tests that drive it. Nothing of it is run here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tools::target;

/// The npm package; a static program comes with it, as an optional dependency for the platform.
const PACKAGE: &str = "@openai/codex";
const VERSION: &str = "0.171.0";

/// The variable by which the tests find the program.
pub(crate) const VARIABLE: &str = "FORGE_TEST_CODEX";

/// The path of the program; without it there, it is fetched into the target directory.
///
/// `tools/bin/codex` below the target directory leads to it, for tests that run without xtask.
pub(crate) fn fetched(root: &Path) -> Result<PathBuf> {
    let tools = target(root).join("tools");
    let home = tools.join(format!("codex-{VERSION}"));
    if program(&home).is_none() {
        fetch(&home)?;
    }
    let Some(program) = program(&home) else {
        bail!("{PACKAGE} {VERSION} brought no program for this platform");
    };
    let link = tools.join("bin/codex");
    if fs::read_link(&link).ok().as_deref() != Some(&program) {
        fs::create_dir_all(tools.join("bin"))?;
        if link.is_symlink() {
            fs::remove_file(&link)?;
        }
        std::os::unix::fs::symlink(&program, &link)
            .with_context(|| format!("cannot make {}", link.display()))?;
    }
    Ok(program)
}

fn fetch(home: &Path) -> Result<()> {
    println!(
        "tools: fetching the Codex CLI {VERSION} (npm package {PACKAGE}, 170 MB) into the target directory"
    );
    // What npm was interrupted in must not pass for the whole.
    let part = home.with_extension("part");
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    fs::create_dir_all(&part)?;
    let done = Command::new("npm")
        .args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--no-package-lock",
            "--no-update-notifier",
            "--loglevel=error",
            "--prefix",
        ])
        .arg(&part)
        .arg(format!("{PACKAGE}@{VERSION}"))
        .status()
        .context("cannot start npm")?;
    if !done.success() {
        bail!("{PACKAGE} {VERSION} cannot be fetched; set up npm's registry and run again");
    }
    fs::rename(&part, home).with_context(|| format!("cannot make {}", home.display()))
}

/// Looks for `node_modules/@openai/<platform>/vendor/<triple>/bin/codex`.
fn program(home: &Path) -> Option<PathBuf> {
    let home = fs::canonicalize(home).ok()?;
    let entries = |path: &Path| -> Vec<PathBuf> {
        let read = fs::read_dir(path).into_iter().flatten().flatten();
        read.map(|entry| entry.path()).collect()
    };
    entries(&home.join("node_modules/@openai"))
        .iter()
        .flat_map(|package| entries(&package.join("vendor")))
        .map(|triple| triple.join("bin/codex"))
        .find(|path| path.is_file())
}
