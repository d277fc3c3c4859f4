//! Builds twice and compares, file by file.
//!
//! Each build has a copy of the workspace under a path of its own, a fixed environment and no
//! cache. The receipt is that of the first build, with what the comparison found, and is signed
//! only then.

mod plugins;
mod report;

use std::path::{Path, PathBuf};

use attest_receipt::pipeline::Pipeline;
use attest_receipt::receipt::{PluginRecord, Receipt, Reproducibility};
use safe_fs::SafeFsError;
use tokio_util::sync::CancellationToken;

use crate::capsule::{temporary_folder, usable_temporary};
use crate::copy::{Copier, CopyError, plain};
use crate::hooks::{Hooks, Stop, StopKind};
use crate::layout::{FOLDER, State};
use crate::output::{Hiding, Observer};
use crate::run::{
    self, Closing, Draft, Execution, Place, RunError, RunOptions, RunOutcome, Skipped,
};
use crate::scratch::Scratch;

use plugins::Judged;
pub use plugins::{PluginDifference, PluginReport};
pub use report::{Difference, Report, StepReport};

/// What the receipt says of how it was compared.
pub const METHOD: &str = "double-build/v1";

/// What no copy holds, at any depth: the state of attest and of git.
const LEFT_OUT: [&str; 2] = [FOLDER, ".git"];
/// How many links that are left out are named.
const NAMED: usize = 20;

/// Says why a check has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproError {
    /// There is no place for the copies.
    #[error("cannot make a place for the copies of the workspace")]
    Place(#[source] SafeFsError),
    /// The folder that the copies would stand in is no folder.
    #[error("there is no place for the copies of the workspace: {0}")]
    Temporary(String),
    /// The workspace cannot be copied.
    #[error("cannot copy the workspace")]
    Copy(#[source] CopyError),
    /// A declared input that a copy cannot hold.
    #[error("step '{step}': symlink `{path}` leads out of the workspace")]
    LinkInInputs {
        /// The step.
        step: String,
        /// The link.
        path: String,
    },
    /// One of the builds, or the writing of the receipt.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl ReproError {
    /// Tells whether this is an honest no (exit 1) and not a failed operation (exit 2).
    #[must_use]
    pub fn is_no(&self) -> bool {
        matches!(self, Self::Run(error) if error.is_no())
    }
}

/// What came of a check.
#[derive(Debug, Clone)]
pub struct ReproOutcome {
    /// The receipt of the first build, as it was written.
    pub receipt: Receipt,
    /// Where it was written.
    pub path: Option<PathBuf>,
    /// What differs.
    pub report: Report,
    /// The steps that failed in either build.
    pub failed: Vec<String>,
    /// The steps of the first build that did not run.
    pub skipped: Vec<Skipped>,
    /// Who stopped either build.
    pub stopped: Option<Stop>,
}

impl ReproOutcome {
    /// Returns the exit code: 0 only if every step succeeded in both builds and made the same.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.stopped.as_ref().map(|stop| stop.kind) {
            Some(StopKind::Failed) => 2,
            Some(StopKind::Denied) => 1,
            None => u8::from(
                !self.report.verified || !self.failed.is_empty() || !self.skipped.is_empty(),
            ),
        }
    }
}

/// Builds the pipeline twice, compares, and writes the receipt. Plugins are asked about both builds
/// and stay the same processes; they are gone before the key is loaded.
///
/// The copies are removed when this returns, also when it was cancelled; it has to be awaited to
/// its end for that.
///
/// # Errors
/// Why there is no receipt; nothing of the pipeline runs any more then.
pub async fn check(
    options: &RunOptions<'_>,
    observer: &dyn Observer,
    hooks: &mut dyn Hooks,
) -> Result<ReproOutcome, ReproError> {
    let secrets = options.secrets();
    let observer = &Hiding::new(observer, &secrets);
    options.state.check().map_err(RunError::from)?;
    run::check_key(options.signing)?;
    options.state.make().map_err(RunError::from)?;
    let target = run::check_place(&options.place)?;
    run::refuse_plugins(&options.state, hooks)?;
    let copies = copy(options, observer).await?;
    let builds = Builds::make(options, copies.path(), observer, hooks).await?;
    if let Err(error) = copies.close() {
        observer.warning(&format!(
            "a copy of the workspace could not be removed: {error}"
        ));
    }
    run::farewell(options, hooks).await?;
    let records = run::records(&options.secrets(), hooks);
    builds.finish(options, records, target.as_deref())
}

/// What came of the builds, before the comparison.
struct Builds {
    first: RunOutcome,
    second: Option<RunOutcome>,
    /// Who stopped either of them.
    stopped: Option<Stop>,
    /// What plugins made of the first.
    judged: Vec<PluginRecord>,
    /// What they made of the second, if it was begun.
    judged_again: Option<Vec<PluginRecord>>,
}

impl Builds {
    async fn make(
        options: &RunOptions<'_>,
        copies: &Path,
        observer: &dyn Observer,
        hooks: &mut dyn Hooks,
    ) -> Result<Self, RunError> {
        let first = build(options, copies, "a", observer, hooks).await?;
        let mut builds = Self {
            stopped: first.stopped.clone(),
            first,
            second: None,
            judged: hooks.end_build(),
            judged_again: None,
        };
        if builds.stopped.is_some() {
            return Ok(builds);
        }
        match build(options, copies, "second", observer, hooks).await {
            Ok(second) => {
                builds.stopped = second.stopped.clone();
                builds.second = Some(second);
            }
            // The first build has steps, so there is a receipt that says who was against it.
            Err(RunError::Stopped(stop)) => builds.stopped = Some(stop),
            Err(error) => return Err(error),
        }
        builds.judged_again = Some(hooks.end_build());
        Ok(builds)
    }

    fn finish(
        self,
        options: &RunOptions<'_>,
        records: Option<Vec<PluginRecord>>,
        target: Option<&Path>,
    ) -> Result<ReproOutcome, ReproError> {
        let secrets = options.secrets();
        let judged = Judged {
            first: &self.judged,
            second: self.judged_again.as_deref(),
            stopped: self.stopped.as_ref(),
            both: records.as_deref().unwrap_or_default(),
        };
        let plugins = judged.compare(&secrets);
        let report = Report::new(&self.first, self.second.as_ref(), plugins);
        let mut failed = self.first.failed;
        failed.extend(self.second.into_iter().flat_map(|second| second.failed));
        failed.sort();
        failed.dedup();
        let mut receipt = self.first.receipt;
        // Of both builds: what was recorded after the first one may have become worse since.
        receipt.plugins = records;
        // One build is no comparison, and a receipt that says so would be refused.
        receipt.reproducibility = (report.runs > 1).then(|| Reproducibility {
            verified: report.verified,
            runs: report.runs,
            method: METHOD.into(),
        });
        let draft = Draft {
            receipt,
            events: self.first.events,
        };
        let closing = Closing {
            state: &options.state,
            place: &options.place,
            target,
            signing: options.signing,
            label: options.pipeline.name.as_deref(),
            now: (options.now)(),
            secrets: &secrets,
            // They tell of the copies, which are gone.
            record_events: false,
        };
        let (receipt, path) = run::conclude(draft, closing)?;
        Ok(ReproOutcome {
            receipt,
            path,
            report,
            failed,
            skipped: self.first.skipped,
            stopped: self.stopped,
        })
    }
}

/// Runs the pipeline in one of the copies.
async fn build(
    options: &RunOptions<'_>,
    copies: &Path,
    name: &str,
    observer: &dyn Observer,
    hooks: &mut dyn Hooks,
) -> Result<RunOutcome, RunError> {
    let state = State::new(copies.join(name), copies.join(format!("{name}.state")));
    let options = RunOptions {
        state,
        execution: Execution::Hermetic,
        place: Place::Memory,
        signing: None,
        ..options.clone()
    };
    let (outcome, _held, _) = run::build(&options, observer, hooks).await?;
    Ok(outcome)
}

/// Copies the workspace twice. The two paths differ also in length, since a build that writes its
/// path down may be padded.
async fn copy(options: &RunOptions<'_>, observer: &dyn Observer) -> Result<Scratch, ReproError> {
    let place = temporary_folder(&options.environment);
    let place = usable_temporary(&place).map_err(ReproError::Temporary)?;
    let copies = Scratch::new_in(&place, "attest-repro-").map_err(ReproError::Place)?;
    let named = options.state.workspace();
    // A link to the workspace is the caller's way of naming it; the copier follows none.
    let workspace = fs_err::canonicalize(named).unwrap_or_else(|_| named.to_owned());
    let into = copies.path().to_owned();
    let cancel = options.cancel.clone();
    let work = move || copy_twice(&workspace, &into, &cancel);
    let links = match tokio::task::spawn_blocking(work).await {
        Ok(Ok(links)) => links,
        Ok(Err(CopyError::Cancelled)) => return Err(RunError::Cancelled.into()),
        Ok(Err(error)) => return Err(ReproError::Copy(error)),
        Err(source) => {
            return Err(ReproError::Run(RunError::Internal {
                what: "the copying of the workspace broke off",
                source: source.into(),
            }));
        }
    };
    refuse_inputs_among(&links, &options.pipeline)?;
    for link in links.iter().take(NAMED) {
        let link = shown(link);
        observer.warning(&format!(
            "symlink `{link}` leads out of the workspace and is left out of the copies"
        ));
    }
    if let Some(more) = links.len().checked_sub(NAMED).filter(|more| *more > 0) {
        observer.warning(&format!("{more} more such symlinks are left out"));
    }
    Ok(copies)
}

/// Returns the links that were left out.
fn copy_twice(
    workspace: &Path,
    into: &Path,
    cancel: &CancellationToken,
) -> Result<Vec<PathBuf>, CopyError> {
    let mut links = Vec::new();
    for name in ["a", "second"] {
        let copy = into.join(name);
        let made = fs_err::create_dir(&copy);
        made.map_err(|source| CopyError::Io {
            path: ".".into(),
            source,
        })?;
        let mut copier = Copier::new(&LEFT_OUT, cancel).without(into);
        copier.whole(workspace, &copy)?;
        links = copier.links_left_out;
        copy_capsules(workspace, &copy, cancel)?;
    }
    Ok(links)
}

/// Capsules are part of what a pipeline says, though they stand among the state.
fn copy_capsules(
    workspace: &Path,
    copy: &Path,
    cancel: &CancellationToken,
) -> Result<(), CopyError> {
    let capsules = Path::new(FOLDER).join("capsules");
    let found = fs_err::symlink_metadata(workspace.join(&capsules));
    if found.is_ok_and(|found| found.is_dir()) {
        Copier::new(&[], cancel).one(workspace, copy, &capsules)?;
    }
    Ok(())
}

/// An input that the copies miss would be hashed as if it were not there.
fn refuse_inputs_among(links: &[PathBuf], pipeline: &Pipeline) -> Result<(), ReproError> {
    for (name, step) in &pipeline.steps {
        let link = links.iter().find(|link| {
            step.inputs
                .iter()
                .any(|input| link.starts_with(plain(input)))
        });
        if let Some(link) = link {
            return Err(ReproError::LinkInInputs {
                step: name.clone(),
                path: shown(link),
            });
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    bounded::text::visible(&path.to_string_lossy())
}
