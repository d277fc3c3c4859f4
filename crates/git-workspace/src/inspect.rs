//! What an operator asks of a repository: revisions, differences, and candidates from elsewhere.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use bounded::{
    GitSha,
    text::{visible, visible_bytes},
};

use crate::{
    CandidateRef, Git, GitError, Repository,
    git::{Call, failure},
    workspace::parse_sha,
};

const REVISION_BYTES: usize = 1024;
const SOURCE_BYTES: usize = 4096;

impl Git {
    /// Finds the commit that a revision names, such as `HEAD`, `main` or `v1.0`.
    ///
    /// # Errors
    ///
    /// [`GitError::UnknownRevision`], also for a name that two objects share.
    pub async fn resolve(&self, repository: &Path, revision: &str) -> Result<GitSha, GitError> {
        if revision.is_empty() || revision.len() > REVISION_BYTES || revision.contains('\0') {
            return Err(unusable(
                "a revision",
                revision,
                "it has 1 to 1024 bytes and no NUL",
            ));
        }
        let repository = Repository::open(repository)?;
        let call = Call::new("rev-parse", Some(repository.git_dir()))
            .args(["--verify", "--quiet", "--end-of-options"])
            .arg(format!("{revision}^{{commit}}"));
        let captured = self.capture(call).await?;
        let unknown = || GitError::UnknownRevision {
            repository: repository.path().to_owned(),
            revision: visible(revision),
        };
        if !captured.exit.is_success() {
            return Err(unknown());
        }
        let name = captured.stdout.trim_ascii_end();
        if name.len() == 64 {
            return Err(GitError::ObjectFormat {
                path: repository.path().to_owned(),
                format: "sha256".to_owned(),
            });
        }
        // An excluded revision (`^HEAD`) is an answer too, but no commit.
        parse_sha("rev-parse", name).map_err(|_| unknown())
    }

    /// Gives the differences between two commits as a patch, without colours, external programs
    /// or text conversions. The patch is bounded by the output limit; its bytes are foreign text.
    ///
    /// # Errors
    ///
    /// A commit is missing, or the patch is longer than the limit.
    pub async fn diff(
        &self,
        repository: &Path,
        base: &GitSha,
        candidate: &GitSha,
    ) -> Result<Vec<u8>, GitError> {
        let repository = Repository::open(repository)?;
        let call = Call::new("diff-tree", Some(repository.common_dir())).args([
            "-r",
            "-p",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--find-renames",
            "--submodule=short",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            base.as_str(),
            candidate.as_str(),
        ]);
        self.run(call).await
    }

    /// Fetches a candidate from another repository, named by an absolute path or a `file`,
    /// `https` or `ssh` URL, into the same ref of `into`. `env` holds what the transport needs of
    /// the operator's environment (`HOME`, `SSH_AUTH_SOCK`); git configuration of the user or the
    /// system is not read. Nothing but the ref and its objects is written.
    ///
    /// # Errors
    ///
    /// The source cannot be reached, lacks the ref, or `into` has another commit under it.
    pub async fn fetch_candidate(
        &self,
        into: &Path,
        from: &OsStr,
        name: &CandidateRef,
        env: &[(OsString, OsString)],
    ) -> Result<GitSha, GitError> {
        let repository = Repository::open(into)?;
        let source = Source::parse(from)?;
        let command = "fetch";
        let mut call = Call::new(command, Some(repository.common_dir()))
            .config("protocol.file.allow=always")
            .config("protocol.https.allow=always")
            .config("protocol.ssh.allow=always")
            .args([
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-auto-maintenance",
                "--no-recurse-submodules",
                "--no-write-commit-graph",
                "--refmap=",
            ]);
        for (variable, value) in env {
            call = call.env(variable, value);
        }
        if let Source::Local(local) = &source {
            // The operator named this very repository, so its owner may be another user.
            call = call.arg(upload_pack(local));
        }
        let call = call
            .arg("--end-of-options")
            .arg(source.argument())
            .arg(format!("{name}:{name}"));
        let captured = self.capture(call).await?;
        if !captured.exit.is_success() {
            return Err(failure(command, &captured));
        }
        self.resolve(repository.path(), &name.to_string()).await
    }
}

/// Where a candidate comes from.
enum Source {
    Local(Repository),
    Url(OsString),
}

impl Source {
    fn parse(from: &OsStr) -> Result<Self, GitError> {
        let bytes = from.as_encoded_bytes();
        let refused = |reason| Err(unusable("a source", &visible_bytes(bytes), reason));
        if bytes.is_empty() || bytes.len() > SOURCE_BYTES || bytes.iter().any(|byte| *byte < b' ') {
            return refused("it has 1 to 4096 bytes and no control characters");
        }
        if let Some(path) = bytes.strip_prefix(b"file://")
            && path.starts_with(b"/")
            && let Ok(path) = std::str::from_utf8(path)
        {
            return Ok(Self::Local(Repository::open(Path::new(path))?));
        }
        if Path::new(from).is_absolute() {
            return Ok(Self::Local(Repository::open(Path::new(from))?));
        }
        if bytes.starts_with(b"https://") || bytes.starts_with(b"ssh://") {
            return Ok(Self::Url(from.to_owned()));
        }
        refused("use an absolute path, or a file://, https:// or ssh:// URL")
    }

    fn argument(&self) -> OsString {
        match self {
            Self::Local(repository) => repository.common_dir().as_os_str().to_owned(),
            Self::Url(url) => url.clone(),
        }
    }
}

/// The command that serves a local repository; git hands it to a shell.
fn upload_pack(local: &Repository) -> OsString {
    let quoted = local
        .common_dir()
        .as_os_str()
        .as_encoded_bytes()
        .split(|byte| *byte == b'\'');
    let quoted: Vec<u8> = quoted.collect::<Vec<_>>().join(&b"'\\''"[..]);
    let mut text = b"--upload-pack=git -c safe.directory='".to_vec();
    text.extend(quoted);
    text.extend(b"' -c core.hooksPath=/dev/null upload-pack");
    std::os::unix::ffi::OsStringExt::from_vec(text)
}

fn unusable(what: &'static str, value: &str, reason: &'static str) -> GitError {
    GitError::UnusableArgument {
        what,
        value: visible(value),
        reason,
    }
}
