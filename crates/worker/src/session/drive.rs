//! Waiting while there is an attempt: the only place that reads then.

use std::future::{Future, pending};

use forge_domain::Stage;
use gate_link::WorkerEvent;
use tokio::time::Instant;

use super::{ACK_TIMEOUT, Broken, Conversation};
use crate::activity::Stages;
use crate::attempt::{Held, at};
use crate::execution::Executor;
use crate::link::{Incoming, Link};

/// What came first.
pub(super) enum Driven<T> {
    /// The work ended.
    Done(T),
    /// The Gate said something that matters.
    Event(WorkerEvent),
}

/// What is kept up while something is waited for.
#[derive(Default)]
pub(super) struct Upkeep<'a> {
    /// The lease to renew.
    pub(super) clock: Option<&'a mut Held>,
    /// Whether the job stops where the lease cannot be renewed.
    pub(super) stops: bool,
    /// The stages to show.
    pub(super) stages: Option<&'a mut Stages>,
}

impl Upkeep<'_> {
    fn let_go_at(&self) -> Option<std::time::Instant> {
        self.clock
            .as_ref()
            .filter(|_| self.stops)
            .map(|held| held.clock.let_go_at())
    }

    fn next_heartbeat(&self) -> Option<std::time::Instant> {
        self.clock.as_ref().map(|held| held.clock.next_heartbeat())
    }
}

impl<L: Link, E: Executor> Conversation<'_, L, E> {
    /// Waits for `work` or for a message. Keeps the lease alive meanwhile, sends the stages that
    /// the job reaches, and answers pings.
    pub(super) async fn drive<F: Future>(
        &mut self,
        mut upkeep: Upkeep<'_>,
        work: F,
    ) -> Result<Driven<F::Output>, Broken> {
        tokio::pin!(work);
        loop {
            let (let_go, next_heartbeat) = (upkeep.let_go_at(), upkeep.next_heartbeat());
            tokio::select! {
                biased;
                () = self.serving.stop.kill.cancelled() => return Err(Broken::Killed),
                () = at(let_go) => return Err(Broken::LeaseLost),
                incoming = self.link.receive() => match incoming? {
                    Incoming::Message(message) => match self.session.receive(&message)? {
                        WorkerEvent::Ping(number) => self.pong(number, let_go).await?,
                        event => return Ok(Driven::Event(event)),
                    },
                    Incoming::Pong(number) => if let Some(held) = upkeep.clock.as_deref_mut() {
                        held.clock.answered(number);
                        self.pings = held.clock.pings();
                        held.publish();
                    },
                },
                // Before the end of the job, so that its last stage is not lost.
                stage = next(&mut upkeep.stages) => self.show(stage, let_go).await?,
                output = &mut work => return Ok(Driven::Done(output)),
                () = at(next_heartbeat) => if let Some(held) = upkeep.clock.as_deref_mut() {
                    self.heartbeat(held, let_go).await?;
                },
            }
        }
    }

    /// Answers a ping, unless nothing can be said any more. While an attach waits for its answer
    /// the pong does too, and the last one answers for all.
    pub(super) async fn pong(
        &mut self,
        number: u64,
        let_go: Option<std::time::Instant>,
    ) -> Result<(), Broken> {
        self.owed = self.owed.max(number);
        if self.closed || self.greeting {
            return Ok(());
        }
        let frame = self.session.pong(self.owed)?;
        self.send(frame, let_go).await
    }

    /// Sends a frame; a connection that takes no bytes holds nobody up for longer than the lease
    /// holds.
    pub(super) async fn send(
        &mut self,
        frame: Vec<u8>,
        let_go: Option<std::time::Instant>,
    ) -> Result<(), Broken> {
        let kill = self.serving.stop.kill.cancelled();
        within(let_go, kill, self.link.send(frame)).await?;
        Ok(())
    }

    /// Says the last words, and that they were the last.
    pub(super) async fn send_last(&mut self, frame: Option<Vec<u8>>) -> Result<(), Broken> {
        let kill = self.serving.stop.kill.cancelled();
        within(None, kill, self.link.send_last(frame)).await?;
        self.closed = true;
        Ok(())
    }

    /// Sends a stage. Where that fails the job is stopped, as where a heartbeat fails.
    async fn show(
        &mut self,
        stage: Stage,
        let_go: Option<std::time::Instant>,
    ) -> Result<(), Broken> {
        match self.session.activity(stage)? {
            None => Ok(()),
            Some(frame) => self.send(frame, let_go).await,
        }
    }

    async fn heartbeat(
        &mut self,
        held: &mut Held,
        let_go: Option<std::time::Instant>,
    ) -> Result<(), Broken> {
        let started = Instant::now().into_std();
        // After a pause of the whole process both are due, and timers fire one by one.
        if let_go.is_some_and(|let_go| started >= let_go) {
            return Err(Broken::LeaseLost);
        }
        let frame = self.session.heartbeat()?;
        let number = held.clock.heartbeat_starts(started);
        self.pings = held.clock.pings();
        let written = async {
            self.link.send(frame).await?;
            self.link.ping(number).await
        };
        within(let_go, self.serving.stop.kill.cancelled(), written).await?;
        held.clock.heartbeat_written(started);
        held.publish();
        Ok(())
    }
}

/// Waits for something to be written, no longer than makes sense.
async fn within<T>(
    let_go: Option<std::time::Instant>,
    kill: impl Future<Output = ()>,
    written: impl Future<Output = Result<T, crate::link::LinkDown>>,
) -> Result<T, Broken> {
    tokio::select! {
        biased;
        written = written => Ok(written?),
        () = kill => Err(Broken::Killed),
        () = at(let_go) => Err(Broken::LeaseLost),
        () = tokio::time::sleep(ACK_TIMEOUT) => Err(Broken::NoAck),
    }
}

/// The next stage; never, once the job has no more to say.
async fn next(stages: &mut Option<&mut Stages>) -> Stage {
    if let Some(open) = stages {
        if let Some(stage) = open.next().await {
            return stage;
        }
        *stages = None;
    }
    pending().await
}
