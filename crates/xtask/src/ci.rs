//! Every check and every test, in order, with a time table at the end.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::codex;
use crate::stage::Verdict;
use crate::tools;
use crate::workspace::{cargo, root};

/// Versions of the checkers that come as wheels.
const TYPOS: &str = "1.52.0";
const TAPLO: &str = "0.9.3";

struct Table {
    rows: Vec<(&'static str, Duration, bool)>,
    /// Tests that passed and failed.
    tests: (usize, usize),
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
        println!(
            "{} stages passed, {failed} failed",
            self.rows.len() - failed
        );
        println!("tests: {} passed, {} failed", self.tests.0, self.tests.1);
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
    let mut table = Table {
        rows: Vec::new(),
        tests: (0, 0),
    };
    let mut counted = (0, 0);
    table.stage("tools", install)?;
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
    table.stage("tests", || tests(&root, &mut counted))?;
    table.tests = counted;
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
    table.stage("other loader", || other_loader(&root))?;
    table.stage("interop", || crate::interop::stage(&root))?;
    table.stage("portable clean-up", || portable(&root))?;
    table.stage("packages", crate::packages::run)?;
    table.stage("demo", || demo(&root))?;
    table.stage("nix", || crate::nix::run(false))?;
    table.stage("driver", crate::vm::driver)?;
    table.stage("machines", || crate::vm::run(&[]))?;
    table.stage("soak", || crate::soak::stage(&root))?;
    Ok(table.print())
}

/// Installs or fetches everything that a stage needs.
pub(crate) fn install() -> Result<Verdict> {
    let root = root()?;
    tools::install_missing()?;
    tools::nextest(&root)?;
    tools::wheel(&root, "typos", TYPOS)?;
    tools::wheel(&root, "taplo", TAPLO)?;
    tools::wheel(&root, "ruff", crate::vm::RUFF)?;
    codex::fetched(&root)?;
    for tool in [&tools::NIXFMT, &tools::DEADNIX] {
        tools::built(&root, tool)?;
    }
    Ok(Verdict::Clean)
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

/// Runs every test and passes on what nextest says, counting from its last line.
fn tests(root: &Path, counted: &mut (usize, usize)) -> Result<Verdict> {
    let nextest = tools::nextest(root)?;
    let mut child = Command::new(nextest)
        .args([
            "nextest",
            "run",
            "--locked",
            "--workspace",
            "--no-fail-fast",
        ])
        .env(codex::VARIABLE, codex::fetched(root)?)
        .current_dir(root)
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start cargo-nextest")?;
    let said = child.stderr.take().context("its stderr is a pipe")?;
    for line in BufReader::new(said).lines() {
        let line = line?;
        if let Some(counts) = summary(&line) {
            *counted = counts;
        }
        eprintln!("{line}");
    }
    Ok(verdict(child.wait()?.success()))
}

/// The numbers in `Summary [ 1.2s] 12 tests run: 11 passed, 1 failed, 0 skipped`.
fn summary(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line
        .trim_start()
        .strip_prefix("Summary")?
        .split_once("run: ")?;
    let number = |word: &str| {
        counts
            .split(", ")
            .filter(|part| part.contains(word))
            .find_map(|part| part.trim().split(' ').next()?.parse().ok())
            .unwrap_or(0)
    };
    Some((number("passed"), number("failed") + number("timed out")))
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
    let mut good = true;
    for name in ["plugin-conformance.sh", "attest-plugin-conformance.sh"] {
        let script = root.join("e2e").join(name);
        let status = Command::new("sh")
            .arg(&script)
            .env("FORGE_BIN_DIR", tools::target(root).join("debug"))
            .current_dir(root)
            .status()
            .with_context(|| format!("cannot start {}", script.display()))?;
        good &= status.success();
    }
    Ok(verdict(good))
}

/// The loader of plugin packages next to another one, a workspace of its own for its dependencies.
fn other_loader(root: &Path) -> Result<Verdict> {
    let folder = root.join("crates/agent-plugin/differential");
    let mut good = true;
    for words in [
        &["fmt", "--check"][..],
        &[
            "clippy",
            "--quiet",
            "--locked",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        &["test", "--quiet", "--locked"],
    ] {
        let status = Command::new(cargo())
            .args(words)
            .env("CARGO_TARGET_DIR", tools::target(root))
            .current_dir(&folder)
            .status()
            .with_context(|| format!("cannot start cargo {}", words.join(" ")))?;
        good &= status.success();
    }
    Ok(verdict(good))
}

/// The clean-up of systems without a child subreaper, on this one.
fn portable(root: &Path) -> Result<Verdict> {
    let nextest = tools::nextest(root)?;
    let status = Command::new(nextest)
        .args([
            "nextest",
            "run",
            "--locked",
            "--package",
            "process-tree",
            "--package",
            "forge-plugin-host",
        ])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_runner_is_read() {
        let good = "     Summary [   0.222s] 12 tests run: 12 passed, 0 skipped";
        assert_eq!(summary(good), Some((12, 0)));
        let bad = "     Summary [   9.1s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 0 skipped";
        assert_eq!(summary(bad), Some((3, 2)));
        assert_eq!(summary("        PASS [   0.1s] a::b"), None);
    }
}
