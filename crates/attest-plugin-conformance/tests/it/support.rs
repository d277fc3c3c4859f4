//! Runs the suite against the mutant or against a script.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attest_plugin_conformance::{Limits, Report, Runner, Status, Target, select};
use attest_plugin_host::{Executable, SearchPath};
use process_tree::Wrapper;

/// The plugin with faults, which is also the wrapper.
const MUTANT: &str = env!("CARGO_BIN_EXE_attest-plugin-mutant");

/// What the suite says of a plugin, by scenario.
pub(crate) type Found = BTreeMap<&'static str, (Status, String)>;

pub(crate) fn mutant(fault: &str) -> Target {
    Target {
        arguments: vec![fault.into()],
        ..target(Path::new(MUTANT))
    }
}

pub(crate) fn target(program: &Path) -> Target {
    Target {
        executable: Arc::new(Executable::open(program).unwrap()),
        arguments: Vec::new(),
        name: None,
        env: Vec::new(),
        search: search(),
        attest_version: "1.0.0".to_owned(),
        workspace: None,
        wrapper: Wrapper::new(MUTANT),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "scripts find their interpreters where the tests do"
)]
fn search() -> SearchPath {
    SearchPath::new(std::env::var_os("PATH").unwrap_or_default())
}

/// How long a fault of waiting is waited for.
const SHORT: Duration = Duration::from_millis(400);

/// Limits for plugins that do not answer.
pub(crate) fn impatient() -> Limits {
    Limits {
        answer: SHORT,
        ..Limits::default()
    }
}

/// Limits for plugins that do not end.
pub(crate) fn short_grace() -> Limits {
    Limits {
        grace: SHORT,
        ..usual()
    }
}

/// The limits of the protocol, and short silences.
pub(crate) fn usual() -> Limits {
    Limits {
        quiet: Duration::from_millis(50),
        ..Limits::default()
    }
}

/// Runs the named scenarios, or all of them, several at a time.
pub(crate) fn run(target: Target, limits: Limits, only: &[&str]) -> Found {
    let names: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
    let scenarios = select(&names).unwrap();
    let runner = Runner::new(target, limits);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut report = Report::default();
    let all = runner.run_all(&scenarios, NonZeroUsize::new(4).unwrap(), |verdict| {
        report.add(verdict);
        Ok::<_, Infallible>(())
    });
    runtime.block_on(all).unwrap();
    assert_eq!(report.verdicts().len(), scenarios.len());
    report
        .verdicts()
        .iter()
        .map(|verdict| {
            let reason = verdict.reason.clone().unwrap_or_default();
            (verdict.name, (verdict.status, reason))
        })
        .collect()
}

/// The names that ended so.
pub(crate) fn named(found: &Found, status: Status) -> Vec<&'static str> {
    found
        .iter()
        .filter(|(_, (own, _))| *own == status)
        .map(|(name, _)| *name)
        .collect()
}

/// Writes an executable script.
pub(crate) fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
