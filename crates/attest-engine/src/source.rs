//! The git commit of a workspace, asked of git without letting the repository run anything.
//!
//! What a repository's configuration could start is shut as [`git_safety`] says; filters have
//! names of the repository's own, so its configuration is listed first, which starts nothing.
//! Outside a checkout no process is started at all.

mod address;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attest_receipt::receipt::Source;
use process_tree::{Capture, CaptureError, Spec, capture_direct};
use tokio_util::sync::CancellationToken;

pub use address::repository_address;

/// How long one call of git may take; a status of a very large tree takes seconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A configuration that is longer is not looked through.
const CONFIG_BYTES: u64 = 1 << 20;
/// The heads of a status come first; whatever follows only says that there is something.
const STATUS_BYTES: u64 = 16 << 10;
/// The setting by which git shows that it hears variables.
const HEARD: &str = "attest.heard";
/// A pointer file (`.git` of a linked work tree or submodule) that is longer is none.
const POINTER_BYTES: u64 = 16 << 10;

/// Returns the commit, branch and address of the checkout that holds `workspace`.
///
/// Nothing outside a checkout, without a git in the absolute entries of `search_path`, or where
/// git cannot name a commit. What cannot be compared with the commit counts as changed; files in
/// submodules are not compared, since their repositories have configurations of their own.
pub async fn probe(
    workspace: &Path,
    search_path: Option<&OsStr>,
    cancel: &CancellationToken,
) -> Option<Source> {
    let top = checkout(workspace)?;
    let git = Git::find(top, search_path?)?;
    // Filters are emptied by variables, which a git before 2.31 does not hear: it must say a word
    // back that no repository can know.
    let word = uuid::Uuid::new_v4().simple().to_string();
    let heard = variables(vec![(HEARD.into(), &word)]);
    let config = git.run(&["config", "--list", "-z"], &heard, CONFIG_BYTES, cancel);
    let config = config.await.and_then(Answer::whole)?;
    if value(&config, HEARD.as_bytes()) != Some(word.as_bytes()) {
        return None;
    }
    let overridden = without_filters(&config);
    let status = git.run(
        &[
            "status",
            "--porcelain=v2",
            "--branch",
            "--no-ahead-behind",
            "--untracked-files=no",
            "--ignore-submodules=dirty",
        ],
        &overridden,
        STATUS_BYTES,
        cancel,
    );
    let (commit, branch, tracked_dirty) = match status.await {
        Some(answer) => read_status(&answer.bytes)?,
        None => git.head_alone(cancel).await?,
    };
    Some(Source {
        repository: value(&config, b"remote.origin.url")
            .and_then(|raw| std::str::from_utf8(raw).ok())
            .and_then(repository_address),
        commit,
        branch,
        tracked_dirty,
    })
}

/// Finds the top folder of the checkout, as git would: not across file systems, and not one that
/// a stranger put above the workspace, such as into a temporary folder that all users share.
fn checkout(workspace: &Path) -> Option<PathBuf> {
    let start = fs_err::canonicalize(workspace).ok()?;
    let found = fs_err::metadata(&start).ok()?;
    let (device, owner) = (found.dev(), found.uid());
    let top = start
        .ancestors()
        .take_while(|folder| fs_err::metadata(folder).is_ok_and(|found| found.dev() == device))
        .find(|folder| is_git(&folder.join(".git")))?;
    let repository = fs_err::metadata(top.join(".git")).ok()?.uid();
    let known = [0, owner, rustix::process::geteuid().as_raw()];
    known.contains(&repository).then(|| top.to_owned())
}

fn is_git(path: &Path) -> bool {
    match fs_err::metadata(path) {
        Ok(found) if found.is_dir() => fs_err::symlink_metadata(path.join("HEAD")).is_ok(),
        Ok(found) if found.is_file() => safe_fs::read_bounded(path, POINTER_BYTES)
            .is_ok_and(|bytes| bytes.starts_with(b"gitdir: ")),
        _ => false,
    }
}

struct Git {
    program: PathBuf,
    search_path: OsString,
    top: PathBuf,
}

/// What one call of git wrote to stdout.
struct Answer {
    bytes: Vec<u8>,
    cut: bool,
}

impl Answer {
    fn whole(self) -> Option<Vec<u8>> {
        (!self.cut).then_some(self.bytes)
    }
}

impl Git {
    /// Takes git from an absolute entry of the path: a relative one would be the workspace's.
    fn find(top: PathBuf, search_path: &OsStr) -> Option<Self> {
        Some(Self {
            program: git_safety::find(search_path)?,
            search_path: git_safety::absolute_entries(search_path),
            top,
        })
    }

    /// Runs git in the top folder; nothing unless it says that all went well.
    async fn run(
        &self,
        arguments: &[&str],
        environment: &[(OsString, OsString)],
        bytes: u64,
        cancel: &CancellationToken,
    ) -> Option<Answer> {
        let mut argv = git_safety::command_line(&self.program, None::<&str>);
        let mut folder = OsString::from("--git-dir=");
        folder.push(self.top.join(".git"));
        argv.push(folder);
        argv.extend(arguments.iter().map(Into::into));
        let spec = Spec::new(argv)
            .env([("PATH", self.search_path.clone())])
            .env(git_safety::ENVIRONMENT.iter().copied())
            .env(environment.iter().cloned())
            .cwd(&self.top);
        match capture_direct(spec, Capture::new(TIMEOUT, bytes), cancel).await {
            Ok(captured) if captured.exit.is_success() => Some(Answer {
                bytes: captured.stdout,
                cut: false,
            }),
            Err(CaptureError::OutputLimit { partial, .. }) => Some(Answer {
                bytes: partial.stdout,
                cut: true,
            }),
            Ok(_) | Err(_) => None,
        }
    }

    /// The commit and branch where no status can be had; the files then count as changed.
    async fn head_alone(
        &self,
        cancel: &CancellationToken,
    ) -> Option<(String, Option<String>, bool)> {
        let commit = self.run(&["rev-parse", "HEAD"], &[], STATUS_BYTES, cancel);
        let commit = commit.await.and_then(Answer::whole)?;
        let commit = commit_id(commit.trim_ascii())?;
        let branch = self.run(
            &["symbolic-ref", "--short", "-q", "HEAD"],
            &[],
            STATUS_BYTES,
            cancel,
        );
        let branch = branch.await.and_then(Answer::whole);
        let branch = branch.and_then(|bytes| branch_name(bytes.trim_ascii()));
        Some((commit, branch, true))
    }
}

/// The entries of `config --list -z`: name, line feed, value (no line feed: no value).
fn entries(config: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    config
        .split(|byte| *byte == 0)
        .filter(|entry| !entry.is_empty())
        .map(|entry| match entry.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                let (name, rest) = entry.split_at(at);
                (name, rest.get(1..).unwrap_or_default())
            }
            None => (entry, &[][..]),
        })
}

fn value<'a>(config: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let found = entries(config).filter(|(name, _)| *name == wanted);
    found.last().map(|(_, value)| value)
}

/// The variables of the environment that empty every filter that the configuration defines.
fn without_filters(config: &[u8]) -> Vec<(OsString, OsString)> {
    let mut sections: Vec<&[u8]> = entries(config)
        .filter(|(name, _)| name.starts_with(b"filter."))
        .filter_map(|(name, _)| {
            let end = name.iter().rposition(|byte| *byte == b'.')?;
            name.get(..end)
        })
        .collect();
    sections.sort_unstable();
    sections.dedup();
    let mut settings = Vec::new();
    for section in sections {
        for (variable, value) in [
            ("clean", ""),
            ("smudge", ""),
            ("process", ""),
            ("required", "false"),
        ] {
            let mut name = OsStr::from_bytes(section).to_owned();
            name.push(".");
            name.push(variable);
            settings.push((name, value));
        }
    }
    variables(settings)
}

/// Settings as variables of the environment, where names may hold any character.
fn variables(settings: Vec<(OsString, &str)>) -> Vec<(OsString, OsString)> {
    let mut environment = vec![("GIT_CONFIG_COUNT".into(), settings.len().to_string().into())];
    for (number, (name, value)) in settings.into_iter().enumerate() {
        environment.push((format!("GIT_CONFIG_KEY_{number}").into(), name));
        environment.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
    }
    environment
}

/// Reads the heads of a status, and whether anything stands below them.
fn read_status(bytes: &[u8]) -> Option<(String, Option<String>, bool)> {
    let mut commit = None;
    let mut branch = None;
    let mut dirty = false;
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(id) = line.strip_prefix(b"# branch.oid ") {
            commit = commit_id(id);
        } else if let Some(name) = line.strip_prefix(b"# branch.head ") {
            branch = branch_name(name).filter(|name| name != "(detached)");
        } else {
            dirty |= !line.is_empty() && !line.starts_with(b"#");
        }
    }
    Some((commit?, branch, dirty))
}

fn commit_id(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let fits = matches!(text.len(), 40 | 64) && text.bytes().all(lower_hex);
    fits.then(|| text.to_owned())
}

fn branch_name(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let fits = !text.is_empty() && text.len() <= 4096 && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
