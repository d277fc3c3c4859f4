//! Bytes into messages: duplicate keys refused, unknown fields passed over (seed 6).

mod payload;

use strict_json::{Element, FieldError, Fields, Layout, Limits, MAX_DEPTH};

use crate::annotation::Annotation;
use crate::announcement::Announcement;
use crate::limits::{FINDINGS, MAJOR, MESSAGE_BYTES, VERSION_BYTES};
use crate::verdict::{Finding, Verdict};
use crate::violation::{Violation, excerpt};

pub(crate) use payload::payload;

/// The fields that every message has, and the rest of it.
pub(crate) struct Envelope {
    pub(crate) kind: String,
    pub(crate) body: Fields,
}

impl Envelope {
    /// Opens a line and checks `v`.
    pub(crate) fn open(line: &[u8]) -> Result<Self, Violation> {
        let limits = Limits {
            bytes: MESSAGE_BYTES,
            // Unknown fields may be deeper than what we know; only the reader's own bound counts.
            depth: MAX_DEPTH,
        };
        // "Compact" binds the writer: white space is passed over (ours).
        let object = strict_json::parse_object(line, &limits, Layout::Spaced)?;
        let mut body = object.fields("");
        if body.u64("v")? != u64::from(MAJOR) {
            return Err(Violation::Version);
        }
        let kind = body.text("kind")?;
        Ok(Self { kind, body })
    }

    /// Takes the id, which a request or answer must have.
    pub(crate) fn id(&mut self) -> Result<u64, Violation> {
        Ok(self.body.u64("id")?)
    }

    /// Checks that this is the answer to a request.
    pub(crate) fn answers(&mut self, id: u64, kind: &'static str) -> Result<(), Violation> {
        if self.kind != kind {
            return Err(self.unexpected(kind));
        }
        if self.id()? != id {
            let expected = id.to_string();
            return Err(Violation::Id { expected });
        }
        Ok(())
    }

    pub(crate) fn unexpected(&self, expected: &'static str) -> Violation {
        Violation::Kind {
            expected,
            found: excerpt(self.kind.as_bytes()),
        }
    }
}

/// Reads the rest of `hello`.
pub(crate) fn hello(mut body: Fields) -> Result<(String, Vec<u64>), Violation> {
    let attest_version = body.text("attest_version")?;
    let protocols = body.array("protocols")?.into_iter().map(Element::u64);
    let protocols = protocols.collect::<Result<_, _>>()?;
    body.end_ignoring_unknown();
    Ok((attest_version, protocols))
}

/// Reads the rest of `hello_ok`.
pub(crate) fn hello_ok(mut body: Fields) -> Result<Announcement, Violation> {
    let announcement = Announcement {
        name: body.parse("name")?,
        version: body.text("version")?,
        protocol: u32::try_from(body.u64("protocol")?)
            .map_err(|_| FieldError::invalid("protocol", "is no major version"))?,
        hooks: texts(body.array("hooks")?)?,
        deterministic: body.bool("deterministic")?,
    };
    body.end_ignoring_unknown();
    if announcement.version.len() > VERSION_BYTES {
        return Err(FieldError::invalid("version", "has more than 256 bytes").into());
    }
    Ok(announcement)
}

/// Reads the rest of `verdict`.
pub(crate) fn verdict(mut body: Fields) -> Result<Verdict, Violation> {
    let decision = body.parse("decision")?;
    let items = body.opt_array("findings")?.unwrap_or_default();
    if items.len() > FINDINGS {
        return Err(Violation::TooManyFindings);
    }
    let findings = items.into_iter().map(finding).collect::<Result<_, _>>()?;
    let annotation = body.opt_value("annotation")?.map(annotation).transpose()?;
    body.end_ignoring_unknown();
    Ok(Verdict {
        decision,
        findings,
        annotation,
    })
}

fn finding(element: Element) -> Result<Finding, FieldError> {
    let path = element.path().to_owned();
    let mut fields = element.object()?;
    let finding = Finding::new(
        fields.text("rule")?,
        fields.parse("severity")?,
        fields.text("message")?,
        fields.opt_text("resource")?,
    );
    fields.end_ignoring_unknown();
    finding.map_err(|error| FieldError::invalid(path, error.to_string()))
}

fn annotation(value: strict_json::Json) -> Result<Annotation, Violation> {
    let strict_json::Json::Object(object) = value else {
        return Err(Violation::Field(FieldError::WrongType {
            path: "annotation".to_owned(),
            expected: "an object",
            found: value.kind(),
        }));
    };
    Annotation::new(object).map_err(Violation::Annotation)
}

fn texts(items: Vec<Element>) -> Result<Vec<String>, FieldError> {
    items.into_iter().map(Element::text).collect()
}
