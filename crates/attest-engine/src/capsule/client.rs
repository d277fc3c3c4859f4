//! The program that talks to a container engine.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use process_tree::{Capture, CaptureError, OnLimit, Spec, capture_direct};
use tokio_util::sync::CancellationToken;

use super::CapsuleFault;
use crate::run::Environment;

/// The clients that are known, in the order in which they are tried.
const CLIENTS: [&str; 2] = ["docker", "podman"];
/// How long a client may take to say whether its engine is there, or to remove a container.
const PATIENCE: Duration = Duration::from_secs(20);
const OUTPUT_BYTES: u64 = 64 << 10;
/// How much of a client's words an error quotes.
const QUOTED: usize = 400;

/// A client whose engine answered.
#[derive(Debug, Clone)]
pub struct Client {
    program: PathBuf,
    environment: Environment,
}

impl Client {
    /// Finds docker or podman in the absolute entries of `PATH`, and asks whether there is an
    /// engine behind it.
    ///
    /// # Errors
    /// There is no client, or none with an engine.
    pub async fn find(
        environment: &Environment,
        cancel: &CancellationToken,
    ) -> Result<Self, CapsuleFault> {
        let mut silent = None;
        for name in CLIENTS {
            let Some(program) = look_up(environment, name) else {
                continue;
            };
            let client = Self {
                program,
                environment: environment.clone(),
            };
            match client.ask(&["version"], cancel).await {
                Ok(()) => return Ok(client),
                Err(said) => {
                    silent.get_or_insert(CapsuleFault::NoEngine {
                        client: client.program,
                        said,
                    });
                }
            }
        }
        Err(silent.unwrap_or(CapsuleFault::NoClient))
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Ends and removes a container that may be running, as well as that can be done.
    pub(super) async fn remove(&self, container: &str) {
        // Not the caller's token: this is what has to be done after a cancellation.
        let never = CancellationToken::new();
        if let Err(said) = self.ask(&["rm", "-f", container], &never).await {
            tracing::warn!(container, said, "a container may still be running");
        }
    }

    /// Runs the client for its exit code; its words where that is no success.
    async fn ask(&self, arguments: &[&str], cancel: &CancellationToken) -> Result<(), String> {
        let argv = std::iter::once(self.program.clone().into_os_string())
            .chain(arguments.iter().map(Into::into));
        let spec = Spec::new(argv).env(self.environment.0.clone()).cwd("/");
        let capture = Capture::new(PATIENCE, OUTPUT_BYTES).on_limit(OnLimit::Truncate);
        match capture_direct(spec, capture, cancel).await {
            Ok(done) if done.exit.is_success() => Ok(()),
            Ok(done) => {
                let status = done.exit.status;
                Err(match last_words(&done.stderr) {
                    words if words.is_empty() => status.to_string(),
                    words => words,
                })
            }
            Err(CaptureError::Timeout { after, .. }) => {
                Err(format!("no answer within {} s", after.as_secs()))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

fn look_up(environment: &Environment, name: &str) -> Option<PathBuf> {
    std::env::split_paths(environment.get("PATH")?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|program| {
            fs_err::metadata(program)
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}

/// The last line that a client wrote, which says what went wrong, made safe to show.
pub(super) fn last_words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let cut: String = line.chars().take(QUOTED).collect();
    bounded::text::visible(&cut)
}
