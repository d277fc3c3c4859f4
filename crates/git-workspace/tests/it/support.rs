//! A repository, the roots of a Worker, and a git of the test's own to look at results with.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
};

use bounded::{BranchName, CommitSubject, GitSha, Hex32};
use git_workspace::{Base, CandidateRef, Git, Workspace};

pub(crate) struct Lab {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) repo: PathBuf,
    pub(crate) worktrees: PathBuf,
    pub(crate) runtime: PathBuf,
    pub(crate) git: Git,
}

impl Lab {
    /// A repository with `src/lib.txt`, `README` and an ignore rule for `ignored/` on `main`.
    pub(crate) fn new() -> Self {
        let lab = Self::empty();
        lab.raw(&["init", "--quiet", "--initial-branch=main", "."]);
        fs_err::create_dir(lab.repo.join("src")).unwrap();
        fs_err::write(lab.repo.join("src/lib.txt"), "one\ntwo\n").unwrap();
        fs_err::write(lab.repo.join("README"), "read me\n").unwrap();
        fs_err::write(lab.repo.join(".gitignore"), "ignored/\n").unwrap();
        lab.commit_all("base");
        lab
    }

    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(dir.path()).unwrap();
        let (repo, worktrees, runtime) = (
            root.join("repo"),
            root.join("worktrees"),
            root.join("runtime"),
        );
        for folder in [&repo, &worktrees, &runtime] {
            fs_err::create_dir(folder).unwrap();
        }
        let git = Git::find(&search_path()).unwrap();
        Self {
            _dir: dir,
            root,
            repo,
            worktrees,
            runtime,
            git,
        }
    }

    /// Runs the test's own git in the repository.
    pub(crate) fn raw(&self, arguments: &[&str]) -> String {
        raw_in(&self.repo, arguments)
    }

    pub(crate) fn commit_all(&self, subject: &str) -> GitSha {
        self.raw(&["add", "--all"]);
        self.raw(&["commit", "--quiet", "--allow-empty", "-m", subject]);
        self.head()
    }

    pub(crate) fn head(&self) -> GitSha {
        self.raw(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    pub(crate) async fn base(&self) -> Base {
        self.git
            .check_base(&self.repo, &self.head(), &main_branch())
            .await
            .unwrap()
    }

    pub(crate) async fn workspace(&self) -> Workspace {
        self.git
            .prepare(&self.base().await, &self.worktrees, &self.runtime)
            .await
            .unwrap()
    }

    /// Runs it with what attempts keep to themselves until there is a candidate.
    pub(crate) fn raw_inside(&self, arguments: &[&str]) -> String {
        let mut objects = OsString::new();
        for entry in fs_err::read_dir(&self.runtime).unwrap() {
            objects.push(entry.unwrap().path().join("objects"));
            objects.push(":");
        }
        let variable = ("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        let (ok, stdout, stderr) = run_with("git", &self.repo, arguments, &[variable]);
        assert!(ok, "git {arguments:?}: {stderr}");
        stdout.trim_end_matches('\n').to_owned()
    }

    /// What there is under a path of a commit or tree.
    pub(crate) fn content(&self, tree: &GitSha, path: &str) -> String {
        self.raw_inside(&["cat-file", "blob", &format!("{tree}:{path}")])
    }

    /// The files in which the repository keeps its objects.
    pub(crate) fn object_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.repo.join(".git/objects")];
        while let Some(folder) = folders.pop() {
            for entry in fs_err::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// The private git directory of the only attempt there is.
    pub(crate) fn private_git(&self) -> PathBuf {
        let mut entries = fs_err::read_dir(&self.runtime).unwrap();
        let only = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        only
    }

    /// The files of a tree.
    pub(crate) fn files(&self, tree: &GitSha) -> Vec<String> {
        self.raw_inside(&["ls-tree", "-r", "--name-only", "-z", tree.as_str()])
            .split('\0')
            .filter(|path| !path.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

pub(crate) fn main_branch() -> BranchName {
    "main".parse().unwrap()
}

pub(crate) fn subject(text: &str) -> CommitSubject {
    text.parse().unwrap()
}

/// The name of the candidate of attempt `number`.
pub(crate) fn candidate(number: u8) -> CandidateRef {
    CandidateRef::new(
        Hex32::from_bytes([0xab; 16]),
        Hex32::from_bytes([number; 16]),
    )
}

/// Runs git in a folder and returns its trimmed stdout.
pub(crate) fn raw_in(folder: &Path, arguments: &[&str]) -> String {
    let (ok, stdout, stderr) = run("git", folder, arguments);
    assert!(ok, "git {arguments:?}: {stderr}");
    stdout.trim_end_matches('\n').to_owned()
}

/// Runs a program with a plain environment, as a plugin would.
pub(crate) fn run(
    program: &str,
    folder: &Path,
    arguments: &[impl AsRef<OsStr>],
) -> (bool, String, String) {
    run_with(program, folder, arguments, &[])
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test's own processes are not under test"
)]
fn run_with(
    program: &str,
    folder: &Path,
    arguments: &[impl AsRef<OsStr>],
    variables: &[(&str, OsString)],
) -> (bool, String, String) {
    let output = std::process::Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", search_path())
        .env("HOME", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Somebody")
        .env("GIT_AUTHOR_EMAIL", "somebody@example.invalid")
        .env("GIT_COMMITTER_NAME", "Somebody")
        .env("GIT_COMMITTER_EMAIL", "somebody@example.invalid")
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.success(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no configuration to read it from"
)]
pub(crate) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap()
}
