//! What is known of a run before its first step: order, environments, secrets, facts for hooks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use attest_receipt::pipeline::{Pipeline, Step};
use attest_receipt::receipt::DeclaredStep;

use super::{Environment, Execution, RunError, RunOptions};
use crate::hooks::{PipelineFacts, StepFacts};
use crate::output::Secrets;

/// What a hermetic run sets, whatever is declared.
pub const HERMETIC: [(&str, &str); 4] = [
    ("SOURCE_DATE_EPOCH", "1704067200"),
    ("TZ", "UTC"),
    ("LC_ALL", "C.UTF-8"),
    ("LANG", "C.UTF-8"),
];

/// A run before its first step.
#[derive(Debug)]
pub(super) struct Plan {
    /// In topological order.
    pub(super) steps: Vec<Planned>,
    pub(super) facts: PipelineFacts,
    pub(super) secrets: Secrets,
    pub(super) pipeline_hash: String,
}

/// A step before it runs.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) step: Step,
    /// The positions of the steps that it needs.
    pub(super) needs: Vec<usize>,
    pub(super) command_hash: String,
    /// The pipeline's variables, its own and ours: what it gets beside the inherited ones.
    pub(super) variables: BTreeMap<String, String>,
}

impl Plan {
    pub(super) fn new(options: &RunOptions<'_>) -> Result<Self, RunError> {
        let pipeline = &options.pipeline;
        let pipeline_hash = pipeline.hash().map_err(|source| RunError::Internal {
            what: "cannot write the pipeline in its canonical form",
            source: source.into(),
        })?;
        let order = pipeline.order();
        let places: BTreeMap<&str, usize> = order
            .iter()
            .enumerate()
            .map(|(place, name)| (*name, place))
            .collect();
        let mut steps = Vec::with_capacity(order.len());
        for name in &order {
            let Some(step) = pipeline.steps.get(*name) else {
                continue;
            };
            let needs = step.needs.iter().flatten();
            steps.push(Planned {
                name: (*name).to_owned(),
                needs: needs
                    .filter_map(|need| places.get(need.as_str()).copied())
                    .collect(),
                command_hash: step.command_hash(),
                variables: variables(name, step, &pipeline.env, options.execution),
                step: step.clone(),
            });
        }
        let secrets = options.secrets();
        let facts = PipelineFacts {
            path: replaced(&secrets, options.pipeline_path.as_ref()),
            hash: pipeline_hash.clone(),
            name: replaced(&secrets, pipeline.name.as_ref()),
            version: replaced(&secrets, Some(&pipeline.version)),
            steps: steps
                .iter()
                .map(|planned| planned.facts(&pipeline.env, &secrets))
                .collect(),
        };
        Ok(Self {
            steps,
            facts,
            secrets,
            pipeline_hash,
        })
    }

    /// What each step declared, as the receipt tells it.
    pub(super) fn declared(&self) -> Vec<DeclaredStep> {
        let mut declared: Vec<_> = self.steps.iter().map(Planned::declared).collect();
        declared.sort_by(|a, b| a.name.cmp(&b.name));
        declared
    }
}

impl Planned {
    fn declared(&self) -> DeclaredStep {
        DeclaredStep {
            name: self.name.clone(),
            needs: self.step.needs.clone().unwrap_or_default(),
            command_hash: self.command_hash.clone(),
            inputs: self.step.inputs.clone(),
            outputs: self.step.outputs.clone(),
        }
    }

    fn facts(&self, shared: &BTreeMap<String, String>, secrets: &Secrets) -> StepFacts {
        let mut env = shared.clone();
        env.extend(self.step.env.clone().unwrap_or_default());
        let hidden =
            |(name, value): (String, String)| (secrets.replace(&name), secrets.replace(&value));
        StepFacts {
            // A run whose names and declared paths hold a secret is refused before anybody is asked.
            name: self.name.clone(),
            run: secrets.replace(&self.step.run),
            needs: self.step.needs.clone().unwrap_or_default(),
            inputs: self.step.inputs.clone(),
            outputs: self.step.outputs.clone(),
            env: env.into_iter().map(hidden).collect(),
            working_dir: replaced(secrets, self.step.working_dir.as_ref()),
            capsule: replaced(secrets, self.step.capsule.as_ref()),
            cache: self.step.cache,
            timeout_secs: self.step.timeout_secs,
        }
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.step.timeout_secs.map(Duration::from_secs)
    }

    /// The whole environment of the step's command.
    pub(super) fn environment(&self, options: &RunOptions<'_>) -> Vec<(OsString, OsString)> {
        let inherited = options.environment.0.iter();
        let mut environment: Vec<_> = match options.execution {
            // A name with `=` cannot be passed on, and no shell could have used it.
            Execution::Ambient => inherited
                .filter(|(name, _)| !name.is_empty() && !name.as_bytes().contains(&b'='))
                .cloned()
                .collect(),
            Execution::Hermetic => inherited
                .filter(|(name, _)| name == "PATH")
                .cloned()
                .collect(),
        };
        let own = self.variables.iter();
        environment.extend(own.map(|(name, value)| (name.into(), value.into())));
        environment
    }

    /// Where the step's command runs: an existing folder of the workspace.
    pub(super) fn directory(&self, workspace: &Path) -> Result<PathBuf, RunError> {
        let Some(directory) = &self.step.working_dir else {
            return Ok(workspace.to_owned());
        };
        let refused = |why| RunError::WorkingDirectory {
            step: self.name.clone(),
            directory: bounded::text::visible(directory),
            why,
        };
        if !Path::new(directory)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return Err(refused("must be relative and stay in the workspace"));
        }
        let missing = |_| refused("does not exist");
        let found = fs_err::canonicalize(workspace.join(directory)).map_err(missing)?;
        let within = fs_err::canonicalize(workspace).map_err(missing)?;
        if !found.starts_with(within) {
            return Err(refused("leads out of the workspace"));
        }
        if !found.is_dir() {
            return Err(refused("is not a directory"));
        }
        Ok(found)
    }
}

fn replaced(secrets: &Secrets, text: Option<&String>) -> Option<String> {
    text.map(|text| secrets.replace(text))
}

fn variables(
    name: &str,
    step: &Step,
    shared: &BTreeMap<String, String>,
    execution: Execution,
) -> BTreeMap<String, String> {
    let mut variables = shared.clone();
    variables.extend(step.env.clone().unwrap_or_default());
    variables.insert("ATTEST_STEP_NAME".into(), name.into());
    variables.insert("ATTEST_DETERMINISTIC".into(), "true".into());
    if execution == Execution::Hermetic {
        variables.extend(HERMETIC.map(|(name, value)| (name.into(), value.into())));
    }
    variables
}

/// Returns the values that the secret variables of a pipeline have anywhere in a run.
#[must_use]
pub fn secrets(pipeline: &Pipeline, environment: &Environment) -> Secrets {
    let mut values: Vec<(&str, &[u8])> = Vec::new();
    for name in &pipeline.secrets {
        let inherited = environment.0.iter();
        values.extend(
            inherited
                .filter(|(known, _)| known == name.as_str())
                .map(|(_, value)| (name.as_str(), value.as_bytes())),
        );
        let own = pipeline.steps.values().filter_map(|step| step.env.as_ref());
        values.extend(
            std::iter::once(&pipeline.env)
                .chain(own)
                .filter_map(|env| env.get(name))
                .map(|value| (name.as_str(), value.as_bytes())),
        );
    }
    Secrets::new(values)
}
