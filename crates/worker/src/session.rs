//! One connection of one slot: takes a lease, has it carried out, renews it meanwhile, delivers.
//!
//! The socket is read all the time, also while a job runs: the Gate's pings are answered, a
//! cancellation is heard and a lost connection is noticed at once. A job whose lease cannot be
//! renewed is stopped before the Gate could give it to anybody else. Which messages are allowed
//! when is `gate-link`'s business; this adds time, cancellation and order of effects.
//!
//! - `greet`: what the slot still has from earlier connections;
//! - `idle`: waiting for a lease, saying whether one is wanted, leaving;
//! - `carry`: one attempt from here to its acknowledgement;
//! - `drive`: the only place that reads while there is an attempt.
//!
//! An [`Attempt`] belongs to the slot, not to the connection. One whose lease came with a token
//! is still there when the connection ends.

mod broken;
mod carry;
mod drive;
mod greet;
mod idle;

use std::convert::Infallible;
use std::time::Duration;

use gate_link::{ConnectQuery, Lease, LeaseKey, WorkerSession};
use tokio::time::Instant;

pub(crate) use broken::Broken;
pub(crate) use carry::abandon;

use crate::attempt::{Attempt, Home};
use crate::disk_guard::DiskGuard;
use crate::execution::Executor;
use crate::lease_clock::Pings;
use crate::link::Link;
use crate::stop::Stop;

/// How long the Gate may take to acknowledge evidence or a result, or to judge an attach.
const ACK_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a slot that leaves waits for the Gate to close too.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long a slot waits for a lease that the Gate may have sent before it could know that the
/// Worker drains, where it cannot be asked.
const CROSSING: Duration = Duration::from_millis(100);
/// How long a slot waits for the word that no lease is under way any more.
const BARRIER: Duration = Duration::from_secs(2);
/// How long a slot that drains waits for the greeting of a Gate that may take its last result.
const GREETING: Duration = Duration::from_secs(2);

/// What a slot needs to serve a connection.
#[derive(Debug)]
pub(crate) struct Serving<'a, E> {
    pub(crate) query: &'a ConnectQuery,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) executor: &'a E,
    pub(crate) stop: &'a Stop,
    pub(crate) home: &'a Home,
    pub(crate) guard: &'a DiskGuard,
}

/// Serves one connection until it ends. Returns whether it was good for anything, and why it
/// ended. `tenant` is the attempt that the slot has from before, and that it has afterwards.
pub(crate) async fn serve<L: Link, E: Executor>(
    link: &mut L,
    serving: &Serving<'_, E>,
    tenant: &mut Option<Attempt>,
) -> (bool, Broken) {
    let mut conversation = Conversation {
        link,
        serving,
        session: WorkerSession::new(serving.query),
        pings: Pings::default(),
        proved: false,
        closed: false,
        crossing: None,
        barrier: None,
        greeting: false,
        owed: 0,
    };
    let broken = match conversation.converse(tenant).await {
        Ok(never) => match never {},
        Err(broken) => broken,
    };
    conversation.link.close(broken.closing()).await;
    if let Some(attempt) = tenant {
        attempt.suspend(conversation.session.suspend());
    }
    (conversation.proved, broken)
}

/// What a lease asks for.
enum Work {
    CarryOut(Box<Lease>),
    Refuse(LeaseKey, String),
}

struct Conversation<'a, L, E> {
    link: &'a mut L,
    serving: &'a Serving<'a, E>,
    session: WorkerSession,
    pings: Pings,
    proved: bool,
    /// The Close frame is sent: nothing else can be.
    closed: bool,
    /// Until when a lease may still come that the Gate sent without knowing of the drain.
    crossing: Option<Instant>,
    /// The ping whose pong says that no lease is under way, and how long it is waited for.
    barrier: Option<(u64, Instant)>,
    /// An attach waits for its answer: no pong before that.
    greeting: bool,
    /// The number of the last ping of the Gate.
    owed: u64,
}

impl<L: Link, E: Executor> Conversation<'_, L, E> {
    async fn converse(&mut self, tenant: &mut Option<Attempt>) -> Result<Infallible, Broken> {
        let mut work = self.resume(tenant).await?;
        loop {
            let next = match work.take() {
                Some(next) => next,
                None => self.idle().await?,
            };
            match next {
                Work::CarryOut(lease) if self.drains() => self.hand_back(&lease.lease).await?,
                Work::CarryOut(lease) => self.carry_out(*lease, tenant).await?,
                Work::Refuse(key, reason) => self.refuse(&key, &reason).await?,
            }
        }
    }

    fn drains(&self) -> bool {
        self.serving.stop.drain.is_cancelled()
    }
}

#[cfg(test)]
mod tests;
