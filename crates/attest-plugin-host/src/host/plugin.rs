//! One plugin of a run, from its declaration to its record.

use std::sync::Arc;

use attest_plugin_protocol::{
    Announcement, Decision, Expected, Hook, HostSession, Payload, Verdict,
};
use process_tree::{Ladder, Leftovers, Spec, Stdin};
use tokio_util::sync::CancellationToken;

use super::error::Problem;
use super::findings;
use super::{Answer, HostOptions, StartError};
use crate::clock::Clock;
use crate::declare::{Declared, OnFailure};
use crate::drive::{Asked, Drive, NoStart};
use crate::environment::environment;
use crate::executable::Executable;
use crate::log::PluginLog;
use crate::records::{Tally, short};
use crate::resolve::resolve;

/// One declared plugin.
#[derive(Debug)]
pub(super) struct Plugin {
    pub(super) declared: Declared,
    pub(super) announcement: Option<Announcement>,
    pub(super) tally: Tally,
    executable: Option<Executable>,
    drive: Option<Drive>,
    log: Arc<PluginLog>,
}

impl Plugin {
    /// Finds and verifies what is declared; nothing is started.
    pub(super) fn prepare(declared: &Declared, options: &HostOptions) -> Result<Self, StartError> {
        let name = declared.name.as_str();
        let mut plugin = Self {
            declared: declared.clone(),
            announcement: None,
            tally: Tally::default(),
            executable: None,
            drive: None,
            log: Arc::new(PluginLog::new(name, Arc::clone(&options.log))),
        };
        match plugin.verified(options) {
            Ok(executable) => plugin.executable = Some(executable),
            Err(problem) => plugin.tolerate(problem)?,
        }
        Ok(plugin)
    }

    fn verified(&self, options: &HostOptions) -> Result<Executable, Problem> {
        let path = resolve(&self.declared.command, &options.search).map_err(Problem::Resolve)?;
        let executable = Executable::open(&path).map_err(Problem::Executable)?;
        executable
            .verify(&self.declared)
            .map_err(Problem::DigestMismatch)?;
        Ok(executable)
    }

    /// Starts and greets it, unless it has failed before.
    pub(super) async fn start(
        &mut self,
        options: &HostOptions,
        clock: &Clock,
    ) -> Result<(), StartError> {
        let Some(executable) = &self.executable else {
            return Ok(());
        };
        let spec = Spec::new([executable.program()])
            .env(environment(
                &self.declared,
                &options.workspace,
                &options.attest_version,
                &options.search,
            ))
            .cwd(&options.workspace)
            .stdin(Stdin::Pipe)
            .leftovers(Leftovers::KillAndWarn);
        match self.greeted(spec, options, clock).await {
            Ok(()) => Ok(()),
            Err(Problem::Spawn(error)) => {
                let file = self.executable.as_ref().map(Executable::path);
                let error = match file {
                    Some(file) => error.naming(file),
                    None => error,
                };
                self.tolerate(Problem::Spawn(error))
            }
            Err(problem) => self.tolerate(problem),
        }
    }

    async fn greeted(
        &mut self,
        spec: Spec,
        options: &HostOptions,
        clock: &Clock,
    ) -> Result<(), Problem> {
        let (cancel, version) = (&options.cancel, &options.attest_version);
        let expected = Expected {
            name: self.declared.name.clone(),
            hooks: self.declared.hooks.clone(),
            deterministic: self.declared.deterministic,
        };
        let timeout = self.declared.timeout;
        let session = |now| HostSession::new(expected, version, timeout, now);
        let log = Arc::clone(&self.log);
        let started = Drive::start(&options.wrapper, spec, session, log, clock.clone(), cancel);
        let mut drive = started.await.map_err(|error| match error {
            NoStart::Refused(error) => Problem::Spawn(error),
            NoStart::Cancelled => Problem::Cancelled,
        })?;
        let problem = match drive.greet(cancel).await {
            Asked::Answered(announcement) => {
                self.announcement = Some(announcement);
                self.drive = Some(drive);
                return Ok(());
            }
            Asked::Failed(failure) => Problem::Hello(failure),
            Asked::Cancelled => Problem::Cancelled,
        };
        drive.bury(Ladder::KILL).await;
        Err(problem)
    }

    /// Notes what may be noted, and makes an error of the rest.
    fn tolerate(&mut self, problem: Problem) -> Result<(), StartError> {
        if !problem.is_failure() {
            return Err(problem.of(self.declared.name.to_string()));
        }
        let in_full = problem.in_full();
        self.note_failure(&problem.reason(), &in_full);
        match self.declared.on_failure {
            OnFailure::FailOpen => Ok(()),
            OnFailure::FailClosed => Err(problem.of(self.declared.name.to_string())),
        }
    }

    /// Tells whether it would be asked at a hook, if it has not failed.
    pub(super) fn serves(&self, hook: Hook) -> bool {
        match &self.announcement {
            Some(announcement) => self.declared.hooks.contains(&hook) && announcement.has(hook),
            None => false,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.tally.has_failed()
    }

    pub(super) async fn ask(
        &mut self,
        hook: Hook,
        payload: &Payload,
        cancel: &CancellationToken,
    ) -> Answer {
        let Some(drive) = &mut self.drive else {
            return self.fail("asked after its end");
        };
        match drive.ask(payload, cancel).await {
            Asked::Answered(verdict) => self.note_verdict(hook, &verdict),
            Asked::Cancelled => Answer::Cancelled,
            Asked::Failed(failure) => {
                if let Some(drive) = self.drive.take() {
                    drive.bury(Ladder::KILL).await;
                }
                self.fail(failure.reason())
            }
        }
    }

    fn note_verdict(&mut self, hook: Hook, verdict: &Verdict) -> Answer {
        self.tally.verdict(verdict);
        if verdict.decision != Decision::Allow {
            self.log.foreign(&format!("{hook}: {}", verdict.decision));
        }
        for finding in &verdict.findings {
            self.log.foreign(&findings::line(finding));
        }
        if verdict.decision == Decision::Deny {
            let plugin = self.declared.name.to_string();
            let reason = findings::reason(&verdict.findings);
            return Answer::Denied { plugin, reason };
        }
        Answer::Go
    }

    fn fail(&mut self, reason: &str) -> Answer {
        self.note_failure(reason, reason);
        match self.declared.on_failure {
            OnFailure::FailOpen => Answer::Go,
            OnFailure::FailClosed => Answer::Failed {
                plugin: self.declared.name.to_string(),
                reason: short(reason),
            },
        }
    }

    fn note_failure(&mut self, reason: &str, in_full: &str) {
        self.tally.failed(reason);
        self.log.own(&match self.declared.on_failure {
            OnFailure::FailOpen => format!("failed: {in_full}; the run goes on without it"),
            OnFailure::FailClosed => format!("failed: {in_full}"),
        });
    }

    /// Takes its process, if it has one.
    pub(super) fn take(&mut self) -> Option<Drive> {
        self.drive.take()
    }

    /// Gives up the bytes that it was started from, once its process is gone.
    pub(super) fn forget(&mut self) {
        self.executable = None;
    }
}
