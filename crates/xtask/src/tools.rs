//! Finds or installs what the checks need, and says what it installs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// A program that a test starts, the Debian and Ubuntu package that brings it, and why.
pub(crate) type Program = (&'static str, &'static str, &'static str);

const PROGRAMS: &[Program] = &[
    (
        "cc",
        "build-essential",
        "SQLite and ring are compiled from C",
    ),
    ("git", "git", "the workspaces are git's"),
    (
        "npm",
        "npm",
        "the real Codex CLI, which tests drive, is an npm package",
    ),
    (
        "python3",
        "python3",
        "the dependency-free example plugin and the mutants",
    ),
    ("sh", "dash", "scripts"),
    ("setsid", "util-linux", "children that leave their session"),
    (
        "strace",
        "strace",
        "the system calls of `attest verify` are traced",
    ),
    (
        "jq",
        "jq",
        "the minimal plugin of attest-plugin/1 is a shell script",
    ),
];

/// What the flake is checked with; without root it is not.
const NIX: (&str, &str, &str) = (
    "nix",
    "nix-bin",
    "the flake and the modules are evaluated and built",
);

/// Brings the checkers that ship as wheels.
const PIP: Program = (
    "python3 -m pip",
    "python3-pip",
    "two checkers ship as wheels",
);

/// A tool that is built where none is installed.
pub(crate) struct Crate {
    name: &'static str,
    pub(crate) program: &'static str,
    version: &'static str,
}

const NEXTEST: Crate = Crate {
    name: "cargo-nextest",
    program: "cargo-nextest",
    version: "0.9.143",
};
/// The formatter of Nix expressions, as nixpkgs uses it.
pub(crate) const NIXFMT: Crate = Crate {
    name: "nixfmt_rs",
    program: "nixfmt",
    version: "0.5.3",
};
/// Finds what a Nix expression names and does not use.
pub(crate) const DEADNIX: Crate = Crate {
    name: "deadnix",
    program: "deadnix",
    version: "1.3.1",
};

/// Where cargo puts what it builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Where cargo puts what it builds inside of Nix: apart, since sources in another place would pass for
/// these.
pub(crate) fn nix_target(root: &Path) -> PathBuf {
    target(root).join("nix")
}

/// A program of this workspace, built with the dev profile.
pub(crate) fn program(root: &Path, name: &str) -> Result<PathBuf> {
    let path = target(root).join("debug").join(name);
    if !path.is_file() {
        bail!("`{}` is not built", path.display());
    }
    Ok(path)
}

/// Installs the missing packages, or names package and command.
pub(crate) fn install_missing() -> Result<()> {
    install_components()?;
    let mut missing = missing(PROGRAMS);
    if run_quietly("python3", &["-m", "pip", "--version"]).is_none() {
        missing.push(&PIP);
    }
    if is_root() && !on_path(NIX.0) {
        missing.push(&NIX);
    }
    if missing.is_empty() {
        println!("tools: everything that the tests start is there");
    }
    install(&missing)
}

/// Those of the programs that are not in `PATH`.
pub(crate) fn missing(programs: &[Program]) -> Vec<&Program> {
    let there = |program: &&Program| !on_path(program.0);
    programs.iter().filter(there).collect()
}

/// Installs the packages of the programs, or names package and command.
pub(crate) fn install(missing: &[&Program]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    for (name, package, why) in missing {
        println!("tools: `{name}` is missing (package {package}): {why}");
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package, _)| *package).collect();
    let by_hand = format!(
        "apt-get install --no-install-recommends {}",
        packages.join(" ")
    );
    if !on_path("apt-get") {
        bail!(
            "this system has no apt; install what provides: {}",
            packages.join(" ")
        );
    }
    let Some(prefix) = privilege() else {
        bail!("neither root nor password-less sudo; install by hand: sudo {by_hand}");
    };
    println!("tools: installing {}", packages.join(" "));
    apt(&prefix, &["update", "-q"])?;
    let mut words = vec!["install", "-y", "-q", "--no-install-recommends"];
    words.extend(&packages);
    apt(&prefix, &words)
}

/// rustup's smallest profile has neither formatter nor linter.
fn install_components() -> Result<()> {
    let cargo = crate::workspace::cargo();
    for (word, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if run_quietly(&cargo, &[word, "--version"]).is_some() {
            continue;
        }
        let by_hand = format!("rustup component add {component}");
        if !on_path("rustup") {
            bail!("`cargo {word}` is missing; install it by hand, with rustup: {by_hand}");
        }
        println!("tools: `cargo {word}` is missing: {by_hand}");
        let added = Command::new("rustup")
            .args(["component", "add", component])
            .status()
            .context("cannot start rustup")?;
        if !added.success() {
            bail!("`{by_hand}` failed; install it by hand");
        }
    }
    Ok(())
}

/// The path of nextest; it is built into the target directory where the machine has none.
pub(crate) fn nextest(root: &Path) -> Result<PathBuf> {
    built(root, &NEXTEST)
}

/// The path of a tool; it is built into the target directory where the machine has none.
pub(crate) fn built(root: &Path, tool: &Crate) -> Result<PathBuf> {
    let Crate {
        name,
        program,
        version,
    } = tool;
    if on_path(program) {
        return Ok(PathBuf::from(program));
    }
    let home = target(root).join("tools");
    let path = home.join("bin").join(program);
    if path.is_file() {
        return Ok(path);
    }
    println!("tools: building {name} {version} into the target directory");
    let built = Command::new(crate::workspace::cargo())
        .args(["install", "--locked", "--quiet", "--version", version])
        .arg("--root")
        .arg(&home)
        .arg(name)
        .env("CARGO_TARGET_DIR", target(root).join("tools-build"))
        .status()
        .context("cannot start cargo install")?;
    if !built.success() {
        bail!("{name} {version} does not build; install it by hand and run again");
    }
    Ok(path)
}

/// A checker that ships as a Python wheel, installed into the target directory.
pub(crate) fn wheel(root: &Path, package: &str, version: &str) -> Result<PathBuf> {
    if on_path(package) {
        return Ok(PathBuf::from(package));
    }
    let home = target(root)
        .join("tools")
        .join(format!("{package}-{version}"));
    let path = home.join("bin").join(package);
    if path.is_file() {
        return Ok(path);
    }
    println!("tools: fetching {package} {version} (a wheel) into the target directory");
    let done = Command::new("python3")
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
        ])
        .args(["--no-deps", "--only-binary", ":all:", "--target"])
        .arg(&home)
        .arg(format!("{package}=={version}"))
        .status()
        .context("cannot start python3 -m pip")?;
    if !done.success() || !path.is_file() {
        bail!("{package} {version} cannot be fetched; install it by hand and run again");
    }
    Ok(path)
}

/// Whether `PATH` has an executable of that name.
pub(crate) fn on_path(name: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

pub(crate) fn is_root() -> bool {
    run_quietly("id", &["-u"]).as_deref() == Some("0")
}

/// The words that give a command root's rights: none for root, sudo where it asks nothing.
fn privilege() -> Option<Vec<&'static str>> {
    if is_root() {
        return Some(Vec::new());
    }
    (on_path("sudo") && run_quietly("sudo", &["-n", "true"]).is_some()).then(|| vec!["sudo", "-n"])
}

/// A mirror may be out of reach for a moment, and another program may have the lock of packages:
/// both are waited for, within bounds. A list that cannot be fetched is an error.
const APT: [&str; 8] = [
    "-o",
    "Acquire::Retries=3",
    "-o",
    "Acquire::http::Timeout=30",
    "-o",
    "DPkg::Lock::Timeout=300",
    "-o",
    "APT::Update::Error-Mode=any",
];
const APT_TRIES: u32 = 3;
const APT_PAUSE: Duration = Duration::from_secs(20);

fn apt(prefix: &[&str], words: &[&str]) -> Result<()> {
    let mut all: Vec<&str> = prefix.to_vec();
    // As arguments, since sudo forgets the environment.
    all.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    all.extend(APT);
    all.extend(words);
    let (program, rest) = all.split_first().context("a command has a program")?;
    for left in (0..APT_TRIES).rev() {
        let status = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("cannot start {}", all.join(" ")))?;
        if status.success() {
            return Ok(());
        }
        if left > 0 {
            println!("tools: apt-get failed, trying again in {APT_PAUSE:?}");
            std::thread::sleep(APT_PAUSE);
        }
    }
    bail!("`{}` failed", all.join(" "))
}

pub(crate) fn run_quietly(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
