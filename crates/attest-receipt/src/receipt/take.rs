//! A receipt's fields, taken one by one.
//!
//! `null` means absent in the fields that are named with [`open`], and nowhere else; every object
//! is closed with `end`, so that what nobody took is refused at every depth.

use strict_json::{Element, FieldError, Fields, Json, Object};

use super::{
    Artifact, ArtifactKind, Ci, CiProvider, Control, ControlStatus, DeclaredStep, Execution,
    Isolation, IsolationMode, Provenance, Receipt, Reproducibility, SchemaError, Source,
    StepResult, plugin,
};

use crate::text::shown;

type Taken<T> = Result<T, FieldError>;

impl Receipt {
    /// Takes a document apart; every field is known, has its type, and stands once.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn from_tree(tree: Json) -> Result<Self, SchemaError> {
        let Json::Object(object) = tree else {
            return Err(SchemaError::NotAMapping(tree.kind()));
        };
        Ok(receipt(open_object(object, "", RECEIPT_NULLABLE)?)?)
    }
}

const RECEIPT_NULLABLE: &[&str] = &[
    "signature",
    "signer_public_key",
    "causal_chain_hash",
    "reproducibility",
    "provenance",
    "timestamp_token",
    "isolation",
    "plugins",
];

fn receipt(mut fields: Fields) -> Taken<Receipt> {
    let receipt = Receipt {
        schema_version: fields
            .contains("schema_version")
            .then(|| version(&mut fields, "schema_version"))
            .transpose()?,
        pipeline_hash: fields.text("pipeline_hash")?,
        steps: list(&mut fields, "steps", step)?,
        timestamp: fields.parse("timestamp")?,
        total_duration_secs: fields.u64("total_duration_secs")?,
        signature: fields.opt_text("signature")?,
        signer_public_key: fields.opt_text("signer_public_key")?,
        attest_version: fields.text("attest_version")?,
        causal_events: texts(&mut fields, "causal_events")?,
        causal_chain_hash: fields.opt_text("causal_chain_hash")?,
        reproducibility: opt(&mut fields, "reproducibility", &[], reproducibility)?,
        provenance: opt(&mut fields, "provenance", PROVENANCE_NULLABLE, provenance)?,
        timestamp_token: fields.opt_text("timestamp_token")?,
        isolation: opt(&mut fields, "isolation", &[], isolation)?,
        plugins: plugin::records(&mut fields)?,
    };
    fields.end()?;
    Ok(receipt)
}

fn step(element: Element) -> Taken<StepResult> {
    let mut fields = open(element, &["capsule_hash"])?;
    let step = StepResult {
        name: fields.text("name")?,
        input_hash: fields.text("input_hash")?,
        output_hash: fields.text("output_hash")?,
        duration_secs: fields.u64("duration_secs")?,
        exit_code: i32(&mut fields, "exit_code")?,
        cache_hit: fields.bool("cache_hit")?,
        stdout: fields.text("stdout")?,
        stderr: fields.text("stderr")?,
        capsule_hash: fields.opt_text("capsule_hash")?,
    };
    fields.end()?;
    Ok(step)
}

fn reproducibility(mut fields: Fields) -> Taken<Reproducibility> {
    let found = Reproducibility {
        verified: fields.bool("verified")?,
        runs: u32(&mut fields, "runs")?,
        method: fields.text("method")?,
    };
    fields.end()?;
    Ok(found)
}

const PROVENANCE_NULLABLE: &[&str] = &[
    "invocation_id",
    "started_at",
    "pipeline_name",
    "source",
    "ci",
    "execution",
];

fn provenance(mut fields: Fields) -> Taken<Provenance> {
    let provenance = Provenance {
        invocation_id: fields.opt_text("invocation_id")?,
        started_at: fields.opt_parse("started_at")?,
        pipeline_name: fields.opt_text("pipeline_name")?,
        source: opt(&mut fields, "source", &["repository", "branch"], source)?,
        runner_os: fields.text("runner_os")?,
        runner_arch: fields.text("runner_arch")?,
        ci: opt(&mut fields, "ci", &["run_id", "job_id"], ci)?,
        steps: list(&mut fields, "steps", declared_step)?,
        artifacts: list(&mut fields, "artifacts", artifact)?,
        execution: opt(&mut fields, "execution", &[], execution)?,
    };
    fields.end()?;
    Ok(provenance)
}

fn source(mut fields: Fields) -> Taken<Source> {
    let source = Source {
        repository: fields.opt_text("repository")?,
        commit: fields.text("commit")?,
        branch: fields.opt_text("branch")?,
        tracked_dirty: fields.bool("tracked_dirty")?,
    };
    fields.end()?;
    Ok(source)
}

fn ci(mut fields: Fields) -> Taken<Ci> {
    let known = [
        ("github", CiProvider::Github),
        ("gitlab", CiProvider::Gitlab),
    ];
    let ci = Ci {
        provider: one_of(&mut fields, "provider", &known)?,
        run_id: fields.opt_text("run_id")?,
        job_id: fields.opt_text("job_id")?,
    };
    fields.end()?;
    Ok(ci)
}

fn declared_step(element: Element) -> Taken<DeclaredStep> {
    let mut fields = element.object()?;
    let step = DeclaredStep {
        name: fields.text("name")?,
        needs: texts(&mut fields, "needs")?,
        command_hash: fields.text("command_hash")?,
        inputs: texts(&mut fields, "inputs")?,
        outputs: texts(&mut fields, "outputs")?,
    };
    fields.end()?;
    Ok(step)
}

fn artifact(element: Element) -> Taken<Artifact> {
    let known = [
        ("file", ArtifactKind::File),
        ("symlink", ArtifactKind::Symlink),
    ];
    let mut fields = element.object()?;
    let artifact = Artifact {
        step: fields.text("step")?,
        path: fields.text("path")?,
        kind: one_of(&mut fields, "kind", &known)?,
        digest: fields.text("digest")?,
        algorithm: fields.text("algorithm")?,
    };
    fields.end()?;
    Ok(artifact)
}

fn execution(mut fields: Fields) -> Taken<Execution> {
    // The mode decides which other fields are known, wherever it stands.
    let known = [("native", false), ("wrapped", true)];
    let execution = if one_of(&mut fields, "mode", &known)? {
        Execution::Wrapped {
            command: texts(&mut fields, "command")?,
        }
    } else {
        Execution::Native
    };
    fields.end()?;
    Ok(execution)
}

fn isolation(mut fields: Fields) -> Taken<Isolation> {
    let known = [
        ("none", IsolationMode::None),
        ("process", IsolationMode::Process),
        ("container", IsolationMode::Container),
        ("strict-container", IsolationMode::StrictContainer),
    ];
    let isolation = Isolation {
        mode: one_of(&mut fields, "mode", &known)?,
        platform: fields.text("platform")?,
        controls: list(&mut fields, "controls", control)?,
        capsule_steps: fields
            .contains("capsule_steps")
            .then(|| texts(&mut fields, "capsule_steps"))
            .transpose()?
            .unwrap_or_default(),
    };
    fields.end()?;
    Ok(isolation)
}

fn control(element: Element) -> Taken<Control> {
    let known = [
        ("enforced", ControlStatus::Enforced),
        ("not-enforced", ControlStatus::NotEnforced),
        ("not-available", ControlStatus::NotAvailable),
    ];
    let mut fields = element.object()?;
    let control = Control {
        name: fields.text("name")?,
        status: one_of(&mut fields, "status", &known)?,
        detail: fields.text("detail")?,
    };
    fields.end()?;
    Ok(control)
}

/// Opens an object in which the named fields may be `null` instead of absent.
pub(super) fn open(element: Element, nullable: &[&str]) -> Taken<Fields> {
    let path = element.path().to_owned();
    match element.value()? {
        Json::Object(object) => open_object(object, &path, nullable),
        other => Err(FieldError::WrongType {
            path,
            expected: "an object",
            found: other.kind(),
        }),
    }
}

pub(crate) fn open_object(object: Object, path: &str, nullable: &[&str]) -> Taken<Fields> {
    let given = object
        .into_iter()
        .filter(|(key, value)| *value != Json::Null || !nullable.contains(&key.as_str()))
        .collect();
    let object = Object::from_members(given)
        .map_err(|key| FieldError::invalid(path, format!("has the key '{}' twice", shown(&key))))?;
    Ok(object.fields(path))
}

/// Takes an object that may be absent.
fn opt<T>(
    fields: &mut Fields,
    name: &str,
    nullable: &[&str],
    take: impl FnOnce(Fields) -> Taken<T>,
) -> Taken<Option<T>> {
    let path = fields.path_of(name);
    match fields.opt_value(name)? {
        None => Ok(None),
        Some(Json::Object(object)) => take(open_object(object, &path, nullable)?).map(Some),
        Some(other) => Err(FieldError::WrongType {
            path,
            expected: "an object",
            found: other.kind(),
        }),
    }
}

fn list<T>(fields: &mut Fields, name: &str, take: impl Fn(Element) -> Taken<T>) -> Taken<Vec<T>> {
    fields.array(name)?.into_iter().map(take).collect()
}

fn texts(fields: &mut Fields, name: &str) -> Taken<Vec<String>> {
    list(fields, name, Element::text)
}

pub(super) fn u32(fields: &mut Fields, name: &str) -> Taken<u32> {
    let path = fields.path_of(name);
    whole(
        path,
        fields.u64(name),
        "a plain integer from 0 to 4294967295",
    )
}

pub(crate) fn i32(fields: &mut Fields, name: &str) -> Taken<i32> {
    let path = fields.path_of(name);
    whole(
        path,
        fields.i64(name),
        "a plain integer from -2147483648 to 2147483647",
    )
}

/// A later version was refused before, so that what is no version at all is told what one is.
fn version(fields: &mut Fields, name: &str) -> Taken<u32> {
    let path = fields.path_of(name);
    whole(path, fields.u64(name), "a plain integer from 0 to 3")
}

/// Narrows a whole number; whatever is wrong with it, the message has the range of the field.
fn whole<W, N: TryFrom<W>>(path: String, taken: Taken<W>, expected: &'static str) -> Taken<N> {
    let invalid = || FieldError::invalid(path, format!("must be {expected}"));
    match taken {
        Ok(value) => N::try_from(value).map_err(|_| invalid()),
        Err(FieldError::WrongType { path, found, .. }) => Err(FieldError::WrongType {
            path,
            expected,
            found,
        }),
        Err(FieldError::Invalid { .. }) => Err(invalid()),
        Err(other) => Err(other),
    }
}

/// Takes a word of a closed set.
pub(super) fn one_of<T: Copy>(fields: &mut Fields, name: &str, known: &[(&str, T)]) -> Taken<T> {
    let word = fields.text(name)?;
    let found = known.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        FieldError::invalid(
            fields.path_of(name),
            format!("must be one of {}", words.join(", ")),
        )
    })
}
