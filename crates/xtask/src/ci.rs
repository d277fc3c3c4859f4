//! Every check and every test, in order, with a time table at the end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::stage::Verdict;
use crate::tools;
use crate::workspace::{cargo, root};

/// Versions of the checkers that come as wheels.
const TYPOS: &str = "1.52.0";
const TAPLO: &str = "0.9.3";

struct Table {
    rows: Vec<(&'static str, Duration, bool)>,
}

impl Table {
    fn stage(&mut self, name: &'static str, work: impl FnOnce() -> Result<Verdict>) -> Result<()> {
        println!("\n== {name} ==");
        let start = Instant::now();
        let result = work();
        let good = matches!(result, Ok(Verdict::Clean));
        self.rows.push((name, start.elapsed(), good));
        if let Err(error) = &result {
            println!("{name}: {error:#}");
        }
        if name == "tools" {
            result?; // without its tools nothing else can be judged
        }
        Ok(())
    }

    fn print(&self) -> Verdict {
        println!("\n== time table ==");
        for (name, time, good) in &self.rows {
            let mark = if *good { "ok" } else { "FAILED" };
            println!("{name:<20} {:>7.1} s  {mark}", time.as_secs_f64());
        }
        let total: Duration = self.rows.iter().map(|(_, time, _)| *time).sum();
        println!("{:<20} {:>7.1} s", "all", total.as_secs_f64());
        let failed = self.rows.iter().filter(|(_, _, good)| !good).count();
        println!("{} passed, {failed} failed", self.rows.len() - failed);
        if failed == 0 {
            Verdict::Clean
        } else {
            Verdict::Found
        }
    }
}

/// Runs all stages; a failed one does not hide the later ones.
pub(crate) fn run() -> Result<Verdict> {
    let root = root()?;
    let mut table = Table { rows: Vec::new() };
    table.stage("tools", || {
        tools::install_missing()?;
        tools::nextest(&root)?;
        Ok(Verdict::Clean)
    })?;
    table.stage("format", || {
        command(&root, &cargo(), &["fmt", "--all", "--check"])
    })?;
    table.stage("spelling", || spelling(&root))?;
    table.stage("manifests", || manifests(&root))?;
    table.stage("floors", || crate::floors::run(false))?;
    table.stage("tidy", crate::tidy::run)?;
    table.stage("conformance rows", crate::conformance::run)?;
    table.stage("dependencies", crate::deny::run)?;
    table.stage("clippy", || {
        let words = [
            "clippy",
            "--quiet",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        command(&root, &cargo(), &words)
    })?;
    table.stage("programs", || {
        command(
            &root,
            &cargo(),
            &["build", "--quiet", "--locked", "--workspace", "--bins"],
        )
    })?;
    table.stage("tests", || tests(&root))?;
    table.stage("doc tests", || {
        command(
            &root,
            &cargo(),
            &["test", "--quiet", "--locked", "--workspace", "--doc"],
        )
    })?;
    table.stage("documentation", || documentation(&root))?;
    table.stage("cli reference", || crate::cli_docs::run(false))?;
    table.stage("plugin suites", || plugin_suites(&root))?;
    table.stage("portable clean-up", || portable(&root))?;
    table.stage("packages", crate::packages::run)?;
    table.stage("demo", || demo(&root))?;
    Ok(table.print())
}

/// Every benchmark; they print figures and assert none.
pub(crate) fn bench() -> Result<Verdict> {
    let root = root()?;
    command(
        &root,
        &cargo(),
        &["bench", "--locked", "--workspace", "--benches"],
    )
}

fn tests(root: &Path) -> Result<Verdict> {
    let nextest = tools::nextest(root)?;
    let status = Command::new(nextest)
        .args([
            "nextest",
            "run",
            "--locked",
            "--workspace",
            "--no-fail-fast",
        ])
        .current_dir(root)
        .status()
        .context("cannot start cargo-nextest")?;
    Ok(verdict(status.success()))
}

fn spelling(root: &Path) -> Result<Verdict> {
    let typos = tools::wheel(root, "typos", TYPOS)?;
    command(root, &typos.to_string_lossy(), &[])
}

fn manifests(root: &Path) -> Result<Verdict> {
    let taplo = tools::wheel(root, "taplo", TAPLO)?;
    command(root, &taplo.to_string_lossy(), &["fmt", "--check"])
}

fn documentation(root: &Path) -> Result<Verdict> {
    let status = Command::new(cargo())
        .args([
            "doc",
            "--quiet",
            "--locked",
            "--workspace",
            "--no-deps",
            "--lib",
        ])
        .env("RUSTDOCFLAGS", "-D warnings")
        .current_dir(root)
        .status()
        .context("cannot start cargo doc")?;
    Ok(verdict(status.success()))
}

fn plugin_suites(root: &Path) -> Result<Verdict> {
    let status = Command::new("sh")
        .arg(root.join("e2e/plugin-conformance.sh"))
        .env("FORGE_BIN_DIR", tools::target(root).join("debug"))
        .current_dir(root)
        .status()
        .context("cannot start e2e/plugin-conformance.sh")?;
    Ok(verdict(status.success()))
}

/// The clean-up of systems without a child subreaper, on this one.
fn portable(root: &Path) -> Result<Verdict> {
    let nextest = tools::nextest(root)?;
    let status = Command::new(nextest)
        .args(["nextest", "run", "--locked", "--package", "process-tree"])
        .env("RUSTFLAGS", "--cfg portable_process")
        .env("CARGO_TARGET_DIR", portable_target(root))
        .current_dir(root)
        .status()
        .context("cannot start cargo-nextest")?;
    Ok(verdict(status.success()))
}

fn portable_target(root: &Path) -> PathBuf {
    tools::target(root).join("portable")
}

fn demo(root: &Path) -> Result<Verdict> {
    let forge = tools::program(root, "forge")?;
    command(root, &forge.to_string_lossy(), &["demo"])
}

fn command(root: &Path, program: &str, words: &[&str]) -> Result<Verdict> {
    if program.is_empty() {
        bail!("no program");
    }
    let status = Command::new(program)
        .args(words)
        .current_dir(root)
        .status()
        .with_context(|| format!("cannot start `{program}`"))?;
    Ok(verdict(status.success()))
}

fn verdict(good: bool) -> Verdict {
    if good { Verdict::Clean } else { Verdict::Found }
}
