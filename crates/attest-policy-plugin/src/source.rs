//! Finds the policy in the workspace and reads it, once.

use std::path::{Component, Path, PathBuf};

use safe_fs::SafeFsError;

use crate::policy::{MAX_BYTES, Policy, PolicyError};

/// Where a policy lies unless `POLICY_FILE` says otherwise.
pub(crate) const DEFAULT: &str = ".attest/policy.toml";

/// Why there is no policy to judge by.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("POLICY_FILE is empty; leave it out for `{DEFAULT}`")]
    Empty,
    #[error(
        "POLICY_FILE is `{0}`, which is no path below the workspace: it starts with `/` or has `..`"
    )]
    NotBelow(String),
    #[error("`{name}` leads out of the workspace, to `{target}`")]
    LeadsOut { name: String, target: PathBuf },
    #[error("there is no policy `{0}` in the workspace")]
    Absent(String),
    #[error("cannot find `{name}`: {source}")]
    Find {
        name: String,
        source: std::io::Error,
    },
    #[error("{0}")]
    Read(SafeFsError),
    #[error("`{name}`: {source}")]
    Policy { name: String, source: PolicyError },
}

/// Reads the policy of a workspace. `named` is the value of `POLICY_FILE`.
pub(crate) fn policy(workspace: &Path, named: Option<&str>) -> Result<Policy, SourceError> {
    let name = named.unwrap_or(DEFAULT);
    let shown = || bounded::text::visible(name);
    if name.is_empty() {
        return Err(SourceError::Empty);
    }
    let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(name).components().all(plain) {
        return Err(SourceError::NotBelow(shown()));
    }
    let path = real(workspace, Path::new(name)).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => SourceError::Absent(shown()),
        _ => SourceError::Find {
            name: shown(),
            source,
        },
    })?;
    let path = path.map_err(|target| SourceError::LeadsOut {
        name: shown(),
        target,
    })?;
    let bytes = safe_fs::read_bounded(&path, MAX_BYTES as u64).map_err(SourceError::Read)?;
    Policy::parse(&bytes).map_err(|source| SourceError::Policy {
        name: shown(),
        source,
    })
}

/// Follows all links; what lies outside of the workspace then is the error inside.
fn real(workspace: &Path, name: &Path) -> std::io::Result<Result<PathBuf, PathBuf>> {
    let workspace = fs_err::canonicalize(workspace)?;
    let path = fs_err::canonicalize(workspace.join(name))?;
    Ok(if path.starts_with(&workspace) {
        Ok(path)
    } else {
        Err(path)
    })
}
