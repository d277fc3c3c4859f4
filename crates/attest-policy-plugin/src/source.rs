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
    #[error(
        "there is no policy `{DEFAULT}` in the workspace; POLICY_FILE in the plugin's `env` table names another"
    )]
    NoDefault,
    #[error(
        "there is no policy `{0}` in the workspace, which POLICY_FILE in the plugin's `env` table names"
    )]
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
        std::io::ErrorKind::NotFound if named.is_none() => SourceError::NoDefault,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use test_case::test_case;

    const POLICY: &str = "version = 1\n[[env]]\nid = \"r\"\ndecision = \"deny\"\nseverity = \"low\"\nforbidden = [\"X\"]\n";

    /// A workspace with a policy in its usual place and one beside the workspace.
    fn workspace() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("w");
        fs_err::create_dir_all(workspace.join(".attest")).unwrap();
        fs_err::write(workspace.join(DEFAULT), POLICY).unwrap();
        fs_err::write(root.path().join("outside.toml"), POLICY).unwrap();
        (root, workspace)
    }

    #[track_caller]
    fn refused(workspace: &Path, named: &str) -> String {
        policy(workspace, Some(named)).unwrap_err().to_string()
    }

    #[test]
    fn the_usual_place_or_the_named_one() {
        let (_root, workspace) = workspace();
        assert!(policy(&workspace, None).is_ok());
        fs_err::create_dir(workspace.join("rules")).unwrap();
        fs_err::write(workspace.join("rules/other.toml"), POLICY.replace('X', "Y")).unwrap();
        let other = policy(&workspace, Some("./rules/other.toml")).unwrap();
        assert_ne!(other, policy(&workspace, None).unwrap());
        fs_err::remove_file(workspace.join(DEFAULT)).unwrap();
        assert_eq!(
            policy(&workspace, None).unwrap_err().to_string(),
            "there is no policy `.attest/policy.toml` in the workspace; POLICY_FILE in the plugin's `env` table names another"
        );
    }

    #[test_case("", "POLICY_FILE is empty")]
    #[test_case("/etc/passwd", "is no path below the workspace")]
    #[test_case("../outside.toml", "is no path below the workspace")]
    #[test_case(".attest/../../outside.toml", "is no path below the workspace")]
    #[test_case(
        "gone.toml",
        "there is no policy `gone.toml` in the workspace, which POLICY_FILE in the plugin's `env` table names"
    )]
    #[test_case(".attest", "is not a regular file")]
    #[test_case(".attest/policy.toml/x", "cannot find `.attest/policy.toml/x`")]
    fn paths_that_are_refused(named: &str, says: &str) {
        let (_root, workspace) = workspace();
        let error = refused(&workspace, named);
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn links_may_stay_inside_and_never_lead_out() {
        let (root, workspace) = workspace();
        symlink(DEFAULT, workspace.join("inside.toml")).unwrap();
        assert!(policy(&workspace, Some("inside.toml")).is_ok());
        symlink("../outside.toml", workspace.join("out.toml")).unwrap();
        symlink(root.path(), workspace.join("folder")).unwrap();
        for name in ["out.toml", "folder/outside.toml"] {
            let error = refused(&workspace, name);
            assert!(error.contains("leads out of the workspace"), "{error}");
        }
        // A workspace that is reached through a link is a workspace.
        symlink(&workspace, root.path().join("link")).unwrap();
        assert!(policy(&root.path().join("link"), None).is_ok());
    }

    #[test]
    fn a_long_file_is_not_read() {
        let (_root, workspace) = workspace();
        fs_err::write(workspace.join("long.toml"), vec![b'#'; MAX_BYTES + 1]).unwrap();
        let error = refused(&workspace, "long.toml");
        assert!(error.contains("is longer than 65536 bytes"), "{error}");
    }
}
