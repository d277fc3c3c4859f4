//! What a pipeline must not say: what could never work, and what would forge a record.

use std::collections::{BTreeMap, BTreeSet};

use super::{Pipeline, PipelineError, Step};
use crate::declared::{DeclaredError, check_declared};
use crate::graph::shown_cycle;
use crate::names;
use crate::text::{check_env, has_control, is_plain_name, shown};

impl Pipeline {
    /// Judges the whole; `lines` says where each step starts.
    pub(super) fn check(&self, lines: &BTreeMap<String, usize>) -> Result<(), PipelineError> {
        if self.version.is_empty() {
            return Err(invalid(None, "Pipeline version is required"));
        }
        if self.steps.is_empty() {
            return Err(invalid(None, "Pipeline must contain at least one step"));
        }
        let at = |name: &str| lines.get(name).copied();
        self.check_needs()
            .map_err(|(name, reason)| invalid(at(name), reason))?;
        if let Some(cycle) = self.graph().cycle() {
            let cycle = shown_cycle(&cycle);
            return Err(invalid(
                None,
                format!("Cycle detected in pipeline dependencies: {cycle}"),
            ));
        }
        for (name, step) in &self.steps {
            step.check(name)
                .map_err(|reason| invalid(at(name), reason))?;
        }
        self.check_names()
            .map_err(|(name, reason)| invalid(at(name), reason))?;
        check_env(&self.env).map_err(|reason| invalid(None, format!("env: {reason}")))?;
        check_secrets(&self.secrets).map_err(|reason| invalid(None, reason))
    }

    fn check_needs(&self) -> Result<(), (&str, String)> {
        for (name, step) in &self.steps {
            let mut needs = step.needs.iter().flatten();
            if let Some(need) = needs.find(|need| !self.steps.contains_key(*need)) {
                let (step, need) = (shown(name), shown(need));
                return Err((
                    name,
                    format!("Step '{step}' depends on unknown step '{need}'"),
                ));
            }
        }
        Ok(())
    }

    /// A receipt with two names that nobody tells apart would be refused; so no step runs for it.
    fn check_names(&self) -> Result<(), (&str, String)> {
        let names = self.steps.keys().map(String::as_str).collect();
        match names::alike(&names).first() {
            None => Ok(()),
            Some((name, other)) => {
                let (one, other) = (names::spelled(name), names::spelled(other));
                Err((name, format!("Step '{one}' looks like step '{other}'")))
            }
        }
    }
}

impl Step {
    fn check(&self, name: &str) -> Result<(), String> {
        let step = format!("Step '{}'", shown(name));
        names::check(name).map_err(|error| format!("{step} {error}"))?;
        if self.run.trim().is_empty() {
            return Err(format!("{step} has empty run command"));
        }
        if self.run.contains('\0') {
            return Err(format!("{step} has a NUL in its run command"));
        }
        check_paths(&step, "input", &self.inputs)?;
        check_paths(&step, "output", &self.outputs)?;
        if self.working_dir.as_deref().is_some_and(has_control) {
            return Err(format!("{step} has a control character in its working_dir"));
        }
        if let Some(capsule) = &self.capsule
            && !is_plain_name(capsule)
        {
            let capsule = shown(capsule);
            return Err(format!("{step} has a capsule that is no name: {capsule}"));
        }
        if self.timeout_secs == Some(0) {
            return Err(format!("{step} has a timeout_secs of 0"));
        }
        let env = self.env.iter().try_for_each(check_env);
        env.map_err(|reason| format!("{step} has an env that cannot be set: {reason}"))
    }
}

fn check_paths(step: &str, what: &str, paths: &[String]) -> Result<(), String> {
    for path in paths {
        let Err(error) = check_declared(path) else {
            continue;
        };
        let path = shown(path);
        return Err(match error {
            DeclaredError::Empty => format!("{step} has an empty {what} path"),
            DeclaredError::Absolute => format!("{step} has absolute {what} path: {path}"),
            DeclaredError::ControlCharacter => {
                format!("{step} has a control character in its {what} path: {path}")
            }
            DeclaredError::NotPlain => {
                format!("{step} has an empty, `.` or `..` component in its {what} path: {path}")
            }
        });
    }
    Ok(())
}

fn check_secrets(secrets: &[String]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in secrets {
        let shown = shown(name);
        if !is_variable_name(name) {
            return Err(format!("secrets: '{shown}' is no name of a variable"));
        }
        if !seen.insert(name) {
            return Err(format!("secrets: '{shown}' stands twice"));
        }
    }
    Ok(())
}

/// `[A-Za-z_][A-Za-z0-9_]*`
fn is_variable_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

fn invalid(line: Option<usize>, reason: impl Into<String>) -> PipelineError {
    PipelineError::Invalid {
        line,
        reason: reason.into(),
    }
}
