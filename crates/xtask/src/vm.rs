//! The scenarios of `e2e/`, on machines that `e2e/driver` makes. What a machine is comes from the
//! flake, through the stand-in; this file builds it, finds a place for images, and starts the driver.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::stage::Verdict;
use crate::tools::{self, Program};
use crate::workspace::root;

/// The version of the checker of Python code, which comes as a wheel.
pub(crate) const RUFF: &str = "0.17.6";

const NSPAWN: &[Program] = &[
    ("ip", "iproute2", "the network of the machines"),
    ("mmdebstrap", "mmdebstrap", "their root file system"),
    (
        "nix",
        "nix-bin",
        "their configuration is evaluated and built",
    ),
    ("python3", "python3", "the driver"),
    ("systemd-nspawn", "systemd-container", "the machines"),
    (
        "unshare",
        "util-linux",
        "namespaces that end with the driver",
    ),
];
const QEMU: &[Program] = &[
    ("dpkg-deb", "dpkg", "their kernel is unpacked"),
    ("mke2fs", "e2fsprogs", "the disks of virtual machines"),
    ("qemu-system-x86_64", "qemu-system-x86", "virtual machines"),
    ("vde_switch", "vde2", "the network of virtual machines"),
];

/// What to run, and on what.
#[derive(Debug, PartialEq, Eq)]
struct Options<'a> {
    scenario: Option<&'a str>,
    backend: &'a str,
}

/// Runs one scenario or all of them.
pub(crate) fn run(words: &[&str]) -> Result<Verdict> {
    let options = options(words)?;
    let root = root()?;
    let scenarios = chosen(&root, options.scenario)?;
    if !cfg!(target_os = "linux") || !tools::is_root() {
        bail!(
            "root is needed on Linux, for the namespaces, mounts and network of the machines: \
             run it as root, or `nix build .#checks.{}-linux.vm-{}` where nixpkgs can be fetched",
            std::env::consts::ARCH,
            scenarios.first().map_or("NAME", String::as_str),
        );
    }
    tools::install(&tools::missing(NSPAWN))?;
    if options.backend == "qemu" {
        tools::install(&tools::missing(QEMU))?;
    }
    let mut verdict = Verdict::Clean;
    for scenario in scenarios {
        println!("vm: {scenario} on {}", options.backend);
        let machines = build(&root, &scenario)?;
        if drive(&root, &machines, &scenario, options.backend)? == Verdict::Found {
            verdict = Verdict::Found;
        }
    }
    Ok(verdict)
}

/// The driver's own tests.
pub(crate) fn driver() -> Result<Verdict> {
    let status = Command::new("python3")
        .args([
            "-m",
            "unittest",
            "discover",
            "-s",
            "driver/tests",
            "-t",
            ".",
        ])
        .current_dir(root()?.join("e2e"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .context("cannot start python3")?;
    Ok(if status.success() {
        Verdict::Clean
    } else {
        Verdict::Found
    })
}

fn options<'a>(words: &[&'a str]) -> Result<Options<'a>> {
    let mut options = Options {
        scenario: None,
        backend: "nspawn",
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--backend" => match words.next() {
                Some(&backend @ ("nspawn" | "qemu")) => options.backend = backend,
                _ => bail!("--backend is `nspawn` or `qemu`"),
            },
            name if !name.starts_with('-') && options.scenario.is_none() => {
                options.scenario = Some(name);
            }
            other => bail!("`cargo xtask vm` does not know `{other}`"),
        }
    }
    Ok(options)
}

/// The names of `e2e/*.nix`, or the one that was asked for.
fn chosen(root: &Path, asked: Option<&str>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("e2e"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|suffix| suffix == "nix")
            && let Some(name) = path.file_stem()
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    if let Some(asked) = asked {
        if !names.iter().any(|name| name == asked) {
            bail!(
                "no scenario is called `{asked}`; there is {}",
                names.join(", ")
            );
        }
        names = vec![asked.to_owned()];
    }
    Ok(names)
}

/// Builds the file trees of a scenario's machines, and returns the folder.
fn build(root: &Path, scenario: &str) -> Result<PathBuf> {
    let attribute = format!(".#checks.{}-linux.vm-{scenario}", std::env::consts::ARCH);
    let output = Command::new(root.join("e2e/host/nix"))
        .args(["build", "--no-link", "--json", &attribute])
        .env("FORGE_NIX_TARGET", tools::nix_target(root))
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start e2e/host/nix")?;
    if !output.status.success() {
        bail!("the machines of `{scenario}` cannot be built");
    }
    let built: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let path = built
        .pointer("/0/outputs/out")
        .and_then(serde_json::Value::as_str);
    path.map(PathBuf::from)
        .with_context(|| format!("no output of `{attribute}`"))
}

fn drive(root: &Path, machines: &Path, scenario: &str, backend: &str) -> Result<Verdict> {
    let logs = tools::target(root).join(format!("vm-logs/{scenario}-{backend}"));
    let status = Command::new("python3")
        .args(["-m", "driver", "--backend", backend, "--cache"])
        .arg(cache()?)
        .arg("--logs")
        .arg(std::path::absolute(logs)?)
        .arg(machines)
        .current_dir(root.join("e2e"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .status()
        .context("cannot start python3")?;
    match status.code() {
        Some(0) => Ok(Verdict::Clean),
        Some(1) => Ok(Verdict::Found),
        _ => bail!("the driver could not run `{scenario}` on {backend}"),
    }
}

/// Where images stay, beside the build directories of `.ci/run`.
fn cache() -> Result<PathBuf> {
    let folder = match std::env::var_os("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(folder.join("agent-forge-ci/images"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_and_backend_come_in_any_order() {
        let wanted = Options {
            scenario: Some("main-job"),
            backend: "qemu",
        };
        assert_eq!(options(&["main-job", "--backend", "qemu"]).unwrap(), wanted);
        assert_eq!(options(&["--backend", "qemu", "main-job"]).unwrap(), wanted);
        assert_eq!(options(&[]).unwrap().backend, "nspawn");
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for words in [
            &["--backend", "xen"][..],
            &["--backend"],
            &["one", "two"],
            &["--fast"],
        ] {
            assert!(options(words).is_err(), "{words:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("e2e")).unwrap();
        std::fs::write(folder.path().join("e2e/known.nix"), "").unwrap();
        assert_eq!(chosen(folder.path(), None).unwrap(), ["known"]);
        let error = chosen(folder.path(), Some("other"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`other`") && error.contains("known"),
            "{error}"
        );
    }
}
