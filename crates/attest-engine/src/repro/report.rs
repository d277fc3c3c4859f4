//! What differs between two builds.

use std::collections::{BTreeMap, BTreeSet};

use attest_receipt::manifest::{Entry, Manifest};
use attest_receipt::receipt::{ArtifactKind, StepResult};
use serde::Serialize;

use super::plugins::PluginReport;
use crate::run::RunOutcome;

/// How many files of one step are named.
const NAMED: usize = 20;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether both builds made the same, and no plugin that is compared answered differently.
    pub verified: bool,
    /// How many builds there were; one if it was stopped, or the second before its first step.
    pub runs: u32,
    /// Every step that ran in either build, by name.
    pub steps: Vec<StepReport>,
    /// Every plugin that was declared, by name.
    pub plugins: Vec<PluginReport>,
}

/// What one step made in two builds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// Its name.
    pub name: String,
    /// Whether both builds made the same and ended with the same code.
    pub same: bool,
    /// The output hash of the first build; null where it did not run.
    pub a: Option<String>,
    /// The output hash of the second build.
    pub b: Option<String>,
    /// The exit code of the first build.
    pub exit_code_a: Option<i32>,
    /// The exit code of the second build.
    pub exit_code_b: Option<i32>,
    /// The first files that differ.
    pub differs: Vec<Difference>,
    /// How many more there are.
    pub more: usize,
}

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its path below the workspace.
    pub path: String,
    /// Its line in the first manifest, without the path; null where it is absent.
    pub a: Option<String>,
    /// Its line in the second.
    pub b: Option<String>,
}

impl Report {
    pub(super) fn new(
        first: &RunOutcome,
        second: Option<&RunOutcome>,
        plugins: Vec<PluginReport>,
    ) -> Self {
        let (a, b) = (Build::of(first), second.map(Build::of).unwrap_or_default());
        let names: BTreeSet<&str> = a.steps.keys().chain(b.steps.keys()).copied().collect();
        let steps: Vec<_> = names
            .into_iter()
            .map(|name| StepReport::new(name, &a, &b))
            .collect();
        Self {
            verified: second.is_some()
                && steps.iter().all(|step| step.same)
                && !plugins.iter().any(PluginReport::has_differences),
            runs: if second.is_some() { 2 } else { 1 },
            steps,
            plugins,
        }
    }

    /// Returns what is to be said of plugins as lines for people: who was left out of the
    /// comparison, and why, and who answered the two builds differently.
    #[must_use]
    pub fn plugin_lines(&self) -> Vec<String> {
        self.plugins.iter().flat_map(PluginReport::lines).collect()
    }

    /// Returns which steps differ, and in what, as lines for people; none if none does.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let differing: Vec<_> = self.steps.iter().filter(|step| !step.same).collect();
        if differing.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!(
            "reproducibility check failed: {} step(s) diverged between the two runs",
            differing.len()
        )];
        for step in differing {
            step.tell(&mut lines);
        }
        lines
    }
}

/// The steps of one build.
#[derive(Default)]
struct Build<'a> {
    steps: BTreeMap<&'a str, &'a StepResult>,
    outputs: BTreeMap<&'a str, &'a Manifest>,
}

impl<'a> Build<'a> {
    fn of(outcome: &'a RunOutcome) -> Self {
        let steps = outcome.receipt.steps.iter();
        let outputs = outcome.outputs.iter();
        Self {
            steps: steps.map(|step| (step.name.as_str(), step)).collect(),
            outputs: outputs.map(|(name, made)| (name.as_str(), made)).collect(),
        }
    }

    fn files(&self, step: &str) -> BTreeMap<&'a str, &'a Entry> {
        let made = self.outputs.get(step);
        made.map(|made| made.entries().collect())
            .unwrap_or_default()
    }
}

impl StepReport {
    fn new(name: &str, a: &Build<'_>, b: &Build<'_>) -> Self {
        let (in_a, in_b) = (a.steps.get(name), b.steps.get(name));
        let hash = |step: Option<&&StepResult>| step.map(|step| step.output_hash.clone());
        let code = |step: Option<&&StepResult>| step.map(|step| step.exit_code);
        let (hash_a, hash_b) = (hash(in_a), hash(in_b));
        let mut differs = Vec::new();
        let mut more = 0;
        if hash_a != hash_b && hash_a.is_some() && hash_b.is_some() {
            let (files_a, files_b) = (a.files(name), b.files(name));
            let paths: BTreeSet<&str> = files_a.keys().chain(files_b.keys()).copied().collect();
            for path in paths {
                let (in_a, in_b) = (files_a.get(path), files_b.get(path));
                if in_a == in_b {
                    continue;
                }
                if differs.len() == NAMED {
                    more += 1;
                    continue;
                }
                differs.push(Difference {
                    path: path.to_owned(),
                    a: in_a.map(|entry| told(entry)),
                    b: in_b.map(|entry| told(entry)),
                });
            }
        }
        Self {
            name: name.to_owned(),
            same: hash_a == hash_b && code(in_a) == code(in_b),
            a: hash_a,
            b: hash_b,
            exit_code_a: code(in_a),
            exit_code_b: code(in_b),
            differs,
            more,
        }
    }

    fn tell(&self, lines: &mut Vec<String>) {
        lines.push(format!("step {}:", bounded::text::visible(&self.name)));
        for (build, hash, code) in [
            ("A", &self.a, self.exit_code_a),
            ("B", &self.b, self.exit_code_b),
        ] {
            let hash = hash.as_deref().unwrap_or("none: it did not run");
            lines.push(format!("  output hash (run {build}): {hash}"));
            if let Some(code) = code.filter(|_| self.exit_code_a != self.exit_code_b) {
                lines.push(format!("  exit code (run {build}): {code}"));
            }
        }
        for file in &self.differs {
            let path = bounded::text::visible(&file.path);
            for (build, line) in [("A", &file.a), ("B", &file.b)] {
                lines.push(match line {
                    Some(line) => format!("  {build}: {line} {path}"),
                    None => format!("  {build}: <absent> {path}"),
                });
            }
        }
        if self.more > 0 {
            lines.push(format!("  ... ({} more files differ)", self.more));
        }
    }
}

/// The start of an entry's line in a manifest.
fn told(entry: &Entry) -> String {
    let kind = match entry.kind {
        ArtifactKind::File => "f",
        ArtifactKind::Symlink => "l",
    };
    format!("{kind}:{}", entry.digest)
}
