//! The comparison with the original `attest`: each makes receipts, the other verifies them.
//!
//! The original is built once, from the crate registry into a cache. Where it is not there, `ci`
//! says so; the receipts that it once made are verified by ordinary tests in any case.

mod case;
mod pipeline;
mod stamped;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::stage::{Verdict, report};
use crate::tools;
use crate::workspace::{cargo, root};
use case::Case;

const CRATE: &str = "continuum-attest";
const VERSION: &str = "0.4.0";

/// Random pipelines that both run.
const ROUNDS: u64 = 24;

/// `cargo xtask interop`: installs the original where it is not there, builds ours, compares.
pub(crate) fn command() -> Result<Verdict> {
    let root = root()?;
    let original = match installed() {
        Some(path) => path,
        None => install()?,
    };
    let built = Command::new(cargo())
        .args([
            "build",
            "--quiet",
            "--locked",
            "--workspace",
            "--bin",
            "attest",
        ])
        .current_dir(&root)
        .status()
        .context("cannot start cargo build")?;
    if !built.success() {
        bail!("attest does not build");
    }
    compare(&root, &original)
}

/// The stage of `ci`, whose programs are built: compares where the original is there.
pub(crate) fn stage(root: &Path) -> Result<Verdict> {
    match installed() {
        Some(original) => compare(root, &original),
        None => {
            println!(
                "interop: the live comparison with {CRATE} {VERSION} DID NOT RUN: it is not installed here.\n\
                 interop: the receipts that it made (crates/attest-receipt/tests/vectors) were verified by the tests;\n\
                 interop: `cargo xtask interop` installs it (about nine minutes, once) and compares."
            );
            Ok(Verdict::Clean)
        }
    }
}

fn compare(root: &Path, original: &Path) -> Result<Verdict> {
    let ours = tools::program(root, "attest")?;
    let folder = tools::target(root).join("interop");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot empty the folder of the comparison")?;
    }
    fs::create_dir_all(&folder)?;
    let mut findings = Vec::new();
    let mut cases = 0_usize;
    for (maker, judge, direction) in [
        (original, ours.as_path(), "theirs verified by ours"),
        (ours.as_path(), original, "ours verified by theirs"),
    ] {
        let case = Case {
            maker,
            judge,
            folder: folder.join(direction.replace(' ', "-")),
            ours: maker == ours,
        };
        let (count, found) = case.run().with_context(|| direction.to_owned())?;
        cases += count;
        findings.extend(
            found
                .into_iter()
                .map(|finding| format!("{direction}: {finding}")),
        );
    }
    let programs = [original, ours.as_path()];
    let (count, found) = stamped::run(root, programs, &folder.join("stamped"))?;
    cases += count;
    findings.extend(found);
    for seed in 0..ROUNDS {
        cases += 1;
        let round = folder.join(format!("round-{seed}"));
        if let Some(finding) = pipeline::round(original, &ours, &round, seed)
            .with_context(|| format!("random pipeline {seed}"))?
        {
            findings.push(format!("random pipeline {seed}: {finding}"));
        }
    }
    println!("interop: the live comparison with {CRATE} {VERSION} ran");
    Ok(report(
        "interop",
        &format!("{cases} comparisons"),
        &findings,
    ))
}

fn home() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))?;
    Some(
        cache
            .join("agent-forge-interop")
            .join(format!("{CRATE}-{VERSION}")),
    )
}

fn installed() -> Option<PathBuf> {
    let path = home()?.join("bin/attest");
    path.is_file().then_some(path)
}

fn install() -> Result<PathBuf> {
    let home = home().context("neither XDG_CACHE_HOME nor HOME says where the cache is")?;
    println!(
        "interop: building {CRATE} {VERSION} into {}",
        home.display()
    );
    let build = home.join("build");
    let done = Command::new(cargo())
        .args([
            "install",
            "--locked",
            "--quiet",
            "--version",
            VERSION,
            "--root",
        ])
        .arg(&home)
        .arg(CRATE)
        .env("CARGO_TARGET_DIR", &build)
        .status()
        .context("cannot start cargo install")?;
    if !done.success() {
        bail!("{CRATE} {VERSION} does not build");
    }
    fs::remove_dir_all(&build).context("cannot remove what the build left")?;
    installed().context("cargo install left no program")
}
