//! Fields of the original's configuration that ask for what this Gate does not
//! do. They are refused by name wherever they stand: a Gate that ignored them
//! would look as if it delivered.

use strict_json::{FieldError, Fields};

/// Fields at the top of the file.
const TOP: &[(&str, &str)] = &[
    ("public_repository_root", "cloning public repositories"),
    ("git_executable", "cloning public repositories"),
    ("deployment_profiles", "deployment profiles"),
    ("delivery", "delivery to GitHub"),
];

/// Fields of a repository.
const REPOSITORY: &[(&str, &str)] = &[
    ("repository_url", "cloning public repositories"),
    ("deployment_profile", "deployment profiles"),
];

/// Refuses the first field at the top of the file that asks for too much.
pub(super) fn refuse_at_top(fields: &Fields) -> Result<(), FieldError> {
    refuse(fields, TOP)
}

/// Refuses the first field of a repository that asks for too much.
pub(super) fn refuse_in_repository(fields: &Fields) -> Result<(), FieldError> {
    refuse(fields, REPOSITORY)
}

fn refuse(fields: &Fields, table: &[(&str, &str)]) -> Result<(), FieldError> {
    match table.iter().find(|(name, _)| fields.contains(name)) {
        None => Ok(()),
        Some((name, what)) => Err(FieldError::invalid(
            fields.path_of(name),
            format!("this Gate does not support {what}; remove the field"),
        )),
    }
}
