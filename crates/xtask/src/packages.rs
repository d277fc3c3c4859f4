//! The crates that a plugin author may take from a registry pack, and a plugin builds from the
//! packed sources alone, outside this workspace.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::stage::{Verdict, report};
use crate::tools::target;
use crate::workspace::{Member, cargo, metadata, root};

/// Plugins from outside, each with the one crate that it needs.
const OUTSIDE: &[(&str, &str, &str)] = &[
    ("forge-plugin", "forge-plugin-kit", FORGE),
    ("attest-plugin", "attest-plugin-protocol", ATTEST),
];

const FORGE: &str = "\
//! A plugin from outside: upper case.
fn main() -> std::process::ExitCode {
    forge_plugin_kit::serve_text(|input, _context| Ok(input.to_uppercase()))
}
";

const ATTEST: &str = "\
//! A policy from outside: no step may call curl.
use std::process::ExitCode;

use attest_plugin_protocol::{
    Announcement, Finding, Hook, Payload, Plugin, Severity, Verdict, serve,
};

struct NoNetwork;

impl Plugin for NoNetwork {
    fn hello(&mut self, _attest_version: &str) -> Result<Announcement, String> {
        let name = \"outside\".parse().map_err(|_| \"a bad name\")?;
        Ok(Announcement::new(name, \"0.1.0\", &[Hook::StepPre], true))
    }

    fn judge(&mut self, payload: &Payload) -> Verdict {
        match payload {
            Payload::BeforeStep(step) if step.run.contains(\"curl\") => {
                let finding = Finding::new(\"no-network\", Severity::High, \"runs curl\", None);
                Verdict::deny(finding.into_iter().collect())
            }
            _ => Verdict::allow(),
        }
    }
}

fn main() -> ExitCode {
    match serve(&mut NoNetwork, std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(\"{error}\");
            ExitCode::from(error.exit_code())
        }
    }
}
";

const HELLO: &str = r#"{"v":1,"id":1,"kind":"hello","attest_version":"1.0.0","protocols":[1]}"#;
const STEP: &str = concat!(
    r#"{"v":1,"id":2,"kind":"step.pre","payload":{"step":{"name":"get","run":"curl x","needs":[],"#,
    r#""inputs":[],"outputs":[],"input_hash":"","command_hash":"","cache_hit":false}}}"#
);
const SHUTDOWN: &str = r#"{"v":1,"id":3,"kind":"shutdown"}"#;

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
        for (name, dependency, source) in OUTSIDE {
            build_outside(&root, &publishable, &unpacked, (name, dependency, source))?;
        }
        ask_the_policy(&root)?;
    }
    let count = format!(
        "{} crates packed and {} plugins built from them",
        publishable.len(),
        OUTSIDE.len()
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

fn build_outside(
    root: &Path,
    members: &[&Member],
    unpacked: &Path,
    (name, dependency, source): (&str, &str, &str),
) -> Result<()> {
    let plugin = unpacked.join(format!("outside-{name}"));
    fs::create_dir_all(plugin.join("src"))?;
    let mut manifest = format!(
        "[workspace]\n[package]\nname = \"outside-{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{dependency} = \"*\"\n\n[patch.crates-io]\n",
    );
    for member in members {
        let _ = writeln!(
            manifest,
            "{} = {{ path = \"../{}\" }}",
            member.name, member.name
        );
    }
    fs::write(plugin.join("Cargo.toml"), manifest)?;
    fs::write(plugin.join("src/main.rs"), source)?;
    fs::copy(root.join("Cargo.lock"), plugin.join("Cargo.lock"))?;
    let status = Command::new(cargo())
        .args(["build", "--quiet"])
        .env("CARGO_TARGET_DIR", target(root).join("packed-build"))
        .current_dir(&plugin)
        .status()
        .context("cannot start cargo build")?;
    if !status.success() {
        bail!("outside-{name} does not build from the packed sources");
    }
    Ok(())
}

/// Lets the built policy answer, one message at a time.
fn ask_the_policy(root: &Path) -> Result<()> {
    let program = target(root).join("packed-build/debug/outside-attest-plugin");
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start outside-attest-plugin")?;
    let mut input = child.stdin.take().context("no stdin")?;
    let mut output = BufReader::new(child.stdout.take().context("no stdout")?);
    for (message, part) in [
        (HELLO, r#""kind":"hello_ok","name":"outside""#),
        (STEP, r#""id":2,"kind":"verdict","decision":"deny""#),
    ] {
        writeln!(input, "{message}")?;
        let mut answer = String::new();
        output.read_line(&mut answer)?;
        if !answer.contains(part) {
            bail!("outside-attest-plugin answered {answer:?} to {message}");
        }
    }
    writeln!(input, "{SHUTDOWN}")?;
    if !child.wait()?.success() {
        bail!("outside-attest-plugin did not end cleanly after `shutdown`");
    }
    Ok(())
}
