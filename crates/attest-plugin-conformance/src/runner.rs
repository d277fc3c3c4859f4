//! Runs scenarios and turns what they found into verdicts.

use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::limits::Limits;
use crate::scenario::{Scenario, environment};
use crate::stage::{Announced, Finding, Judged, Stage, Status, Verdict};
use crate::target::Target;

/// Runs scenarios against one plugin.
#[derive(Debug)]
pub struct Runner {
    target: Target,
    limits: Limits,
    /// What the plugin says of itself, or why it says nothing; asked once.
    announced: OnceCell<Result<Announced, String>>,
}

impl Runner {
    /// Prepares to run scenarios; nothing is started yet.
    #[must_use]
    pub const fn new(target: Target, limits: Limits) -> Self {
        Self {
            target,
            limits,
            announced: OnceCell::const_new(),
        }
    }

    /// Runs one scenario.
    pub async fn run(&self, scenario: &Scenario) -> Verdict {
        let begin = Instant::now();
        let (status, reason) = match self.judge(scenario).await {
            Ok(Finding::Kept) => (Status::Pass, None),
            Ok(Finding::Advice(reason)) => (Status::Warn, Some(reason)),
            Ok(Finding::Skipped(reason)) => (Status::Skip, Some(reason)),
            Err(reason) => (Status::Fail, Some(reason)),
        };
        Verdict {
            name: scenario.name,
            status,
            reason,
            duration: begin.elapsed(),
        }
    }

    async fn judge(&self, scenario: &Scenario) -> Judged {
        let ask = || async {
            let nothing = Announced::default();
            let (_session, answer) = self.stage(&nothing).opened().await?;
            Ok(Announced::read(&answer))
        };
        match self.announced.get_or_init(ask).await {
            Ok(announced) => (scenario.play)(&self.stage(announced)).await,
            // Nothing can be judged of a plugin that does not begin; only why can be looked for.
            Err(reason) => {
                let nothing = Announced::default();
                let found = match scenario.name {
                    environment::NAME => environment::missing(&self.stage(&nothing)).await,
                    _ => None,
                };
                Err(found.unwrap_or_else(|| reason.clone()))
            }
        }
    }

    const fn stage<'a>(&'a self, announced: &'a Announced) -> Stage<'a> {
        Stage {
            target: &self.target,
            limits: self.limits,
            announced,
        }
    }
}
