//! What the host adds to the file: real paths, the token, certificates, values of variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bounded::EnvName;
use bounded::text::with_causes;
use cli_shell::Secret;
use forge_domain::RepositoryId;

use super::paths::overlap;
use super::{HostPath, TokenSource, WorkerConfig};
use crate::WorkerError;

/// Where results are kept if the file does not say: on the disk of the workspaces, which this
/// Worker owns, and not among them.
const DEFAULT_STATE_DIR: &str = ".forge-worker-state";

/// A configuration together with what the host made of it.
#[derive(Debug)]
pub struct Host {
    /// The canonical roots of repositories.
    pub repository_roots: Vec<PathBuf>,
    /// The canonical folder of workspaces.
    pub worktree_root: PathBuf,
    /// The canonical folder of private run-time folders.
    pub runtime_root: PathBuf,
    /// The folder of undelivered results; it may not exist yet.
    pub state_dir: PathBuf,
    /// The canonical paths of the registered repositories.
    pub repositories: BTreeMap<RepositoryId, PathBuf>,
    /// The token.
    pub token: Secret,
    /// The values of the allowed variables that are set.
    pub environment: BTreeMap<EnvName, OsString>,
    /// The git program.
    pub git: PathBuf,
}

impl Host {
    /// Looks up everything that the configuration names. Opens no socket and changes nothing.
    ///
    /// # Errors
    /// Something is missing, or is not what its field asks for.
    pub fn look_up(config: &WorkerConfig) -> Result<Self, WorkerError> {
        let worktree_root = directory("worktree_root", &config.worktree_root)?;
        let runtime_root = directory("runtime_root", &config.runtime_root)?;
        let state_dir = state_dir(config.state_dir.as_ref(), &worktree_root)?;
        let repository_roots = repository_roots(config)?;
        let repositories = repositories(config, &repository_roots)?;
        apart(
            &worktree_root,
            &runtime_root,
            &state_dir,
            &repository_roots,
            &repositories,
        )?;
        for (id, plugin) in &config.plugins {
            if let Some(program) = plugin.argv.first() {
                executable(&format!("plugins[{id}].argv[0]"), Path::new(program))?;
            }
        }
        let environment = config
            .environment_allowlist
            .iter()
            .filter_map(|name| Some((name.clone(), cli_shell::env::var_os(name.as_ref())?)))
            .collect();
        Ok(Self {
            repository_roots,
            worktree_root,
            runtime_root,
            state_dir,
            repositories,
            token: token(&config.token)?,
            environment,
            git: git(config.git_executable.as_ref())?,
        })
    }
}

fn token(source: &TokenSource) -> Result<Secret, WorkerError> {
    match source {
        TokenSource::Env(name) => {
            Secret::from_env(name.as_ref()).map_err(|source| WorkerError::Token {
                field: "token_env",
                source,
            })
        }
        TokenSource::File(path) => {
            Secret::from_file(path.as_path()).map_err(|source| WorkerError::Token {
                field: "token_file",
                source,
            })
        }
    }
}

fn directory(field: &str, path: &HostPath) -> Result<PathBuf, WorkerError> {
    let refuse = |problem: String| WorkerError::Path {
        field: field.to_owned(),
        path: path.as_path().to_owned(),
        problem,
    };
    let canonical = path
        .as_path()
        .canonicalize()
        .map_err(|error| refuse(format!("cannot be resolved: {error}")))?;
    if !canonical.is_dir() {
        return Err(refuse("is not a directory".to_owned()));
    }
    Ok(canonical)
}

/// The folder of undelivered results, which a start makes if it is missing: private, and reached
/// without a link in its last component.
fn state_dir(configured: Option<&HostPath>, worktree_root: &Path) -> Result<PathBuf, WorkerError> {
    const FIELD: &str = "state_dir";
    let path = match configured {
        None => worktree_root.join(DEFAULT_STATE_DIR),
        Some(path) => {
            let refuse = |problem: &str| WorkerError::Path {
                field: FIELD.to_owned(),
                path: path.as_path().to_owned(),
                problem: problem.to_owned(),
            };
            let name = path.as_path().file_name();
            let name = name.ok_or_else(|| refuse("has no last component"))?;
            let parent = path.as_path().parent().unwrap_or(path.as_path());
            let parent = parent
                .canonicalize()
                .map_err(|error| refuse(&format!("cannot be reached: {error}")))?;
            parent.join(name)
        }
    };
    match safe_fs::check_private_dir(&path) {
        Ok(()) => Ok(path),
        Err(error) if error.is_not_found() => Ok(path),
        Err(error) => Err(WorkerError::Path {
            field: FIELD.to_owned(),
            path,
            problem: format!("cannot hold results: {}", with_causes(&error)),
        }),
    }
}

fn repository_roots(config: &WorkerConfig) -> Result<Vec<PathBuf>, WorkerError> {
    let mut roots: Vec<PathBuf> = Vec::new();
    for (index, path) in config.repository_roots.iter().enumerate() {
        let field = format!("repository_roots[{index}]");
        let root = directory(&field, path)?;
        if roots.contains(&root) {
            return Err(WorkerError::Path {
                field,
                path: root,
                problem: "is the same folder as another root".to_owned(),
            });
        }
        roots.push(root);
    }
    Ok(roots)
}

fn repositories(
    config: &WorkerConfig,
    roots: &[PathBuf],
) -> Result<BTreeMap<RepositoryId, PathBuf>, WorkerError> {
    let mut repositories = BTreeMap::new();
    for (id, path) in &config.repositories {
        let field = format!("repositories[{id}].path");
        let repository = directory(&field, path)?;
        if !roots.iter().any(|root| repository.starts_with(root)) {
            return Err(WorkerError::Path {
                field,
                path: repository,
                problem: "lies in none of the `repository_roots`".to_owned(),
            });
        }
        repositories.insert(id.clone(), repository);
    }
    Ok(repositories)
}

/// Links may have made folders overlap that did not by their names.
fn apart(
    worktree_root: &Path,
    runtime_root: &Path,
    state_dir: &Path,
    roots: &[PathBuf],
    repositories: &BTreeMap<RepositoryId, PathBuf>,
) -> Result<(), WorkerError> {
    let refuse = |field: &str, path: &Path, other: &Path| WorkerError::Path {
        field: field.to_owned(),
        path: path.to_owned(),
        problem: format!("overlaps `{}`", other.display()),
    };
    if overlap(worktree_root, runtime_root) {
        return Err(refuse("runtime_root", runtime_root, worktree_root));
    }
    for root in [worktree_root, runtime_root] {
        if root.starts_with(state_dir) {
            return Err(refuse("state_dir", state_dir, root));
        }
    }
    for (field, root) in [
        ("worktree_root", worktree_root),
        ("runtime_root", runtime_root),
        ("state_dir", state_dir),
    ] {
        let mut others = roots.iter().chain(repositories.values());
        if let Some(other) = others.find(|other| overlap(root, other)) {
            return Err(refuse(field, root, other));
        }
    }
    Ok(())
}

fn executable(field: &str, path: &Path) -> Result<(), WorkerError> {
    let refuse = |problem: String| WorkerError::Path {
        field: field.to_owned(),
        path: path.to_owned(),
        problem,
    };
    let metadata = path
        .metadata()
        .map_err(|error| refuse(format!("cannot be examined: {error}")))?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(refuse("is not an executable file".to_owned()));
    }
    Ok(())
}

fn git(configured: Option<&HostPath>) -> Result<PathBuf, WorkerError> {
    if let Some(path) = configured {
        executable("git_executable", path.as_path())?;
        return Ok(path.as_path().to_owned());
    }
    let search = cli_shell::env::var_os("PATH").unwrap_or_default();
    git_safety::find(&search).ok_or(WorkerError::NoGit)
}
