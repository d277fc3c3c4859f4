//! Names the executable that acts as wrapper, and turns this process into one when asked.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The hidden first argument by which the host asks its own executable to act as wrapper.
#[cfg(all(target_os = "linux", not(portable_process)))]
pub(crate) const ASKED: &str = "__process-tree-wrapper-1";

/// The executable that acts as wrapper: one whose `main` starts with [`run_wrapper_if_asked`].
#[derive(Debug, Clone)]
pub struct Wrapper {
    program: PathBuf,
    shown_as: OsString,
}

impl Wrapper {
    /// Names an executable, for hosts that cannot act as wrapper themselves (test harnesses).
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let program = program.into();
        let shown_as = program.as_os_str().to_owned();
        Self { program, shown_as }
    }

    /// Uses the running executable, also when its file was replaced or removed meanwhile.
    ///
    /// # Errors
    /// The path of the running executable cannot be read.
    pub fn current_exe() -> io::Result<Self> {
        let shown_as = std::env::current_exe()?.into_os_string();
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            PathBuf::from(&shown_as)
        };
        Ok(Self { program, shown_as })
    }

    /// The path that is executed.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The name under which process listings show the wrapper.
    pub fn shown_as(&self) -> &OsStr {
        &self.shown_as
    }
}

/// Acts as wrapper and returns its exit code, if the first argument asks for that.
///
/// Call it as the first line of `main`, before any thread or runtime starts; on `None` the
/// program goes on as usual.
#[must_use = "on `Some` the program must end with this code"]
pub fn run_wrapper_if_asked() -> Option<ExitCode> {
    #[cfg(all(target_os = "linux", not(portable_process)))]
    {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next()? == ASKED {
            return Some(crate::linux::wrapper::run(arguments));
        }
    }
    None
}
