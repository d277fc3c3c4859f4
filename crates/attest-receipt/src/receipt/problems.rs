//! What is incoherent in a receipt whose fields all have their types.
//!
//! Everything is judged from the receipt alone. No rule takes more than about as long as sorting
//! what stands in the document, since a receipt may have very many steps, needs and artifacts.

mod artifacts;
mod claims;

use std::collections::BTreeSet;

use super::{Artifact, DeclaredStep, Provenance, Receipt, StepResult};
use crate::declared::check_declared;
use crate::graph::{self, Graph};
use crate::manifest::check_path;
use crate::names;
use crate::text::{is_lower_hex_64, shown};

impl Receipt {
    /// Returns what is incoherent: what no run could have left, and what could be read in two ways.
    ///
    /// The signature and its key are not judged here.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Problems::default();
        if self.attest_version.is_empty() {
            problems.add("attest_version is empty");
        }
        problems.hash(&self.pipeline_hash, || "pipeline_hash".into());
        if self.steps.is_empty() {
            problems.add("receipt has no steps");
        }
        let names = problems.names("receipt", self.steps.iter().map(|step| step.name.as_str()));
        for step in &self.steps {
            problems.step(step, self.total_duration_secs);
        }
        problems.events(self);
        if let Some(found) = &self.reproducibility {
            problems.reproducibility(found);
        }
        if let Some(provenance) = &self.provenance {
            problems.provenance(provenance, &names);
            problems.needs(provenance, &self.steps);
            problems.wrapped(provenance, self);
            problems.artifacts(provenance, &self.steps);
        }
        if let Some(isolation) = &self.isolation {
            problems.isolation(isolation, &names);
        }
        problems.told()
    }
}

/// Most problems that are told one by one; a hostile receipt may have very many.
const TOLD: usize = 50;

#[derive(Default)]
struct Problems {
    told: Vec<String>,
    more: usize,
}

impl Problems {
    fn add(&mut self, problem: impl Into<String>) {
        if self.told.len() < TOLD {
            self.told.push(problem.into());
        } else {
            self.more += 1;
        }
    }

    fn told(mut self) -> Vec<String> {
        if self.more > 0 {
            self.told.push(format!("and {} more", self.more));
        }
        self.told
    }

    fn hash(&mut self, hash: &str, what: impl FnOnce() -> String) {
        if !is_lower_hex_64(hash) {
            let what = what();
            self.add(format!("{what} is not a 64-char lowercase hex digest"));
        }
    }

    /// Returns the set of the names after judging them.
    fn names<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let (mut seen, mut sound) = (BTreeSet::new(), BTreeSet::new());
        for name in names {
            if !seen.insert(name) {
                let name = shown(name);
                self.add(format!("{what}: step '{name}' stands twice"));
            }
            match names::check(name) {
                Ok(()) => {
                    sound.insert(name);
                }
                Err(error) => {
                    let name = shown(name);
                    self.add(format!("{what}: step '{name}' {error}"));
                }
            }
        }
        for (name, other) in names::alike(&sound) {
            let (name, other) = (names::spelled(name), names::spelled(other));
            self.add(format!("{what}: step '{name}' looks like step '{other}'"));
        }
        seen
    }

    fn known(&mut self, what: &str, step: &str, names: &BTreeSet<&str>) {
        if !names.contains(step) {
            let step = shown(step);
            self.add(format!("{what}: step '{step}' is not in the receipt"));
        }
    }

    fn step(&mut self, step: &StepResult, total: u64) {
        let what = |field: &str| format!("step '{}': {field}", shown(&step.name));
        self.hash(&step.input_hash, || what("input_hash"));
        self.hash(&step.output_hash, || what("output_hash"));
        if let Some(hash) = &step.capsule_hash {
            self.hash(hash, || what("capsule_hash"));
        }
        // A result from the cache keeps the time that the step took then.
        if !step.cache_hit && step.duration_secs > total {
            let what = what("duration_secs");
            self.add(format!("{what} is longer than the whole run"));
        }
        // Only what succeeded is kept for a later run.
        if step.cache_hit && step.exit_code != 0 {
            let what = what("cache_hit");
            self.add(format!("{what} stands with exit code {}", step.exit_code));
        }
    }

    fn provenance(&mut self, provenance: &Provenance, names: &BTreeSet<&str>) {
        let declared = provenance.steps.iter().map(|step| step.name.as_str());
        let declared = self.names("provenance", declared);
        for step in &provenance.steps {
            self.declared_step(step, &declared);
        }
        self.cycle(&provenance.steps);
        for name in names.difference(&declared) {
            let name = shown(name);
            self.add(format!("provenance: step '{name}' is not declared"));
        }
        for artifact in &provenance.artifacts {
            self.artifact(artifact, names);
        }
    }

    fn declared_step(&mut self, step: &DeclaredStep, declared: &BTreeSet<&str>) {
        let what = || format!("provenance: step '{}'", shown(&step.name));
        self.hash(&step.command_hash, || format!("{}: command_hash", what()));
        let needs = step.needs.iter();
        for need in needs.filter(|need| !declared.contains(need.as_str())) {
            let (what, need) = (what(), shown(need));
            self.add(format!("{what} needs '{need}', which is not declared"));
        }
        for (role, paths) in [("input", &step.inputs), ("output", &step.outputs)] {
            for path in paths {
                if let Err(error) = check_declared(path) {
                    let (what, path) = (what(), shown(path));
                    self.add(format!("{what}: {role} '{path}' {error}"));
                }
            }
        }
    }

    fn cycle(&mut self, steps: &[DeclaredStep]) {
        let needs = steps.iter().flat_map(|step| {
            let needs = step.needs.iter();
            needs.map(|need| (step.name.as_str(), need.as_str()))
        });
        if let Some(cycle) = Graph::new(needs).cycle() {
            let cycle = graph::shown_cycle(&cycle);
            self.add(format!("provenance: steps need each other: {cycle}"));
        }
    }

    fn artifact(&mut self, artifact: &Artifact, names: &BTreeSet<&str>) {
        let what = || format!("artifact '{}'", shown(&artifact.path));
        self.hash(&artifact.digest, || format!("{}: digest", what()));
        if artifact.algorithm != "blake3" {
            self.add(format!("{}: algorithm is not blake3", what()));
        }
        if let Err(error) = check_path(&artifact.path) {
            self.add(format!("{} {error}", what()));
        }
        self.known("provenance.artifacts", &artifact.step, names);
    }
}
