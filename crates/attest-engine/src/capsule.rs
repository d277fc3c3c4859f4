//! Steps in containers pinned by digest.
//!
//! The container has no network, a read-only root, the variables of its capsule and the fixed ones
//! of hermetic runs, and the workspace as the one place to write to. A step's declared inputs lie
//! over it read-only, from a snapshot whose hash is the recorded one, so that neither the step nor
//! anybody else can change what the step reads.

mod client;
mod snapshot;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attest_receipt::capsule::{Capsule, CapsuleError, MAX_BYTES};
use safe_fs::SafeFsError;
use tokio_util::sync::CancellationToken;

use crate::copy::{CopyError, plain};
use crate::layout::{FOLDER, LayoutError, create_whole};
use crate::output::{Record, Recorded};
use crate::run::{Environment, HERMETIC};
use crate::step::{self, Command, End, Executed, Input, StepError, Tap};

pub use client::Client;
pub use snapshot::Snapshot;

/// The code by which docker and podman say that they could not run the command. 126 and 127 are
/// also those of a shell in the container, and count as the command's own.
const CLIENT_FAILED: i32 = 125;

/// Says why a capsule cannot be made, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapsuleFault {
    /// There is none of that name.
    #[error("capsule '{name}' not found (expected {})", path.display())]
    NotFound {
        /// Its name.
        name: String,
        /// Where it would be.
        path: PathBuf,
    },
    /// There is one of that name.
    #[error("capsule '{name}' already exists at {}", path.display())]
    Exists {
        /// Its name.
        name: String,
        /// Where it is.
        path: PathBuf,
    },
    /// A name that is no folder's.
    #[error("'{name}' is no name of a capsule: it becomes the name of a folder")]
    Name {
        /// The name, made safe to show.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read capsule '{name}'")]
    Unreadable {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: SafeFsError,
    },
    /// The file, or what it would hold, breaks a rule.
    #[error("capsule '{name}' is not valid")]
    Invalid {
        /// Its name.
        name: String,
        /// Which.
        #[source]
        source: CapsuleError,
    },
    /// The file cannot be written.
    #[error("cannot write capsule '{name}'")]
    Write {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: LayoutError,
    },
    /// The path of the workspace or the snapshots cannot be given to a container client.
    #[error("a container client cannot mount `{path}`: {why}")]
    Mount {
        /// The path, made safe to show.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An input that no mount can lie over.
    #[error(
        "input '{path}' cannot be mounted into a capsule: declare paths below the workspace's root"
    )]
    Input {
        /// The path, made safe to show.
        path: String,
    },
    /// No client to talk to.
    #[error("no container client found: a capsule needs `docker` or `podman` in PATH")]
    NoClient,
    /// A client, but nothing behind it.
    #[error("the container engine of `{}` does not answer: {said}", client.display())]
    NoEngine {
        /// The client.
        client: PathBuf,
        /// Its words.
        said: String,
    },
    /// The snapshot of the inputs cannot be made.
    #[error("cannot make a snapshot of the declared inputs")]
    Snapshot(#[source] CopyError),
    /// The snapshot of the inputs cannot be made: a folder, or its hash.
    #[error("cannot make a snapshot of the declared inputs: {0}")]
    SnapshotPlace(String),
    /// The inputs are not what was hashed.
    #[error(
        "declared inputs changed between hashing and snapshot (hashed {hashed}, snapshot {snapshot}); the step did not run"
    )]
    InputsChanged {
        /// The recorded hash.
        hashed: String,
        /// What was copied.
        snapshot: String,
    },
    /// Randomness for a name.
    #[error("cannot name a container")]
    Random(#[source] std::io::Error),
    /// The client ran, and the command did not.
    #[error("`{}` did not run the command: {said}", client.display())]
    NotRun {
        /// The client.
        client: PathBuf,
        /// Its words.
        said: String,
    },
    /// The client did not run to its end.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// Reads a capsule of the workspace, and checks that it has the hash that it claims.
///
/// # Errors
/// There is none, or it breaks a rule.
pub fn load(workspace: &Path, name: &str) -> Result<Capsule, CapsuleFault> {
    let path = file(workspace, name)?;
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let bytes = safe_fs::read_bounded(&path, limit).map_err(|source| {
        if source.is_not_found() {
            CapsuleFault::NotFound {
                name: name.to_owned(),
                path,
            }
        } else {
            CapsuleFault::Unreadable {
                name: name.to_owned(),
                source,
            }
        }
    })?;
    Capsule::read(&bytes).map_err(|source| CapsuleFault::Invalid {
        name: name.to_owned(),
        source,
    })
}

/// Makes a capsule of the workspace; one that is there stays as it is.
///
/// # Errors
/// The image is not pinned by digest, the name is taken, or the file cannot be written.
pub fn init(workspace: &Path, name: &str, image: &str) -> Result<PathBuf, CapsuleFault> {
    let path = file(workspace, name)?;
    let invalid = |source| CapsuleFault::Invalid {
        name: name.to_owned(),
        source,
    };
    let capsule = Capsule::new(name, image).map_err(invalid)?;
    let text = capsule
        .to_yaml()
        .map_err(|error| invalid(CapsuleError::Invalid(error.to_string())))?;
    let failed = |source| CapsuleFault::Write {
        name: name.to_owned(),
        source,
    };
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder).map_err(|source| {
            failed(LayoutError::Io {
                action: "make a folder",
                source,
            })
        })?;
    }
    if create_whole(&path, text.as_bytes()).map_err(failed)? {
        Ok(path)
    } else {
        Err(CapsuleFault::Exists {
            name: name.to_owned(),
            path,
        })
    }
}

/// Runs a command in a capsule, with the workspace at its place and nothing mounted over it.
/// Returns the code that the command ended with, 128 and the signal if one ended it.
///
/// # Errors
/// The client did not start, it could not run the command, or `cancel` came first; the container is
/// removed then.
pub async fn run(
    workspace: &Path,
    capsule: &Capsule,
    command: &[OsString],
    client: &Client,
    wrapper: &process_tree::Wrapper,
    tap: Tap<'_>,
    cancel: &CancellationToken,
) -> Result<i32, CapsuleFault> {
    let prepared = Prepared::new(workspace, None, capsule, command, client, None)?;
    let executed = prepared.execute(wrapper, None, tap, cancel).await?;
    Ok(match executed.end {
        End::Code(code) => code,
        End::Signal(signal) => 128 + signal,
        End::TimedOut(_) => step::TIMED_OUT,
    })
}

/// A container that is about to run.
#[derive(Debug)]
pub struct Prepared<'a> {
    client: &'a Client,
    directory: PathBuf,
    argv: Vec<OsString>,
    container: String,
    /// Removed when the container is done with it.
    _snapshot: Option<Snapshot>,
}

impl<'a> Prepared<'a> {
    /// Puts the command line of the client together; nothing is started. The command runs in the
    /// workspace's place or below it, in `directory`.
    ///
    /// # Errors
    /// A path that cannot be mounted.
    pub fn new(
        workspace: &Path,
        directory: Option<&str>,
        capsule: &Capsule,
        command: &[OsString],
        client: &'a Client,
        snapshot: Option<Snapshot>,
    ) -> Result<Self, CapsuleFault> {
        let from = fs_err::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
        let container = container_name()?;
        let mut argv: Vec<OsString> = vec![client.program().into()];
        argv.extend(["run", "--rm", "--network", "none", "--read-only", "--name"].map(Into::into));
        argv.push(container.clone().into());
        let inside = Path::new(&capsule.mounts.workspace);
        argv.extend(["-v".into(), mount(&from, inside, false)?]);
        if let Some(snapshot) = &snapshot {
            for top in snapshot.tops() {
                let input = snapshot.folder().join(top);
                argv.extend(["-v".into(), mount(&input, &inside.join(top), true)?]);
            }
        }
        let starts_in = directory.map_or_else(|| inside.into(), |below| inside.join(plain(below)));
        argv.extend(["-w".into(), starts_in.into()]);
        for (name, value) in variables(capsule) {
            argv.extend(["-e".into(), format!("{name}={value}").into()]);
        }
        let mut before_command: &[String] = &[];
        if let Some((first, rest)) = capsule.entrypoint.as_deref().and_then(<[_]>::split_first) {
            argv.extend(["--entrypoint".into(), first.into()]);
            before_command = rest;
        }
        argv.push(capsule.image.clone().into());
        argv.extend(before_command.iter().map(Into::into));
        argv.extend(command.iter().cloned());
        Ok(Self {
            client,
            directory: from,
            argv,
            container,
            _snapshot: snapshot,
        })
    }

    /// Runs the client to its end. Where that was no end of its own the container is removed: the
    /// engine goes on with a container whose client is gone.
    ///
    /// # Errors
    /// The client did not start, it could not run the command, or `cancel` came first.
    pub async fn execute(
        self,
        wrapper: &process_tree::Wrapper,
        timeout: Option<Duration>,
        tap: Tap<'_>,
        cancel: &CancellationToken,
    ) -> Result<Executed, CapsuleFault> {
        let kept = tap.record;
        // The client's words are wanted where it fails.
        let record = match kept {
            Record::None => Record::Tail,
            record => record,
        };
        let tap = Tap { record, ..tap };
        let executed = step::execute(wrapper, self.command(timeout), tap, cancel).await;
        if !matches!(&executed, Ok(executed) if matches!(executed.end, End::Code(_))) {
            self.client.remove(&self.container).await;
        }
        let mut executed = executed?;
        if executed.end == End::Code(CLIENT_FAILED) {
            return Err(CapsuleFault::NotRun {
                client: self.client.program().to_owned(),
                said: client::last_words(executed.stderr.into_text().as_bytes()),
            });
        }
        if kept == Record::None {
            executed.stdout = Recorded::default();
            executed.stderr = Recorded::default();
        }
        Ok(executed)
    }

    /// The client has the variables of this process; the container has none of them.
    fn command(&self, timeout: Option<Duration>) -> Command {
        Command {
            argv: self.argv.clone(),
            environment: self.client.environment().0.clone(),
            directory: self.directory.clone(),
            timeout,
            input: Input::Nothing,
        }
    }
}

/// The text of a step, as a capsule runs it.
#[must_use]
pub fn shell(text: &str) -> [OsString; 3] {
    ["sh".into(), "-c".into(), text.into()]
}

fn variables(capsule: &Capsule) -> BTreeMap<&str, &str> {
    let own = capsule.env.iter();
    let mut all: BTreeMap<&str, &str> = own.map(|(k, v)| (k.as_str(), v.as_str())).collect();
    all.extend(HERMETIC);
    all
}

fn mount(from: &Path, to: &Path, read_only: bool) -> Result<OsString, CapsuleFault> {
    for path in [from, to] {
        let bytes = path.as_os_str().as_bytes();
        let why = if bytes.contains(&b':') {
            "a colon in it would end the path"
        } else if bytes.iter().any(u8::is_ascii_control) {
            "it has a control character in it"
        } else {
            continue;
        };
        return Err(CapsuleFault::Mount {
            path: bounded::text::visible_bytes(bytes),
            why,
        });
    }
    let mut text = from.as_os_str().to_owned();
    text.push(":");
    text.push(to);
    if read_only {
        text.push(":ro");
    }
    Ok(text)
}

fn file(workspace: &Path, name: &str) -> Result<PathBuf, CapsuleFault> {
    let plain = !matches!(name, "" | "." | "..")
        && !name.contains(['/', '\0'])
        && !name.chars().any(char::is_control);
    if !plain {
        return Err(CapsuleFault::Name {
            name: bounded::text::visible(name),
        });
    }
    let folder = workspace.join(FOLDER).join("capsules").join(name);
    Ok(folder.join("capsule.yaml"))
}

fn container_name() -> Result<String, CapsuleFault> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| CapsuleFault::Random(error.into()))?;
    Ok(format!("attest-{:016x}", u64::from_le_bytes(bytes)))
}

/// Where temporary files go for a process with these variables.
#[must_use]
pub fn temporary_folder(environment: &Environment) -> PathBuf {
    let named = environment.get("TMPDIR").map(PathBuf::from);
    named
        .filter(|folder| folder.is_absolute())
        .unwrap_or_else(|| "/tmp".into())
}

/// Returns the real path of the folder for temporary files.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn usable_temporary(folder: &Path) -> Result<PathBuf, String> {
    let refused = |why: &str| {
        let folder = bounded::text::visible(&folder.to_string_lossy());
        format!("the temporary folder `{folder}` (TMPDIR) {why}")
    };
    let real = fs_err::canonicalize(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => refused("does not exist"),
        kind => refused(&format!("cannot be used: {kind}")),
    })?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(refused("is no folder"))
    }
}

#[cfg(test)]
mod tests;
