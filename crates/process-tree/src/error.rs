//! What can go wrong, with a text of its own for each way a program fails to start.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::capture::Captured;

/// The program was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The argument vector names no program.
    #[error("the argument vector names no program")]
    EmptyArgv,
    /// An argument holds a NUL byte.
    #[error("argument {index} holds a NUL byte")]
    NulInArgument {
        /// Position in the argument vector, the program being 0.
        index: usize,
    },
    /// An environment variable cannot be passed on.
    #[error(
        "environment variable `{name}` has an empty name, or holds `=` in its name or a NUL byte"
    )]
    InvalidVariable {
        /// The name as given; the value is never shown.
        name: String,
    },
    /// The working directory is missing, no directory, or closed to us.
    #[error("cannot use the working directory `{}`", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// No directory of `PATH` holds the program.
    #[error("no executable `{program}` in the program's PATH `{path}`")]
    NotInPath {
        /// The name that was looked up.
        program: String,
        /// The `PATH` that was searched.
        path: String,
    },
    /// There is no such file (`ENOENT`).
    #[error("program `{}` does not exist", program.display())]
    NotFound {
        /// The file.
        program: PathBuf,
    },
    /// The file exists, what it asks the system to run it with does not (`ENOENT`).
    #[error("program `{}` exists, but its interpreter {interpreter} does not", program.display())]
    MissingInterpreter {
        /// The file.
        program: PathBuf,
        /// The interpreter's path in backticks, or a description.
        interpreter: String,
    },
    /// The file or a directory above it may not be executed (`EACCES`).
    #[error("program `{}` may not be executed: {why}", program.display())]
    PermissionDenied {
        /// The file.
        program: PathBuf,
        /// What is in the way, as far as it shows.
        why: &'static str,
    },
    /// The file is in no format that this system runs (`ENOEXEC`).
    #[error("program `{}` cannot run here: {why}", program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What is wrong with it, as far as it shows.
        why: &'static str,
    },
    /// The file is open for writing (`ETXTBSY`).
    #[error("program `{}` is open for writing; try again when it is completely written", program.display())]
    Busy {
        /// The file.
        program: PathBuf,
    },
    /// Any other refusal of the system.
    #[error("cannot start program `{}`", program.display())]
    Refused {
        /// The file.
        program: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Pipes or descriptors could not be made.
    #[error("cannot prepare the pipes of a process")]
    Pipes(#[source] io::Error),
    /// The wrapper executable itself cannot be started.
    #[error("cannot start the process wrapper `{}`", program.display())]
    Wrapper {
        /// The wrapper executable.
        program: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The wrapper ended without a word: it was killed, or its `main` does not begin with
    /// [`run_wrapper_if_asked`](crate::run_wrapper_if_asked).
    #[error("the process wrapper `{}` ended before it started the program", program.display())]
    WrapperLost {
        /// The wrapper executable.
        program: PathBuf,
    },
    /// The wrapper did not say in time whether it started the program.
    #[error("the process wrapper `{}` did not answer within {} s", program.display(), after.as_secs())]
    WrapperSilent {
        /// The wrapper executable.
        program: PathBuf,
        /// The time it was given.
        after: Duration,
    },
}

impl StartError {
    /// Names another file as the program: one that is started through a descriptor has a path that
    /// tells nobody anything.
    #[must_use]
    pub fn naming(mut self, file: &Path) -> Self {
        if let Self::NotFound { program }
        | Self::MissingInterpreter { program, .. }
        | Self::PermissionDenied { program, .. }
        | Self::NotExecutable { program, .. }
        | Self::Busy { program }
        | Self::Refused { program, .. } = &mut self
        {
            file.clone_into(program);
        }
        self
    }
}

/// What became of the processes of a program whose wrapper was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rest {
    /// All of them were found and ended.
    Ended,
    /// Some were out of sight, or did not end.
    MayRun,
}

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "all that it had started was ended",
            Self::MayRun => "processes that it had started may still be running",
        })
    }
}

/// The end of a started program cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The wrapper was killed; what could be found of the program was killed too.
    #[error("the process wrapper was killed ({wrapper}), so the program's end is unknown; {rest}")]
    WrapperLost {
        /// How the wrapper itself ended.
        wrapper: String,
        /// What became of the processes that the wrapper watched over.
        rest: Rest,
    },
    /// The system refused to wait.
    #[error("cannot wait for the process")]
    Wait(#[source] io::Error),
}

/// A captured program did not end by itself within its limits.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It ran longer than it may, and was killed.
    #[error("no end within {after:?}")]
    Timeout {
        /// The limit.
        after: Duration,
        /// What it had written.
        partial: Box<Captured>,
    },
    /// The caller's token was cancelled; before the start nothing was started.
    #[error("cancelled")]
    Cancelled,
    /// It wrote more than it may, and was killed.
    #[error("more than {limit} bytes of output")]
    OutputLimit {
        /// The limit for stdout and stderr together.
        limit: u64,
        /// What it had written, exactly `limit` bytes together.
        partial: Box<Captured>,
    },
    /// Its end cannot be told.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// A pipe broke in a way that is not the program's doing.
    #[error("cannot read the output of the process")]
    Read(#[source] io::Error),
}
