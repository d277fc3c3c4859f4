//! The crates that a plugin author may take from a registry pack, and a plugin builds from the
//! packed sources alone, outside this workspace.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::stage::{Verdict, report};
use crate::tools::target;
use crate::workspace::{Member, cargo, metadata, root};

const PLUGIN: &str = "\
//! A plugin from outside: upper case.
fn main() -> std::process::ExitCode {
    forge_plugin_kit::serve_text(|input, _context| Ok(input.to_uppercase()))
}
";

/// Runs the check.
pub(crate) fn run() -> Result<Verdict> {
    let root = root()?;
    let members = metadata(&root)?.members;
    let publishable: Vec<&Member> = members
        .values()
        .filter(|member| member.publishable)
        .collect();
    let mut findings = Vec::new();
    for member in &publishable {
        if !member.folder.join("README.md").is_file() {
            findings.push(format!(
                "`{}` is publishable and has no README.md",
                member.name
            ));
        }
        for edge in &member.edges {
            if !publishable.iter().any(|other| other.name == *edge) {
                findings.push(format!(
                    "`{}` is publishable and needs `{edge}`, which is not",
                    member.name
                ));
            }
        }
    }
    if findings.is_empty() {
        let unpacked = pack(&root, &publishable)?;
        build_outside(&root, &publishable, &unpacked)?;
    }
    let count = format!(
        "{} crates packed and a plugin built from them",
        publishable.len()
    );
    Ok(report("packages", &count, &findings))
}

fn pack(root: &Path, members: &[&Member]) -> Result<PathBuf> {
    let mut command = Command::new(cargo());
    command
        .args([
            "package",
            "--quiet",
            "--no-verify",
            "--allow-dirty",
            "--locked",
        ])
        .current_dir(root);
    for member in members {
        command.args(["--package", &member.name]);
    }
    if !command
        .status()
        .context("cannot start cargo package")?
        .success()
    {
        bail!("cargo package failed");
    }
    let unpacked = target(root).join("packed");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::create_dir_all(&unpacked)?;
    for member in members {
        let manifest: toml::Table =
            toml::from_str(&fs::read_to_string(member.folder.join("Cargo.toml"))?)?;
        let version = manifest
            .get("package")
            .and_then(|package| package.get("version"))
            .and_then(toml::Value::as_str)
            .with_context(|| format!("`{}` has a version of its own", member.name))?;
        let archive = target(root)
            .join("package")
            .join(format!("{}-{version}.crate", member.name));
        let status = Command::new("tar")
            .arg("-xzf")
            .arg(&archive)
            .arg("-C")
            .arg(&unpacked)
            .status()
            .context("cannot start tar")?;
        if !status.success() {
            bail!("{} does not unpack", archive.display());
        }
        fs::rename(
            unpacked.join(format!("{}-{version}", member.name)),
            unpacked.join(&member.name),
        )?;
    }
    Ok(unpacked)
}

fn build_outside(root: &Path, members: &[&Member], unpacked: &Path) -> Result<()> {
    let plugin = unpacked.join("outside-plugin");
    fs::create_dir_all(plugin.join("src"))?;
    let mut manifest = String::from(
        "[workspace]\n[package]\nname = \"outside-plugin\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nforge-plugin-kit = \"*\"\n\n[patch.crates-io]\n",
    );
    for member in members {
        let _ = writeln!(
            manifest,
            "{} = {{ path = \"../{}\" }}",
            member.name, member.name
        );
    }
    fs::write(plugin.join("Cargo.toml"), manifest)?;
    fs::write(plugin.join("src/main.rs"), PLUGIN)?;
    fs::copy(root.join("Cargo.lock"), plugin.join("Cargo.lock"))?;
    let status = Command::new(cargo())
        .args(["build", "--quiet"])
        .env("CARGO_TARGET_DIR", target(root).join("packed-build"))
        .current_dir(&plugin)
        .status()
        .context("cannot start cargo build")?;
    if !status.success() {
        bail!("a plugin does not build from the packed sources");
    }
    Ok(())
}
