//! The parts of a receipt that rules look at.
//!
//! A payload is what its sender says. What is missing or of another type is `None`, and a rule
//! that needs it says so; nothing here is filled in.

use strict_json::{Json, Object};

/// The time of a receipt whose run was one of two that are compared.
const FIXED_TIME: &str = "2024-01-01T00:00:00Z";

pub(super) struct ReceiptView<'a> {
    pub(super) steps: Option<Vec<Ended<'a>>>,
    pub(super) declared: Option<Vec<Declared<'a>>>,
    pub(super) artifacts: Artifacts<'a>,
    pub(super) total_secs: Option<u64>,
    /// Whether times are fixed, and durations with them.
    pub(super) fixed_time: bool,
}

/// A step that ended.
pub(super) struct Ended<'a> {
    pub(super) name: &'a str,
    pub(super) exit_code: Option<i64>,
    pub(super) duration_secs: Option<u64>,
}

/// What a step declared.
pub(super) struct Declared<'a> {
    pub(super) name: &'a str,
    pub(super) needs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
}

/// A file behind an output.
pub(super) struct Artifact<'a> {
    pub(super) step: &'a str,
    pub(super) path: &'a str,
}

pub(super) enum Artifacts<'a> {
    Told(Vec<Artifact<'a>>),
    /// Only their number is told.
    Counted(u64),
    Untold,
}

impl<'a> ReceiptView<'a> {
    pub(super) fn of(receipt: &'a Object) -> Self {
        let provenance = object(receipt.get("provenance"));
        let compared = object(receipt.get("reproducibility")).is_some();
        Self {
            steps: all(receipt.get("steps"), ended),
            declared: provenance.and_then(|it| all(it.get("steps"), declared)),
            artifacts: artifacts(receipt, provenance),
            total_secs: number(receipt.get("total_duration_secs")),
            fixed_time: compared || text(receipt.get("timestamp")) == Some(FIXED_TIME),
        }
    }
}

fn ended(step: &Object) -> Option<Ended<'_>> {
    Some(Ended {
        name: text(step.get("name"))?,
        exit_code: match step.get("exit_code") {
            Some(Json::Integer(code)) => Some(*code),
            _ => None,
        },
        duration_secs: number(step.get("duration_secs")),
    })
}

fn declared(step: &Object) -> Option<Declared<'_>> {
    Some(Declared {
        name: text(step.get("name"))?,
        needs: texts(step.get("needs"))?,
        outputs: texts(step.get("outputs"))?,
    })
}

fn artifacts<'a>(receipt: &'a Object, provenance: Option<&'a Object>) -> Artifacts<'a> {
    let told = all(provenance.and_then(|it| it.get("artifacts")), |artifact| {
        Some(Artifact {
            step: text(artifact.get("step"))?,
            path: text(artifact.get("path"))?,
        })
    });
    // A count that stands anywhere takes the place of a list; it is not read past.
    let count = provenance.and_then(|it| it.get("artifact_count"));
    match (told, number(count.or(receipt.get("artifact_count")))) {
        (_, Some(count)) => Artifacts::Counted(count),
        (Some(told), None) => Artifacts::Told(told),
        (None, None) => Artifacts::Untold,
    }
}

/// Takes every element of a list of objects, or none.
fn all<'a, T>(list: Option<&'a Json>, take: fn(&'a Object) -> Option<T>) -> Option<Vec<T>> {
    let Some(Json::Array(items)) = list else {
        return None;
    };
    items.iter().map(|item| take(object(Some(item))?)).collect()
}

fn object(value: Option<&Json>) -> Option<&Object> {
    match value {
        Some(Json::Object(object)) => Some(object),
        _ => None,
    }
}

fn text(value: Option<&Json>) -> Option<&str> {
    match value {
        Some(Json::Text(text)) => Some(text),
        _ => None,
    }
}

fn texts(value: Option<&Json>) -> Option<Vec<&str>> {
    let Some(Json::Array(items)) = value else {
        return None;
    };
    items.iter().map(|item| text(Some(item))).collect()
}

fn number(value: Option<&Json>) -> Option<u64> {
    match value {
        Some(Json::Integer(number)) => u64::try_from(*number).ok(),
        Some(Json::Unsigned(number)) => Some(*number),
        _ => None,
    }
}
