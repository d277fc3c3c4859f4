//! What is incoherent in a receipt whose fields all have their types.

use std::collections::BTreeSet;

use super::{Artifact, DeclaredStep, Provenance, Receipt, StepResult};
use crate::manifest::check_path;
use crate::text::{is_lower_hex_64, shown};

const NO_HASH: &str = "is not a 64-char lowercase hex digest";

impl Receipt {
    /// Returns what is incoherent: hashes that are none, names that stand twice, no steps.
    ///
    /// The signature and its key are not judged here.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Problems::default();
        if self.attest_version.is_empty() {
            problems.add("attest_version is empty");
        }
        problems.hash("pipeline_hash", &self.pipeline_hash);
        if self.steps.is_empty() {
            problems.add("receipt has no steps");
        }
        let names = problems.names("receipt", self.steps.iter().map(|step| step.name.as_str()));
        for step in &self.steps {
            problems.step(step);
        }
        for event in &self.causal_events {
            problems.hash("causal_events", event);
        }
        if let Some(hash) = &self.causal_chain_hash {
            problems.hash("causal_chain_hash", hash);
        }
        if let Some(provenance) = &self.provenance {
            problems.provenance(provenance, &names);
        }
        if let Some(isolation) = &self.isolation {
            for step in &isolation.capsule_steps {
                problems.known("isolation.capsule_steps", step, &names);
            }
        }
        problems.0
    }
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    fn hash(&mut self, what: &str, hash: &str) {
        if !is_lower_hex_64(hash) {
            self.add(format!("{what} {NO_HASH}"));
        }
    }

    /// Returns the set of the names after judging them.
    fn names<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        for name in names {
            if name.chars().any(char::is_control) {
                self.add(format!(
                    "{what}: step name {name:?} has a control character"
                ));
            }
            if !seen.insert(name) {
                self.add(format!("{what}: step {name:?} stands twice"));
            }
        }
        seen
    }

    fn known(&mut self, what: &str, step: &str, names: &BTreeSet<&str>) {
        if !names.contains(step) {
            self.add(format!(
                "{what} names a step {step:?} that is not in the receipt"
            ));
        }
    }

    fn step(&mut self, step: &StepResult) {
        let what = |field: &str| format!("step '{}': {field}", shown(&step.name));
        self.hash(&what("input_hash"), &step.input_hash);
        self.hash(&what("output_hash"), &step.output_hash);
        if let Some(hash) = &step.capsule_hash {
            self.hash(&what("capsule_hash"), hash);
        }
    }

    fn provenance(&mut self, provenance: &Provenance, names: &BTreeSet<&str>) {
        let declared = provenance.steps.iter().map(|step| step.name.as_str());
        let declared = self.names("provenance", declared);
        for step in &provenance.steps {
            self.declared_step(step, &declared);
        }
        for name in names.difference(&declared) {
            self.add(format!("step {name:?} is not declared in provenance"));
        }
        for artifact in &provenance.artifacts {
            self.artifact(artifact, names);
        }
    }

    fn declared_step(&mut self, step: &DeclaredStep, declared: &BTreeSet<&str>) {
        let name = shown(&step.name);
        self.hash(
            &format!("provenance: step '{name}': command_hash"),
            &step.command_hash,
        );
        for need in step
            .needs
            .iter()
            .filter(|need| !declared.contains(need.as_str()))
        {
            self.add(format!(
                "provenance: step '{name}' needs {need:?}, which is not declared"
            ));
        }
    }

    fn artifact(&mut self, artifact: &Artifact, names: &BTreeSet<&str>) {
        let path = shown(&artifact.path);
        self.hash(&format!("artifact '{path}': digest"), &artifact.digest);
        if artifact.algorithm != "blake3" {
            self.add(format!("artifact '{path}': algorithm is not blake3"));
        }
        if let Err(error) = check_path(&artifact.path) {
            self.add(format!("artifact '{path}' {error}"));
        }
        self.known("provenance.artifacts", &artifact.step, names);
    }
}
