//! From bytes to a pipeline: every key is known, every value has its type.

use std::collections::BTreeMap;

use super::{
    Attestation, MAX_BYTES, NEWEST_VERSION, Pipeline, PipelineError, Step, StepAttestation,
};
use crate::nodes::{Fault, Keys, Place};
use crate::yaml::{self, Limits};

/// Deepest nesting of a pipeline file; the format itself needs four levels.
const MAX_DEPTH: usize = 16;

impl From<Fault> for PipelineError {
    fn from(fault: Fault) -> Self {
        Self::Invalid {
            line: Some(fault.line),
            reason: fault.reason,
        }
    }
}

impl Pipeline {
    /// Reads and validates a pipeline file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, PipelineError> {
        let limits = Limits {
            bytes: MAX_BYTES,
            depth: MAX_DEPTH,
        };
        let document = Place::document(yaml::parse(bytes, &limits)?);
        let mut keys = document.keys()?;
        let schema_version = schema_version(&mut keys)?;
        let mut lines = BTreeMap::new();
        let pipeline = Self {
            schema_version,
            version: keys.required("version")?.text()?,
            name: keys.optional("name").map(Place::text).transpose()?,
            steps: steps(keys.required("steps")?, &mut lines)?,
            env: text_map(&mut keys, "env")?,
            attestation: attestation(&mut keys)?,
            secrets: texts(&mut keys, "secrets")?,
        };
        keys.end()?;
        pipeline.check(&lines)?;
        Ok(pipeline)
    }
}

/// Judged before everything else, since a later format may have keys that are unknown here.
fn schema_version(keys: &mut Keys) -> Result<Option<u32>, PipelineError> {
    let Some(place) = keys.optional("schema_version") else {
        return Ok(None);
    };
    let line = place.line();
    match place.u32()? {
        version if version > NEWEST_VERSION => Err(PipelineError::Invalid {
            line: Some(line),
            reason: format!(
                "attest.yaml declares schema_version {version} but this attest supports up to \
                 {NEWEST_VERSION}; upgrade attest to use this file"
            ),
        }),
        version => Ok(Some(version)),
    }
}

fn steps(
    place: Place,
    lines: &mut BTreeMap<String, usize>,
) -> Result<BTreeMap<String, Step>, Fault> {
    let mut steps = BTreeMap::new();
    for (name, place) in place.entries()? {
        lines.insert(name.clone(), place.line());
        steps.insert(name, step(place)?);
    }
    Ok(steps)
}

fn step(place: Place) -> Result<Step, Fault> {
    let mut keys = place.keys()?;
    let step = Step {
        run: keys.required("run")?.text()?,
        inputs: texts(&mut keys, "inputs")?,
        outputs: texts(&mut keys, "outputs")?,
        needs: keys.optional("needs").map(Place::texts).transpose()?,
        env: keys.optional("env").map(Place::text_map).transpose()?,
        working_dir: keys.optional("working_dir").map(Place::text).transpose()?,
        image: keys.optional("image").map(Place::text).transpose()?,
        capsule: keys.optional("capsule").map(Place::text).transpose()?,
        cache: keys.switch("cache", true)?,
        timeout_secs: keys.optional("timeout_secs").map(Place::u64).transpose()?,
        attestation: keys
            .optional("attestation")
            .map(step_attestation)
            .transpose()?,
    };
    keys.end()?;
    Ok(step)
}

fn step_attestation(place: Place) -> Result<StepAttestation, Fault> {
    let mut keys = place.keys()?;
    let attestation = StepAttestation {
        kind: keys.required("type")?.text()?,
        reproducible: keys.switch("reproducible", false)?,
        generate_slsa: keys.switch("generate_slsa", false)?,
        verify_chain: keys.switch("verify_chain", false)?,
    };
    keys.end()?;
    Ok(attestation)
}

fn attestation(keys: &mut Keys) -> Result<Attestation, Fault> {
    let Some(place) = keys.given("attestation") else {
        return Ok(Attestation::default());
    };
    let mut keys = place.keys()?;
    let attestation = Attestation {
        sign_all_steps: keys.switch("sign_all_steps", false)?,
        verify_dependencies: keys.switch("verify_dependencies", false)?,
        require_reproducible: keys.switch("require_reproducible", false)?,
    };
    keys.end()?;
    Ok(attestation)
}

fn texts(keys: &mut Keys, name: &str) -> Result<Vec<String>, Fault> {
    keys.given(name).map_or(Ok(Vec::new()), Place::texts)
}

fn text_map(keys: &mut Keys, name: &str) -> Result<BTreeMap<String, String>, Fault> {
    keys.given(name)
        .map_or(Ok(BTreeMap::new()), Place::text_map)
}
