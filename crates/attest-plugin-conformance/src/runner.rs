//! Runs scenarios and turns what they found into verdicts.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::pin::pin;

use futures_util::{StreamExt, stream};
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
    announced: OnceCell<Result<Announced, Unbegun>>,
}

/// Why a plugin does not begin.
#[derive(Debug)]
struct Unbegun {
    reason: String,
    /// Whether it was waited for in vain.
    silent: bool,
}

impl Unbegun {
    const fn at_once(reason: String) -> Self {
        Self {
            reason,
            silent: false,
        }
    }
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

    /// Runs several scenarios at once and tells of each in the order given, whichever ends first.
    ///
    /// # Errors
    /// That of whoever is told; what still runs is ended.
    pub async fn run_all<E>(
        &self,
        scenarios: &[Scenario],
        at_once: NonZeroUsize,
        mut tell: impl FnMut(Verdict) -> Result<(), E>,
    ) -> Result<(), E> {
        let runs = stream::iter(scenarios).map(|scenario| self.run(scenario));
        let mut verdicts = pin!(runs.buffered(at_once.get()));
        while let Some(verdict) = verdicts.next().await {
            tell(verdict)?;
        }
        Ok(())
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
        let nothing = Announced::default();
        let first = Cell::new(false);
        let ask = || async {
            first.set(true);
            let stage = self.stage(&nothing);
            let mut session = stage.start().await.map_err(Unbegun::at_once)?;
            match stage.greet(&mut session, "[1]").await {
                Ok(answer) => Ok(Announced::read(&answer)),
                Err(reason) => Err(Unbegun {
                    reason,
                    silent: session.silent,
                }),
            }
        };
        match self.announced.get_or_init(ask).await {
            Ok(announced) => (scenario.play)(&self.stage(announced)).await,
            // Nothing can be judged of a plugin that does not begin; only why can be looked for.
            Err(Unbegun { reason, silent }) => Err(match scenario.name {
                environment::NAME => {
                    environment::missing(&self.stage(&nothing), reason, *silent).await
                }
                _ if first.get() => reason.clone(),
                _ => "it does not begin: `hello` gets no `hello_ok`".to_owned(),
            }),
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
