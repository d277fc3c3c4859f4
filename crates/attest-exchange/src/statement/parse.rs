//! Reads a statement. What in-toto and SLSA define may have more fields than are known here, which
//! are passed over; the evidence is a format of its own and has to be exactly that.

use std::collections::BTreeMap;

use strict_json::{Element, FieldError, Fields, Json, JsonError, Layout, Limits, Object};

use super::{
    BuildDefinition, Builder, Digest, Evidence, ExternalParameters, Metadata, Predicate, Producer,
    RunDetails, Statement, Subject,
};
use crate::blob::Blob;
use crate::dsse;

const MAX_DEPTH: usize = 32;
/// Files that may be carried along.
const MAX_TRUST_FILES: usize = 257;

/// Why a payload is no statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    #[error("payload is not an in-toto statement: {0}")]
    Json(#[from] JsonError),
    #[error("payload is not an in-toto statement: {0}")]
    Field(#[from] FieldError),
}

impl Statement {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let limits = Limits {
            bytes: dsse::MAX_BYTES,
            depth: MAX_DEPTH,
        };
        let object = strict_json::parse_object(bytes, &limits, Layout::Spaced)?;
        let mut fields = object.fields("");
        let statement = Self {
            kind: fields.text("_type")?,
            predicate: predicate(fields.object("predicate")?)?,
            predicate_type: fields.text("predicateType")?,
            subject: fields
                .array("subject")?
                .into_iter()
                .map(subject)
                .collect::<Result<_, _>>()?,
        };
        fields.end_ignoring_unknown();
        Ok(statement)
    }
}

fn subject(element: Element) -> Result<Subject, FieldError> {
    let mut fields = element.object()?;
    let mut digest = fields.object("digest")?;
    let subject = Subject {
        digest: Digest {
            blake3: digest.text("blake3")?,
            sha256: digest.opt_text("sha256")?,
        },
        name: fields.text("name")?,
    };
    digest.end_ignoring_unknown();
    fields.end_ignoring_unknown();
    Ok(subject)
}

fn predicate(mut fields: Fields) -> Result<Predicate, FieldError> {
    let mut run = fields.object("runDetails")?;
    let mut builder = run.object("builder")?;
    let mut metadata = run.object("metadata")?;
    let predicate = Predicate {
        evidence: fields
            .opt_value("attest_evidence")?
            .map(evidence)
            .transpose()?,
        build: build(fields.object("buildDefinition")?)?,
        run: RunDetails {
            builder: Builder {
                id: builder.text("id")?,
            },
            metadata: Metadata {
                finished_on: metadata.text("finishedOn")?,
                invocation_id: metadata.text("invocationId")?,
                started_on: metadata.text("startedOn")?,
            },
        },
    };
    for open in [builder, metadata, run, fields] {
        open.end_ignoring_unknown();
    }
    Ok(predicate)
}

fn build(mut fields: Fields) -> Result<BuildDefinition, FieldError> {
    let mut parameters = fields.object("externalParameters")?;
    // What somebody could steer a build with must not be passed over.
    let external_parameters = ExternalParameters {
        pipeline_hash: parameters.text("pipelineHash")?,
    };
    parameters.end()?;
    let dependencies = fields.array("resolvedDependencies")?;
    let build = BuildDefinition {
        build_type: fields.text("buildType")?,
        external_parameters,
        resolved_dependencies: dependencies.iter().map(|_| ()).collect(),
    };
    fields.end_ignoring_unknown();
    Ok(build)
}

/// Says in the format's own words what may be `null`.
const NULLABLE: [&str; 3] = ["originalSigner", "workflow", "workflowBundle"];

fn evidence(value: Json) -> Result<Evidence, FieldError> {
    const PATH: &str = "predicate.attest_evidence";
    let mut fields = open(value, PATH, &NULLABLE)?;
    let mut producer = fields.object("producer")?;
    let evidence = Evidence {
        artifact_binding: fields.text("artifactBinding")?,
        format: fields.text("format")?,
        original_signer: fields.opt_text("originalSigner")?,
        producer: Producer {
            name: producer.text("name")?,
            version: producer.text("version")?,
        },
        receipt: Blob::take(fields.object("receipt")?)?,
        semantics: fields
            .array("semantics")?
            .into_iter()
            .map(Element::text)
            .collect::<Result<_, _>>()?,
        trust_material: trust_material(fields.value("trustMaterial")?)?,
        workflow: fields.opt_value("workflow")?,
        workflow_bundle: fields
            .opt_object("workflowBundle")?
            .map(Blob::take)
            .transpose()?,
    };
    producer.end()?;
    fields.end()?;
    Ok(evidence)
}

fn trust_material(value: Json) -> Result<BTreeMap<String, Blob>, FieldError> {
    const PATH: &str = "predicate.attest_evidence.trustMaterial";
    let files = object(value, PATH)?;
    if files.len() > MAX_TRUST_FILES {
        return Err(FieldError::invalid(PATH, "has too many files"));
    }
    files
        .into_iter()
        .map(|(name, file)| Ok((name, Blob::take(open(file, PATH, &[])?)?)))
        .collect()
}

/// Opens an object without the members that are `null` and may be.
fn open(value: Json, path: &str, nullable: &[&str]) -> Result<Fields, FieldError> {
    let given = object(value, path)?
        .into_iter()
        .filter(|(key, value)| *value != Json::Null || !nullable.contains(&key.as_str()))
        .collect();
    // Its keys were unique before some were left out.
    let object = Object::from_members(given).unwrap_or_default();
    Ok(object.fields(path))
}

fn object(value: Json, path: &str) -> Result<Object, FieldError> {
    match value {
        Json::Object(object) => Ok(object),
        other => Err(FieldError::WrongType {
            path: path.to_owned(),
            expected: "an object",
            found: other.kind(),
        }),
    }
}
