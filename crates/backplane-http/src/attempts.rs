//! A few attempts under one deadline, until somebody says stop. When and how often is decided by
//! [`backplane_client::Retry`].

use std::sync::Arc;

use backplane_client::{Answer, Failure, Fault, Next, Retry, RetryPolicy, TransportError};
use reqwest::Client;

use crate::attempt::attempt;
use crate::clock::Clock;
use crate::exchange::Ask;
use crate::options::Times;
use crate::partial::Partial;

/// Carries a request out; once `stop` is ready, nothing more is done for it.
pub(crate) async fn carry_out(
    client: &Client,
    ask: &Ask,
    partial: &mut Partial,
    clock: &Arc<dyn Clock>,
    times: &Times,
    stop: impl Future<Output = ()>,
) -> Result<Answer, TransportError> {
    tokio::select! {
        biased;
        () = stop => Err(cancelled()),
        answer = attempts(client, ask, partial, clock, times) => answer,
    }
}

pub(crate) fn cancelled() -> TransportError {
    TransportError::new(Fault::Cancelled, "cancelled")
}

async fn attempts(
    client: &Client,
    ask: &Ask,
    partial: &mut Partial,
    clock: &Arc<dyn Clock>,
    times: &Times,
) -> Result<Answer, TransportError> {
    let deadline = match ask.is_transfer() {
        true => times.transfer,
        false => times.total,
    };
    let policy = RetryPolicy {
        deadline,
        ..RetryPolicy::default()
    };
    let mut retry = Retry::new(policy, ask.method, clock.now());
    let mut last = Err(TransportError::new(Fault::TimedOut, "no time was left"));
    while let Some(next) = retry.attempt(clock.now()) {
        let limits = (next.time, times.idle);
        let outcome = attempt(client, ask, partial, clock, limits).await;
        let failure = match &outcome {
            Ok(answer) if answer.status < 400 => return outcome.map_err(|failed| failed.error),
            Ok(answer) => Failure::Status(answer.status, answer.retry_after),
            Err(failed) if failed.anew => Failure::Transport(Fault::Unreachable),
            Err(failed) => Failure::Transport(failed.error.fault()),
        };
        partial.broke();
        last = outcome.map_err(|failed| failed.error);
        match retry.failed(failure, clock.now()) {
            Next::WaitUntil(until) => clock.wait(until).await,
            Next::GiveUp(_) => return last,
        }
    }
    last
}
