//! What a reader of a statement can require: what can be required of a receipt, and its files.

use std::fmt;

use attest_verify::{RequireError, Requirement};
use serde::{Serialize, Serializer};

/// Something that has to be established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportRequirement {
    /// The files were given and are the receipt's.
    Artifacts,
    /// As for a receipt; `signature` means both the envelope's and the receipt's.
    Receipt(Requirement),
}

/// Reads the values of `--require`: names with commas between them; a name counts once.
///
/// # Errors
/// The first name that is no requirement here.
pub fn parse_requirements<T: AsRef<str>>(
    values: &[T],
) -> Result<Vec<ImportRequirement>, RequireError> {
    let mut required = Vec::new();
    for name in values.iter().flat_map(|value| value.as_ref().split(',')) {
        let requirement = match name.trim() {
            "artifacts" => ImportRequirement::Artifacts,
            name => match name.parse() {
                // An envelope has neither the workspace nor the ledger with it.
                Ok(Requirement::Recompute) => return Err(at("recompute", "attest verify")),
                Ok(Requirement::Linkage) => return Err(at("linkage", "attest verify --archive")),
                Ok(requirement) => ImportRequirement::Receipt(requirement),
                Err(RequireError::Unknown(name)) => {
                    return Err(RequireError::UnknownOfImport(name));
                }
                Err(error) => return Err(error),
            },
        };
        if !required.contains(&requirement) {
            required.push(requirement);
        }
    }
    Ok(required)
}

fn at(name: &'static str, command: &'static str) -> RequireError {
    RequireError::Elsewhere { name, command }
}

impl fmt::Display for ImportRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Artifacts => f.write_str("artifacts"),
            Self::Receipt(requirement) => requirement.fmt(f),
        }
    }
}

impl Serialize for ImportRequirement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
