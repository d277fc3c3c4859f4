//! All plugins of one run: started, asked one after another, ended together.
//!
//! ```text
//! prepared ─── every file found, hashed, compared: nothing has run yet
//!    │
//! started ──── one process per plugin, one after another: spawned, `hello`, `hello_ok`
//!    │
//! asked ────── one question at a time, in the order of the declarations, until one stops the run
//!    │
//! ended ────── `shutdown` to all at once; SIGTERM after 5 s, SIGKILL after 5 more
//! ```
//!
//! Beside the process of a plugin there is one of ours, the process wrapper, by which all that the
//! plugin started is found and ended with it.
//!
//! # What a failure does
//!
//! | | fail-closed | fail-open |
//! |---|---|---|
//! | another digest, name or determinism; a declared hook that is not announced | [`StartError`] | [`StartError`] |
//! | no file, no start, no good `hello_ok` | [`StartError`] | recorded, the others start |
//! | no good answer in time | [`Answer::Failed`] | recorded, the others are asked |
//!
//! In each case the plugin is killed with all its descendants, and never asked again. A denial is
//! no failure: [`Answer::Denied`] in both modes, also where the plugin breaks a rule in the same
//! breath. After an answer that stops the run nobody is asked any more; [`Host::ask`] repeats it.
//!
//! # Two builds
//!
//! In a reproducibility run, call [`Host::end_build`] after the last question of each build: it
//! gives the records as if that build were the whole invocation, and begins the next. A plugin
//! that failed in another build, or before any, has the decision `skipped` there.
//! [`Host::records`] are those of the whole invocation at any time, also after
//! [`Host::shutdown`]; nothing that a plugin does at its end changes them.

mod error;
mod findings;
mod plugin;

use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use attest_plugin_protocol::{Announcement, Hook, Payload};
use attest_receipt::receipt::PluginRecord;
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::declare::{Declared, Plugins};
use crate::log::RunLog;
use crate::records::Tally;
use crate::resolve::SearchPath;
use plugin::Plugin;

pub use error::StartError;

/// What a host needs beside the declarations.
#[derive(Clone)]
pub struct HostOptions {
    /// The workspace, absolute; also where plugins run.
    pub workspace: PathBuf,
    /// The version that plugins are told.
    pub attest_version: String,
    /// Where bare commands are looked up; also the plugins' `PATH`.
    pub search: SearchPath,
    /// What watches over a plugin's process.
    pub wrapper: Wrapper,
    /// Where findings, notes and the plugins' stderr go.
    pub log: Arc<dyn RunLog>,
    /// Ends everything at once.
    pub cancel: CancellationToken,
}

impl fmt::Debug for HostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostOptions")
            .field("workspace", &self.workspace)
            .field("attest_version", &self.attest_version)
            .finish_non_exhaustive()
    }
}

/// Whether the run may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may.
    Go,
    /// A plugin said no: exit code 1.
    Denied {
        /// The plugin.
        plugin: String,
        /// Its findings, as visible text, each in a line.
        reason: String,
    },
    /// A fail-closed plugin did not answer: exit code 2.
    Failed {
        /// The plugin.
        plugin: String,
        /// What it did, as visible text.
        reason: String,
    },
    /// The run was cancelled; nobody said anything.
    Cancelled,
}

/// The running plugins of one invocation. Dropping it kills them with all their descendants.
#[derive(Debug)]
pub struct Host {
    plugins: Vec<Plugin>,
    options: HostOptions,
    /// The answer that stopped the run.
    stop: Option<Answer>,
}

impl Host {
    /// Starts and greets every declared plugin, one after another in the order of the file, once
    /// all of them were verified.
    ///
    /// # Errors
    /// See [`StartError`]; no plugin runs any more.
    pub async fn start(plugins: &Plugins, options: HostOptions) -> Result<Self, StartError> {
        Self::start_by(plugins, options, Clock::default()).await
    }

    /// Does the same by another clock than the system's.
    ///
    /// # Errors
    /// As [`Host::start`].
    pub async fn start_by(
        plugins: &Plugins,
        options: HostOptions,
        clock: Clock,
    ) -> Result<Self, StartError> {
        let prepared = plugins.plugins.iter();
        let prepared = prepared.map(|declared| Plugin::prepare(declared, &options));
        let mut host = Self {
            plugins: prepared.collect::<Result<_, _>>()?,
            options,
            stop: None,
        };
        for plugin in &mut host.plugins {
            if let Err(error) = plugin.start(&host.options, &clock).await {
                host.shutdown().await;
                return Err(error);
            }
        }
        Ok(host)
    }

    /// Asks every plugin that declared and announced the hook, one at a time, until one stops the
    /// run. `payload` is called at most once for plugins that want to see what steps wrote, and at
    /// most once for those that do not.
    ///
    /// Dropping the answer half-way is a failure of the plugin that was being asked, unless the
    /// run is cancelled.
    pub async fn ask(&mut self, hook: Hook, payload: &mut dyn FnMut(bool) -> Payload) -> Answer {
        if self.options.cancel.is_cancelled() {
            return Answer::Cancelled;
        }
        if let Some(stop) = &self.stop {
            return stop.clone();
        }
        let (mut full, mut plain) = (None, None);
        for plugin in &mut self.plugins {
            if plugin.has_failed() || !plugin.serves(hook) {
                continue;
            }
            let wants_output = plugin.declared.wants_output;
            let made = if wants_output { &mut full } else { &mut plain };
            let payload = made.get_or_insert_with(|| payload(wants_output));
            match plugin.ask(hook, payload, &self.options.cancel).await {
                Answer::Go => {}
                Answer::Cancelled => return Answer::Cancelled,
                stop => {
                    self.stop = Some(stop.clone());
                    return stop;
                }
            }
        }
        Answer::Go
    }

    /// Tells whether a plugin that will be asked wants to see what steps wrote.
    #[must_use]
    pub fn wants_output(&self) -> bool {
        self.plugins.iter().any(|plugin| {
            plugin.declared.wants_output
                && !plugin.has_failed()
                && [Hook::StepPost, Hook::ReceiptFinalize]
                    .into_iter()
                    .any(|hook| plugin.serves(hook))
        })
    }

    /// What is recorded about every declared plugin over the whole invocation, sorted by name.
    #[must_use]
    pub fn records(&self) -> Vec<PluginRecord> {
        self.sorted(Tally::record)
    }

    /// What would be recorded if the build that ends now were all of the invocation, sorted by
    /// name; the next build begins. [`Host::records`] is not changed by this.
    pub fn end_build(&mut self) -> Vec<PluginRecord> {
        let records = self.sorted(Tally::build_record);
        for plugin in &mut self.plugins {
            plugin.tally.begin_build();
        }
        records
    }

    fn sorted(
        &self,
        record: impl Fn(&Tally, &Declared, Option<&Announcement>) -> PluginRecord,
    ) -> Vec<PluginRecord> {
        let plugins = self.plugins.iter();
        let records = plugins.map(|it| record(&it.tally, &it.declared, it.announcement.as_ref()));
        let mut records: Vec<PluginRecord> = records.collect();
        records.sort_by(|one, other| one.name.cmp(&other.name));
        records
    }

    /// Ends all plugins, all at once, within ten seconds and a little; within one once the run is
    /// cancelled. Repeating it does nothing.
    pub async fn shutdown(&mut self) {
        let cancel = &self.options.cancel;
        let running = self.plugins.iter_mut().filter_map(Plugin::take);
        let ends = running.map(|drive| Box::pin(drive.end(cancel))).collect();
        all(ends).await;
        for plugin in &mut self.plugins {
            plugin.forget();
        }
    }
}

/// Waits for all of them at once.
async fn all<F: Future<Output = ()>>(mut running: Vec<Pin<Box<F>>>) {
    poll_fn(|context| {
        running.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if running.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
