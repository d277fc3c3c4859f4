//! Runs scenarios one after the other and turns what was seen into verdicts.

use std::num::NonZeroU32;
use std::time::Duration;

use bounded::text::with_causes;
use cli_shell::clock;
use tokio::sync::{OnceCell, RwLock};

use crate::conduct::Finding;
use crate::excerpt;
use crate::scenario::{Check, Rejection, Scenario};
use crate::target::Target;
use crate::verdict::{End, Observed, Status, Verdict, judge};
use crate::{Operation, session};

/// How long scenarios may take, and how often each is run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time for the valid session.
    pub session: Duration,
    /// The time for one refusal.
    pub rejection: Duration,
    /// The repetitions of each scenario.
    pub repeat: NonZeroU32,
}

/// Runs scenarios against one target.
#[derive(Debug)]
pub struct Runner {
    target: Target,
    operation: Operation,
    limits: Limits,
    /// What became of a mere start, once somebody has had to ask.
    start: OnceCell<Option<Observed>>,
    /// Scenarios that measure a time run alone; the tool must not be the load that delays them.
    alone: RwLock<()>,
}

impl Runner {
    /// Prepares to run scenarios; nothing is started yet.
    #[must_use]
    pub fn new(target: Target, operation: Operation, limits: Limits) -> Self {
        Self {
            target,
            operation,
            limits,
            start: OnceCell::new(),
            alone: RwLock::new(()),
        }
    }

    /// Runs one scenario as often as asked for, up to its first failure.
    pub async fn run(&self, scenario: &Scenario) -> Verdict {
        if scenario.check.measures() {
            let _alone = self.alone.write().await;
            self.repeated(scenario).await
        } else {
            let _together = self.alone.read().await;
            self.repeated(scenario).await
        }
    }

    async fn repeated(&self, scenario: &Scenario) -> Verdict {
        let begin = clock::instant();
        let repeat = self.limits.repeat.get();
        let mut verdict = Verdict {
            name: scenario.name,
            status: Status::Pass,
            reason: None,
            duration: Duration::ZERO,
        };
        if let Some(only) = scenario.only.filter(|only| *only != self.operation) {
            verdict.status = Status::Skip;
            verdict.reason = Some(format!("it is about `{only}`"));
            return verdict;
        }
        for count in 1..=repeat {
            match self.once(scenario.check).await {
                Ok(Finding::Kept) => {}
                Ok(Finding::Skipped(reason)) => {
                    verdict.status = Status::Skip;
                    verdict.reason = Some(reason);
                }
                Err(reason) => {
                    verdict.status = Status::Fail;
                    verdict.reason = Some(if repeat == 1 {
                        reason
                    } else {
                        format!("run {count} of {repeat}: {reason}")
                    });
                    break;
                }
            }
        }
        verdict.duration = begin.elapsed();
        verdict
    }

    async fn once(&self, check: Check) -> Result<Finding, String> {
        if let Some(rejection) = check.rejection(self.operation) {
            return self.reject(&rejection).await.map(|()| Finding::Kept);
        }
        let (target, operation, limit) = (&self.target, self.operation, self.limits.session);
        match check {
            Check::Session(trial) => trial.conduct(target, operation, limit).await,
            _ => session::valid(target, operation, limit)
                .await
                .map(|()| Finding::Kept),
        }
    }

    async fn reject(&self, rejection: &Rejection) -> Result<(), String> {
        let observed = self
            .target
            .refuse(rejection, self.limits.rejection)
            .await
            .map_err(|error| explain(&error))?;
        judge(rejection, &observed)?;
        // env(1) and shells answer for a program that is missing, with a code of their own and an
        // empty output. That looks like a refusal, so such a code must come with proof of life.
        if let End::Code(code @ (126 | 127)) = observed.end
            && observed.stdout.is_empty()
            && !self.answers().await
        {
            let tail = excerpt::tail(&observed.stderr).unwrap_or_else(|| "nothing".to_owned());
            return Err(format!(
                "the plugin does not seem to start: it ends with {code} whatever it reads; stderr: {tail}"
            ));
        }
        Ok(())
    }

    /// Whether the plugin answers anything at all to a valid beginning.
    async fn answers(&self) -> bool {
        let observe = async {
            let opening = Rejection {
                wire: crate::wire::Frame::initialize(self.operation).line(),
                answer: Vec::new(),
            };
            self.target
                .refuse(&opening, self.limits.rejection)
                .await
                .ok()
        };
        self.start
            .get_or_init(|| observe)
            .await
            .as_ref()
            .is_some_and(|observed| !observed.stdout.is_empty())
    }
}

/// Writes an error and its causes on one line.
pub(crate) fn explain(error: &dyn std::error::Error) -> String {
    excerpt::message(&with_causes(error))
}
