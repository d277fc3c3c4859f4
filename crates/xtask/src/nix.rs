//! The flake, through the stand-in for nixpkgs in `e2e/host`: format, lint, evaluation, builds,
//! refusals, texts of units, every app.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::stage::{Verdict, report};
use crate::tools;
use crate::workspace::{files, root};

/// The texts that the units are compared with.
const UNITS: &str = "nixos-modules/tests/units";
/// What runs in stages of its own.
const SKIP: &str = "agent-forge-clippy agent-forge-tests";

/// A part of the check, and what it finds.
type Step<'a> = (&'a str, &'a dyn Fn() -> Result<Vec<String>>);

/// Runs the check; `write` takes the units' texts as they are now.
pub(crate) fn run(write: bool) -> Result<Verdict> {
    let root = root()?;
    if !tools::is_root() {
        println!("nix: only format. Without root the stand-in cannot build with this machine's");
        println!("nix: cargo; where nixpkgs can be fetched, `nix flake check` is the real thing.");
        return Ok(report("nix", "format", &format(&root)?));
    }
    if !tools::on_path("nix") {
        bail!("nix is missing: apt-get install nix-bin");
    }
    let nix = Nix { root: &root };
    let lock = fs::read(root.join("flake.lock"))?;
    let mut findings = Vec::new();
    let steps: [Step<'_>; 7] = [
        ("format", &|| format(&root)),
        ("stand-in", &|| stand_in(&root)),
        ("flake check", &|| nix.flake_check()),
        ("refusals", &|| nix.refusals()),
        ("units", &|| nix.units(write)),
        ("packages", &|| nix.packages()),
        ("apps", &|| nix.apps()),
    ];
    for (name, step) in steps {
        let start = Instant::now();
        let found = step().with_context(|| format!("{name} cannot be judged"))?;
        let mark = if found.is_empty() { "ok" } else { "FAILED" };
        println!(
            "nix: {name:<12} {:>6.1} s  {mark}",
            start.elapsed().as_secs_f64()
        );
        findings.extend(found);
    }
    if fs::read(root.join("flake.lock"))? != lock {
        findings.push("flake.lock was changed".to_owned());
    }
    Ok(report("nix", "flake, modules and apps", &findings))
}

/// Whatever is written in Nix is formatted, and names nothing that it does not use.
fn format(root: &Path) -> Result<Vec<String>> {
    let expressions: Vec<PathBuf> = files(root)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "nix"))
        .collect();
    let mut findings = Vec::new();
    let checkers: [(&tools::Crate, &[&str]); 2] = [
        (&tools::NIXFMT, &["--check"]),
        (&tools::DEADNIX, &["--fail"]),
    ];
    for (tool, words) in checkers {
        let status = Command::new(tools::built(root, tool)?)
            .args(words)
            .args(&expressions)
            .current_dir(root)
            .status()
            .with_context(|| format!("cannot start {}", tool.program))?;
        if !status.success() {
            findings.push(format!("{} is not content", tool.program));
        }
    }
    Ok(findings)
}

/// The stand-in's module system keeps what it promises.
fn stand_in(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("nix-instantiate")
        .args(["--eval", "--strict", "--json", "--expr"])
        .arg("import ./e2e/host/tests.nix { }")
        .env("NIX_CONFIG", "build-users-group =")
        .current_dir(root)
        .output()
        .context("cannot start nix-instantiate")?;
    if !output.status.success() {
        bail!("{}", tail(&String::from_utf8_lossy(&output.stderr)));
    }
    let wrong: Vec<String> = serde_json::from_slice(&output.stdout)?;
    Ok(wrong
        .into_iter()
        .map(|name| format!("e2e/host/tests.nix: not so: {name}"))
        .collect())
}

struct Nix<'a> {
    root: &'a Path,
}

impl Nix<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.root.join("e2e/host/nix"));
        command
            .args(words)
            .current_dir(self.root)
            .env("FORGE_NIX_TARGET", tools::nix_target(self.root))
            .env("FORGE_NIX_SKIP", SKIP)
            .stdin(Stdio::null());
        command
    }

    fn output(&self, words: &[&str]) -> Result<Output> {
        self.command(words)
            .output()
            .context("cannot start e2e/host/nix")
    }

    /// The standard output of a command that must succeed.
    fn answer(&self, words: &[&str]) -> Result<String> {
        let output = self.output(words)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`nix {}` failed:\n{}", words.join(" "), tail(&said));
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    fn flake_check(&self) -> Result<Vec<String>> {
        let status = self
            .command(&["flake", "check"])
            .status()
            .context("cannot start e2e/host/nix")?;
        let failed = (!status.success()).then(|| "`nix flake check` failed".to_owned());
        Ok(failed.into_iter().collect())
    }

    /// Each configuration that must be refused is, in the words that its case asks for.
    fn refusals(&self) -> Result<Vec<String>> {
        let cases = format!(".#checks.{}.modules-refused", system());
        let says = self.answer(&["eval", "--json", &format!("{cases}.says")])?;
        let says: BTreeMap<String, String> = serde_json::from_str(&says)?;
        let mut findings = Vec::new();
        for (name, words) in &says {
            let output = self.output(&["eval", "--raw", &format!("{cases}.refused.{name}")])?;
            let said = String::from_utf8_lossy(&output.stderr);
            if output.status.success() {
                findings.push(format!("`{name}` is accepted"));
            } else if !said.contains(words.as_str()) {
                let said = tail(&said);
                findings.push(format!("`{name}` does not say `{words}` but:\n{said}"));
            }
        }
        if says.len() < 10 {
            findings.push(format!("only {} refusals are tried", says.len()));
        }
        Ok(findings)
    }

    /// The units' texts are those that were looked at last; the hashes of store paths are left out.
    fn units(&self, write: bool) -> Result<Vec<String>> {
        let made = self.build(&format!("checks.{}.modules-units", system()))?;
        let kept = self.root.join(UNITS);
        let mut findings = unknown_lines(&made)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(made)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = without_hashes(&fs::read_to_string(entry.path())?);
            if write {
                fs::create_dir_all(&kept)?;
                fs::write(kept.join(&name), &text)?;
            } else if fs::read_to_string(kept.join(&name)).ok().as_deref() != Some(&text) {
                findings.push(format!(
                    "{UNITS}/{name} is not what the modules make; look at the change and run `cargo xtask nix --write`"
                ));
            }
            names.push(name);
        }
        for entry in fs::read_dir(&kept)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !names.contains(&name) {
                findings.push(format!("{UNITS}/{name} is made by no module"));
            }
        }
        Ok(findings)
    }

    /// Each package has its program, the page and the completions.
    fn packages(&self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for name in self.names("packages")? {
            if name == "default" {
                continue;
            }
            let made = self.build(&name)?;
            let wanted = [
                format!("bin/{name}"),
                format!("share/man/man1/{name}.1"),
                format!("share/bash-completion/completions/{name}.bash"),
                format!("share/fish/vendor_completions.d/{name}.fish"),
                format!("share/zsh/site-functions/_{name}"),
            ];
            for file in wanted {
                let size = fs::metadata(made.join(&file)).map_or(0, |found| found.len());
                if size == 0 {
                    findings.push(format!("package `{name}` has no {file}"));
                }
            }
        }
        Ok(findings)
    }

    /// `nix run` reaches each program, and the demo works by it.
    fn apps(&self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for name in self.names("apps")? {
            let app = format!(".#{name}");
            let said = self.answer(&["run", &app, "--", "--version"])?;
            let program = if name == "default" { "forge" } else { &name };
            if said.split(' ').next() != Some(program) {
                findings.push(format!("`nix run {app} -- --version` says `{said}`"));
            }
        }
        self.answer(&["run", ".#forge", "--", "demo"])?;
        Ok(findings)
    }

    fn names(&self, output: &str) -> Result<Vec<String>> {
        let place = format!(".#{output}.{}", system());
        let names = self.answer(&["eval", "--json", &place, "--apply", "builtins.attrNames"])?;
        Ok(serde_json::from_str(&names)?)
    }

    fn build(&self, attribute: &str) -> Result<PathBuf> {
        let installable = format!(".#{attribute}");
        let built = self.answer(&["build", "--no-link", "--json", &installable])?;
        let built: serde_json::Value = serde_json::from_str(&built)?;
        let path = built
            .pointer("/0/outputs/out")
            .and_then(serde_json::Value::as_str);
        path.map(PathBuf::from)
            .with_context(|| format!("no output of `{attribute}`"))
    }
}

/// What systemd itself does not know of the units in a folder.
fn unknown_lines(folder: &Path) -> Result<Vec<String>> {
    let units: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(units)
        .output()
        .context("cannot start systemd-analyze")?;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(said.lines().map(str::to_owned).collect())
}

fn system() -> String {
    format!("{}-linux", std::env::consts::ARCH)
}

/// The end of what a command said.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(20);
    lines.get(from..).unwrap_or_default().join("\n")
}

/// `/nix/store/HASH-name` without the hash.
fn without_hashes(text: &str) -> String {
    const STORE: &str = "/nix/store/";
    const HASH: usize = 33; // with its hyphen
    let mut parts = text.split(STORE);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str(STORE);
        result.push_str(part.get(HASH..).unwrap_or(part));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_store_paths_are_left_out() {
        let text = "A=/nix/store/0123456789abcdfghijklmnpqrsvwxyz-b/bin/b c\nD=/nix/store\n";
        assert_eq!(
            without_hashes(text),
            "A=/nix/store/b/bin/b c\nD=/nix/store\n"
        );
    }

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        let text: String = (0..30).map(|number| format!("{number}\n")).collect();
        assert!(tail(&text).starts_with("10\n"));
        assert_eq!(tail("short"), "short");
    }
}
