//! Starts steps when they may start, and asks the hooks in between.
//!
//! With one job this is the topological order. With more, a step starts when those that it needs
//! have succeeded and no unfinished step before it in that order shares a written path with it.
//! Where hooks are declared, steps also start in that order only, so that what is asked, and when,
//! does not depend on which of two steps was faster.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::one::{Done, Ready, Shared};
use super::overlap::Claims;
use super::{Execution, RunError, Skipped};
use crate::hooks::{AfterStep, BeforeStep, Hooks, Stop, Verdict};
use crate::output;

/// How far ahead of the first unfinished step another one may start.
const LOOK_AHEAD: usize = 1024;

type Running<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = Result<Done, RunError>> + 'a>>>;
type Finished = VecDeque<Result<Done, RunError>>;

/// What came of all steps.
#[derive(Debug)]
pub(super) struct Ran {
    /// In topological order.
    pub(super) done: Vec<Done>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) stopped: Option<Stop>,
}

/// Runs every step that may run.
pub(super) async fn all<'a>(shared: Shared<'a>, hooks: &mut dyn Hooks) -> Result<Ran, RunError> {
    let mut schedule = Schedule::new(shared, hooks.records().is_some());
    let outcome = schedule.drive(hooks).await;
    if outcome.is_err() {
        shared.abort.cancel();
        // Each of them ends its command before it says so.
        while schedule.running.next().await.is_some() {}
    }
    outcome.map(|()| schedule.into_ran())
}

struct Schedule<'a> {
    shared: Shared<'a>,
    /// One per step, in topological order.
    steps: Vec<State>,
    /// Everything before this place has ended or was skipped.
    open_from: usize,
    in_order: bool,
    running: Running<'a>,
    finished: Finished,
    stopped: Option<Stop>,
}

enum State {
    Waiting,
    Running,
    Done(Box<Done>),
    Skipped(String),
}

impl State {
    fn is_open(&self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

impl<'a> Schedule<'a> {
    fn new(shared: Shared<'a>, in_order: bool) -> Self {
        Self {
            steps: shared.plan.steps.iter().map(|_| State::Waiting).collect(),
            shared,
            open_from: 0,
            in_order,
            running: FuturesUnordered::new(),
            finished: VecDeque::new(),
            stopped: None,
        }
    }

    async fn drive(&mut self, hooks: &mut dyn Hooks) -> Result<(), RunError> {
        loop {
            while let Some(done) = self.finished.pop_front() {
                self.record(done?, hooks).await?;
            }
            if self.stopped.is_none()
                && self.running.len() < self.shared.options.jobs.get()
                && let Some(place) = self.next()?
            {
                self.start(place, hooks).await?;
                continue;
            }
            match self.running.next().await {
                Some(done) => self.finished.push_back(done),
                None if self.finished.is_empty() => return Ok(()),
                None => {}
            }
        }
    }

    /// Finds the next step that may start, and skips those that never may.
    fn next(&mut self) -> Result<Option<usize>, RunError> {
        while self.steps.get(self.open_from).is_some_and(|s| !s.is_open()) {
            self.open_from += 1;
        }
        let mut claims = Claims::default();
        let until = self.steps.len().min(self.open_from + LOOK_AHEAD);
        for place in self.open_from..until {
            let planned = self.shared.planned(place)?;
            match self.steps.get(place) {
                Some(State::Waiting) => {}
                Some(State::Running) => {
                    claims.add(&planned.step);
                    continue;
                }
                _ => continue,
            }
            match self.needs(&planned.needs) {
                Needs::Never => self.skip(place, "a dependency did not succeed".into())?,
                Needs::Met if !claims.forbid(&planned.step) => return Ok(Some(place)),
                Needs::Met | Needs::Open if self.in_order => return Ok(None),
                Needs::Met | Needs::Open => claims.add(&planned.step),
            }
        }
        Ok(None)
    }

    fn needs(&self, needs: &[usize]) -> Needs {
        let mut met = Needs::Met;
        for need in needs {
            match self.steps.get(*need) {
                Some(State::Done(done)) if done.result.exit_code == 0 => {}
                Some(State::Done(_) | State::Skipped(_)) | None => return Needs::Never,
                Some(State::Waiting | State::Running) => met = Needs::Open,
            }
        }
        met
    }

    fn skip(&mut self, place: usize, why: String) -> Result<(), RunError> {
        self.shared
            .observer
            .skipped(&self.shared.planned(place)?.name, &why);
        self.set(place, State::Skipped(why));
        Ok(())
    }

    fn set(&mut self, place: usize, state: State) {
        if let Some(slot) = self.steps.get_mut(place) {
            *slot = state;
        }
    }

    async fn start(&mut self, place: usize, hooks: &mut dyn Hooks) -> Result<(), RunError> {
        let shared = self.shared;
        let asked = self.in_order;
        let ready = async move {
            // Who is asked is told whether the step will run.
            if asked {
                shared.ready_or_cached(place).await
            } else {
                shared.ready(place).await
            }
        };
        let ready = alongside(ready, &mut self.running, &mut self.finished).await?;
        self.stopped = self.ask_before(&ready, hooks).await?;
        if self.stopped.is_some() {
            return Ok(());
        }
        self.set(place, State::Running);
        self.running.push(Box::pin(self.shared.finish(ready)));
        Ok(())
    }

    async fn ask_before(
        &mut self,
        ready: &Ready,
        hooks: &mut dyn Hooks,
    ) -> Result<Option<Stop>, RunError> {
        let plan = self.shared.plan;
        let planned = self.shared.planned(ready.place)?;
        let Some(step) = plan.facts.steps.get(ready.place) else {
            return Ok(None);
        };
        let facts = BeforeStep {
            step,
            input_hash: &ready.input_hash,
            command_hash: &planned.command_hash,
            capsule_hash: ready.capsule_hash.as_deref(),
            pipeline_hash: &plan.pipeline_hash,
            cache_hit: ready.is_cached(),
        };
        self.ask(hooks.step_pre(&facts)).await
    }

    async fn ask(
        &mut self,
        answer: impl Future<Output = Verdict>,
    ) -> Result<Option<Stop>, RunError> {
        let abort = self.shared.abort;
        let verdict = tokio::select! {
            biased;
            () = abort.cancelled() => Verdict::Cancelled,
            verdict = alongside(answer, &mut self.running, &mut self.finished) => verdict,
        };
        match verdict {
            Verdict::Go => Ok(None),
            Verdict::Stop(stop) => Ok(Some(stop)),
            Verdict::Cancelled => Err(RunError::Cancelled),
        }
    }

    /// Takes a step's result, tells it, and keeps the sum of all outputs within its bound.
    async fn record(&mut self, mut done: Done, hooks: &mut dyn Hooks) -> Result<(), RunError> {
        self.shared.observer.ended(&done.result);
        let output = done.told.take();
        if self.stopped.is_none() {
            let mut result = done.result.clone();
            if self.shared.options.execution == Execution::Hermetic {
                result.duration_secs = 0;
            }
            let facts = AfterStep {
                result: &result,
                output: output.as_ref(),
            };
            self.stopped = self.ask(hooks.step_post(&facts)).await?;
        }
        self.set(done.place, State::Done(Box::new(done)));
        self.shrink();
        Ok(())
    }

    /// Earlier steps in topological order go first, whatever ended first.
    fn shrink(&mut self) {
        let done = self.steps.iter_mut().filter_map(|state| match state {
            State::Done(done) => Some(done),
            State::Waiting | State::Running | State::Skipped(_) => None,
        });
        output::fit(
            done.flat_map(|done| [&mut done.stdout, &mut done.stderr]),
            output::RECEIPT,
        );
    }

    fn into_ran(mut self) -> Ran {
        if let Some(stop) = &self.stopped {
            let why = format!("the run was stopped by plugin {}", stop.plugin);
            for (state, planned) in self.steps.iter_mut().zip(&self.shared.plan.steps) {
                if state.is_open() {
                    self.shared.observer.skipped(&planned.name, &why);
                    *state = State::Skipped(why.clone());
                }
            }
        }
        let mut ran = Ran {
            done: Vec::new(),
            skipped: Vec::new(),
            stopped: self.stopped,
        };
        for (state, planned) in self.steps.into_iter().zip(&self.shared.plan.steps) {
            match state {
                State::Done(done) => ran.done.push(*done),
                State::Skipped(why) => ran.skipped.push(Skipped {
                    step: planned.name.clone(),
                    why,
                }),
                State::Waiting | State::Running => {}
            }
        }
        ran
    }
}

enum Needs {
    Met,
    Open,
    Never,
}

/// Does one thing while steps go on, so that a slow answer holds up nobody's output.
async fn alongside<T>(
    work: impl Future<Output = T>,
    running: &mut Running<'_>,
    finished: &mut Finished,
) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            value = &mut work => return value,
            Some(done) = running.next(), if !running.is_empty() => finished.push_back(done),
        }
    }
}
