//! What a receipt claims of the run as a whole: events, order, command, comparison, isolation.

use std::collections::{BTreeMap, BTreeSet};

use super::Problems;
use crate::encode::blake3_hex;
use crate::pipeline::{wrapped_command, wrapped_hash};
use crate::receipt::{
    ControlStatus, Execution, Isolation, IsolationMode, Provenance, Receipt, Reproducibility,
    StepResult,
};
use crate::text::shown;

/// The controls that hold for plain processes too.
const WITHOUT_A_SANDBOX: &[&str] = &["environment", "inputs", "timeout"];

impl Problems {
    /// Every step left one event, or, as with the first release's wrapped commands, none did.
    pub(super) fn events(&mut self, receipt: &Receipt) {
        let events = &receipt.causal_events;
        let mut seen = BTreeSet::new();
        for event in events {
            self.hash(event, || "causal_events".into());
            if !seen.insert(event) {
                let event = shown(event);
                self.add(format!("causal_events: '{event}' stands twice"));
            }
        }
        let (count, steps) = (events.len(), receipt.steps.len());
        if count != 0 && count != steps {
            self.add(format!(
                "causal_events are {count}, and there are {steps} steps"
            ));
        }
        if let Some(root) = &receipt.causal_chain_hash {
            self.hash(root, || "causal_chain_hash".into());
        }
        match (&receipt.causal_chain_hash, events.as_slice()) {
            (None, [_, ..]) => self.add("causal_chain_hash is missing behind causal_events"),
            (Some(_), []) => self.add("causal_chain_hash stands without causal_events"),
            (Some(root), [event]) if root != event => {
                self.add("causal_chain_hash is not the id of the one event");
            }
            _ => {}
        }
    }

    /// A step runs when all that it needs has succeeded, and not otherwise.
    pub(super) fn needs(&mut self, provenance: &Provenance, results: &[StepResult]) {
        let codes: BTreeMap<&str, i32> = results
            .iter()
            .map(|step| (step.name.as_str(), step.exit_code))
            .collect();
        let declared: BTreeSet<&str> = provenance
            .steps
            .iter()
            .map(|step| step.name.as_str())
            .collect();
        let ran = provenance.steps.iter();
        for step in ran.filter(|step| codes.contains_key(step.name.as_str())) {
            // What is not declared at all is told elsewhere.
            let needs = step.needs.iter().map(String::as_str);
            for need in needs.filter(|need| declared.contains(need)) {
                let why = match codes.get(need) {
                    Some(0) => continue,
                    Some(_) => "failed",
                    None => "is not in the receipt",
                };
                let (step, need) = (shown(&step.name), shown(need));
                self.add(format!("step '{step}' needs '{need}', which {why}"));
            }
        }
    }

    /// A wrapped command is one step, and its argument vector is all that is hashed of it.
    pub(super) fn wrapped(&mut self, provenance: &Provenance, receipt: &Receipt) {
        let Some(Execution::Wrapped { command }) = &provenance.execution else {
            return;
        };
        if command.is_empty() {
            self.add("provenance.execution: command is empty");
        }
        let ([step], [declared]) = (receipt.steps.as_slice(), provenance.steps.as_slice()) else {
            return self.add("provenance.execution: a wrapped command is one step");
        };
        if step.cache_hit {
            self.add("provenance.execution: a wrapped command is never a cache hit");
        }
        if wrapped_hash(command) != receipt.pipeline_hash {
            self.add("pipeline_hash is not the hash of the wrapped command");
        }
        if blake3_hex(wrapped_command(command).as_bytes()) != declared.command_hash {
            let name = shown(&declared.name);
            self.add(format!(
                "provenance: step '{name}': command_hash is not the hash of the wrapped command"
            ));
        }
    }

    pub(super) fn reproducibility(&mut self, found: &Reproducibility) {
        if found.runs < 2 {
            self.add(format!(
                "reproducibility: {} runs cannot be compared",
                found.runs
            ));
        }
        if found.method.trim().is_empty() {
            self.add("reproducibility: method is empty");
        }
    }

    pub(super) fn isolation(&mut self, isolation: &Isolation, names: &BTreeSet<&str>) {
        let mut seen = BTreeSet::new();
        for control in &isolation.controls {
            let name = control.name.as_str();
            if !seen.insert(name) {
                let name = shown(name);
                self.add(format!("isolation: control '{name}' stands twice"));
            }
            if isolation.mode == IsolationMode::None
                && control.status == ControlStatus::Enforced
                && !WITHOUT_A_SANDBOX.contains(&name)
            {
                let name = shown(name);
                self.add(format!(
                    "isolation: mode none cannot enforce the control '{name}'"
                ));
            }
        }
        if isolation.mode == IsolationMode::StrictContainer && isolation.controls.is_empty() {
            self.add("isolation: mode strict-container has no controls");
        }
        for step in &isolation.capsule_steps {
            self.known("isolation.capsule_steps", step, names);
        }
    }
}
