//! What a plugin stands on: a workspace with a repository, and the directories that are its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use process_tree::{Capture, Spec, capture_direct};
use safe_fs::PrivateTempDir;
use tokio_util::sync::CancellationToken;

use crate::run::explain;
use crate::{Operation, Target, excerpt};

const GIT_TIMEOUT: Duration = Duration::from_secs(30);
const GIT_OUTPUT_BYTES: u64 = 1_048_576;

/// How many stray files a reason names.
const NAMED: usize = 3;

/// A variable that tells programs where to write, and the directory that is given for it.
const OWN: [(&str, &str); 6] = [
    ("HOME", "home"),
    ("TMPDIR", "tmp"),
    ("XDG_CACHE_HOME", "home/cache"),
    ("XDG_CONFIG_HOME", "home/config"),
    ("XDG_DATA_HOME", "home/data"),
    ("XDG_STATE_HOME", "home/state"),
];

/// The ground of one session; removed with everything on it at the end.
pub(crate) struct Ground {
    directory: Option<PrivateTempDir>,
    workspace: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// What was there before the plugin came, if that is to be compared.
    before: Option<Snapshot>,
}

type Snapshot = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

impl Ground {
    /// Prepares a session: a workspace where one is edited, and private directories if they are
    /// to be watched.
    pub(crate) async fn lay(
        target: &Target,
        operation: Operation,
        watch: bool,
    ) -> Result<Self, String> {
        let mut ground = Self {
            directory: None,
            workspace: None,
            environment: target.env.clone(),
            before: None,
        };
        if operation == Operation::Text && !watch {
            return Ok(ground);
        }
        let directory = temporary()?;
        if operation == Operation::WorkspaceEdit {
            let workspace = directory.path().join("workspace");
            fs_err::create_dir(&workspace).map_err(|error| tool_failed(&error))?;
            let git = Git {
                target,
                directory: &workspace,
            };
            git.prepare().await?;
            ground.workspace = Some(workspace);
        }
        if watch {
            for (variable, name) in OWN {
                let path = directory.path().join(name);
                fs_err::create_dir(&path).map_err(|error| tool_failed(&error))?;
                ground.environment.retain(|(own, _)| own != variable);
                ground.environment.push((variable.into(), path.into()));
            }
            let before = snapshot(directory.path(), ground.workspace.as_deref());
            ground.before = Some(before.map_err(|error| tool_failed(&error))?);
        }
        ground.directory = Some(directory);
        Ok(ground)
    }

    /// Returns the workspace, as text, which a path from this tool always is.
    pub(crate) fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref().and_then(Path::to_str)
    }

    /// Returns the environment of the plugin.
    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Names what was written outside of the workspace, and removes the ground.
    pub(crate) fn strays(self) -> Result<Option<String>, String> {
        let Some(directory) = self.directory else {
            return Ok(None);
        };
        let found = match &self.before {
            Some(before) => {
                let after = snapshot(directory.path(), self.workspace.as_deref())
                    .map_err(|error| tool_failed(&error))?;
                difference(directory.path(), before, &after)
            }
            None => None,
        };
        // What cannot be removed is in a temporary directory, and no fault of the plugin's protocol.
        drop(directory.close());
        Ok(found)
    }
}

/// Lists what is below a directory, except for one, with sizes and times of files.
fn snapshot(root: &Path, except: Option<&Path>) -> std::io::Result<Snapshot> {
    let mut found = Snapshot::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs_err::read_dir(&directory)? {
            let path = entry?.path();
            if except == Some(path.as_path()) {
                continue;
            }
            let metadata = fs_err::symlink_metadata(&path)?;
            if metadata.is_dir() {
                // A directory's own time moves with each temporary file in it.
                found.insert(path.clone(), (0, None));
                open.push(path);
            } else {
                found.insert(path, (metadata.len(), metadata.modified().ok()));
            }
        }
    }
    Ok(found)
}

fn difference(root: &Path, before: &Snapshot, after: &Snapshot) -> Option<String> {
    let changed = after
        .iter()
        .filter(|(path, state)| before.get(*path) != Some(state))
        .map(|(path, _)| path);
    let removed = before.keys().filter(|path| !after.contains_key(*path));
    let names: Vec<String> = changed
        .chain(removed)
        .map(|path| {
            let name = path.strip_prefix(root).unwrap_or(path);
            format!("`{}`", excerpt::message(&name.to_string_lossy()))
        })
        .collect();
    let shown = names.get(..NAMED).unwrap_or(&names).join(", ");
    (!names.is_empty()).then(|| {
        format!(
            "expected nothing to be left outside of the workspace, {} of the private HOME and TMPDIR changed: {shown}",
            names.len()
        )
    })
}

/// Makes a private directory below the temporary one.
pub(crate) fn temporary() -> Result<PrivateTempDir, String> {
    let root = fs_err::canonicalize(std::env::temp_dir()).map_err(|error| tool_failed(&error))?;
    PrivateTempDir::new_in(&root, "forge-conformance-").map_err(|error| tool_failed(&error))
}

/// A git that sees neither the user's configuration nor the tool's environment.
pub(crate) struct Git<'a> {
    pub(crate) target: &'a Target,
    pub(crate) directory: &'a Path,
}

impl Git<'_> {
    /// Makes a repository with an empty first commit.
    pub(crate) async fn prepare(&self) -> Result<(), String> {
        self.run(&["init", "--quiet"]).await?;
        let commit = ["commit", "--quiet", "--allow-empty", "--message"];
        let message = ["chore: empty base"];
        self.run(&[&commit[..], &message].concat()).await?;
        Ok(())
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Result<Vec<u8>, String> {
        let path = self
            .target
            .env
            .iter()
            .filter(|(name, _)| name == "PATH")
            .cloned();
        let spec = Spec::new(["git"].iter().chain(args).copied())
            .env(path)
            .env([
                ("HOME", "/nonexistent"),
                ("LC_ALL", "C"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_AUTHOR_NAME", "Conformance"),
                ("GIT_AUTHOR_EMAIL", "conformance@localhost"),
                ("GIT_COMMITTER_NAME", "Conformance"),
                ("GIT_COMMITTER_EMAIL", "conformance@localhost"),
            ])
            .cwd(self.directory);
        let limits = Capture::new(GIT_TIMEOUT, GIT_OUTPUT_BYTES);
        let done = capture_direct(spec, limits, &CancellationToken::new())
            .await
            .map_err(|error| tool_failed(&error))?;
        if done.exit.is_success() {
            return Ok(done.stdout);
        }
        let said = excerpt::tail(&done.stderr).unwrap_or_else(|| "nothing".to_owned());
        Err(format!(
            "the tool could not prepare or examine a workspace: git {}: {}; stderr: {said}",
            args.join(" "),
            done.exit.status
        ))
    }
}

fn tool_failed(error: &dyn std::error::Error) -> String {
    format!(
        "the tool could not prepare or examine a workspace: {}",
        explain(error)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_came_went_or_changed() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs_err::create_dir(path("workspace")).unwrap();
        fs_err::create_dir(path("home")).unwrap();
        fs_err::write(path("home/kept"), "1").unwrap();
        fs_err::write(path("home/gone"), "1").unwrap();
        let look = || snapshot(root.path(), Some(&path("workspace"))).unwrap();
        let before = look();
        fs_err::write(path("workspace/edit"), "1").unwrap();
        assert_eq!(difference(root.path(), &before, &look()), None);
        fs_err::write(path("home/new"), "1").unwrap();
        fs_err::remove_file(path("home/gone")).unwrap();
        fs_err::write(path("home/kept"), "22").unwrap();
        let said = difference(root.path(), &before, &look()).unwrap();
        for name in ["`home/new`", "`home/gone`", "`home/kept`"] {
            assert!(said.contains(name), "{said}");
        }
    }
}
