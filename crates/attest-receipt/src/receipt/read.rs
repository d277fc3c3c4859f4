//! From bytes to a receipt: limits, syntax, version gate, strict types.

use strict_json::{FieldError, Json};

use super::{MAX_BYTES, MAX_DEPTH, NEWEST_VERSION, Receipt};
use crate::yaml::{self, IntoJson as _, Limits, YamlError};

/// Says why bytes are no receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// They are no readable document: an operational fault (exit 2).
    #[error(transparent)]
    Unreadable(#[from] YamlError),
    /// They are a document that is no receipt: an honest no (exit 1).
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Says how a document differs from a receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A later version.
    #[error(
        "receipt schema_version {0} is newer than the latest supported version ({NEWEST_VERSION}); upgrade attest to verify this receipt"
    )]
    Newer(u64),
    /// Not a mapping.
    #[error("a receipt is a mapping, not {0}")]
    NotAMapping(&'static str),
    /// A field. No source: it would say the same once more.
    #[error("{}", told(.0))]
    Field(FieldError),
}

impl From<FieldError> for SchemaError {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

/// Names the object first and then what is wrong with its field, so that the same words stand
/// there at every depth: ``steps[0]: missing field `name` ``.
fn told(error: &FieldError) -> String {
    let (within, name) = match error.path().rsplit_once('.') {
        Some((within, name)) => (format!("{within}: "), name),
        None => (String::new(), error.path()),
    };
    let wrong = match error {
        FieldError::Missing { .. } => format!("missing field `{name}`"),
        FieldError::Unknown { .. } => format!("unknown field `{name}`"),
        FieldError::Null { .. } => format!("field `{name}` must not be null"),
        FieldError::WrongType {
            expected, found, ..
        } => format!("field `{name}` must be {expected}, not {found}"),
        FieldError::Invalid { reason, .. } => format!("field `{name}` {reason}"),
        other => return other.to_string(),
    };
    format!("{within}{wrong}")
}

/// Reads a receipt from the bytes of its file.
///
/// # Errors
/// What is wrong with them.
pub fn read(bytes: &[u8]) -> Result<Receipt, ReadError> {
    let limits = Limits {
        bytes: MAX_BYTES,
        depth: MAX_DEPTH,
    };
    let tree = yaml::parse(bytes, &limits)?.into_json()?;
    version_gate(&tree)?;
    Ok(Receipt::from_tree(tree)?)
}

/// Refuses a later version on the raw document, before anything else is judged.
///
/// # Errors
/// [`SchemaError::Newer`]
pub fn version_gate(tree: &Json) -> Result<(), SchemaError> {
    let Json::Object(object) = tree else {
        return Ok(());
    };
    let newer = match object.get("schema_version") {
        Some(Json::Integer(version)) => u64::try_from(*version).ok(),
        Some(Json::Unsigned(version)) => Some(*version),
        _ => None,
    };
    match newer.filter(|version| *version > u64::from(NEWEST_VERSION)) {
        Some(version) => Err(SchemaError::Newer(version)),
        None => Ok(()),
    }
}
