//! What a run needs to know; nothing else is looked up.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use attest_receipt::pipeline::Pipeline;
use attest_receipt::time::Time;
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

use super::RunError;
use crate::layout::State;
use crate::output::{Record, Secrets};

/// One run of a pipeline.
#[derive(Clone)]
pub struct RunOptions<'a> {
    /// The workspace and where its state is kept.
    pub state: State,
    /// What is run.
    pub pipeline: Pipeline,
    /// The pipeline file, relative to the workspace if it is in there.
    pub pipeline_path: Option<String>,
    /// The variables of this process, which steps inherit unless the run is hermetic.
    pub environment: Environment,
    /// The executable that watches over commands.
    pub wrapper: Wrapper,
    /// How many steps may run at once.
    pub jobs: NonZeroUsize,
    /// How much of the outputs is kept.
    pub record: Record,
    /// Whether steps see this machine or a fixed environment.
    pub execution: Execution,
    /// Who signs; asked after the last step.
    pub signing: Option<&'a dyn LoadKey>,
    /// Where the receipt goes.
    pub place: Place,
    /// The version that the receipt names.
    pub attest_version: String,
    /// The clock.
    pub now: fn() -> Time,
    /// Ends the run early; nothing is written then.
    pub cancel: CancellationToken,
}

impl RunOptions<'_> {
    /// Returns what no receipt and no message may hold.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        super::plan::secrets(&self.pipeline, &self.environment)
    }
}

impl std::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("state", &self.state)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}

/// The variables of a process; values may be secret, so it prints as its names.
#[derive(Clone, Default)]
pub struct Environment(pub Vec<(OsString, OsString)>);

impl Environment {
    /// Returns a variable's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    /// Returns a variable's value if it is text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(OsStr::to_str).map(str::to_owned)
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Whether steps see this machine or a fixed environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// The environment is inherited, the clock is the machine's.
    #[default]
    Ambient,
    /// Only `PATH` is inherited; time, zone and locale are fixed; no cache; the receipt names
    /// neither clock nor CI nor commit.
    Hermetic,
}

/// Where a receipt goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    /// Under a name of its own in the folder of receipts.
    #[default]
    Receipts,
    /// To this file, which is replaced as a whole.
    File(PathBuf),
    /// Nowhere; the caller has plans for it.
    Memory,
}

/// Finds the key that signs. It is asked once, when nothing of the pipeline runs any more.
pub trait LoadKey {
    /// Finds out early, without loading a key, that none could sign.
    ///
    /// # Errors
    /// Why there is none.
    fn check(&self) -> Result<(), RunError> {
        Ok(())
    }

    /// Loads the key.
    ///
    /// # Errors
    /// Why there is none that may sign.
    fn load(&self) -> Result<Box<dyn SigningKey + '_>, RunError>;
}

/// A key that signs.
pub trait SigningKey {
    /// Returns the raw public key as 64 hexadecimal digits.
    fn public_hex(&self) -> String;
    /// Signs a message.
    fn sign(&self, message: &[u8]) -> [u8; 64];
    /// Has the signature of a receipt timestamped, if that is wanted, and returns the token as
    /// receipts carry it. A receipt is written without one too: what it records is not to be had
    /// again, and a stamp is. Whoever wanted one says that there is none.
    fn stamp(&self, signature: &[u8; 64]) -> Option<String> {
        let _ = signature;
        None
    }
}
