//! Runs scenarios one after the other and turns what was seen into verdicts.

use std::num::NonZeroU32;
use std::time::Duration;

use cli_shell::clock;
use tokio::sync::OnceCell;

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
        }
    }

    /// Runs one scenario as often as asked for, up to its first failure.
    pub async fn run(&self, scenario: &Scenario) -> Verdict {
        let begin = clock::instant();
        let repeat = self.limits.repeat.get();
        let mut verdict = Verdict {
            name: scenario.name,
            status: Status::Pass,
            reason: None,
            duration: Duration::ZERO,
        };
        for count in 1..=repeat {
            if let Err(reason) = self.once(scenario.check).await {
                verdict.status = Status::Fail;
                verdict.reason = Some(if repeat == 1 {
                    reason
                } else {
                    format!("run {count} of {repeat}: {reason}")
                });
                break;
            }
        }
        verdict.duration = begin.elapsed();
        verdict
    }

    async fn once(&self, check: Check) -> Result<(), String> {
        match check.rejection(self.operation) {
            None => session::valid(&self.target, self.operation, self.limits.session).await,
            Some(rejection) => self.reject(&rejection).await,
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
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    excerpt::message(&text)
}
