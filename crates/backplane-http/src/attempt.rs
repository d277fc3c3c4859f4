//! One attempt under its limits of time.

use std::sync::Arc;
use std::time::Duration;

use backplane_client::{Answer, Fault, TransportError};
use reqwest::Client;

use crate::body::Pulse;
use crate::clock::Clock;
use crate::exchange::{Ask, Failed, exchange};
use crate::partial::Partial;

/// Makes one attempt within `time` and without a silence as long as `idle`.
pub(crate) async fn attempt(
    client: &Client,
    ask: &Ask,
    partial: &mut Partial,
    clock: &Arc<dyn Clock>,
    (time, idle): (Duration, Duration),
) -> Result<Answer, Failed> {
    let pulse = Pulse::new(Arc::clone(clock));
    let end = clock.now().saturating_add(time);
    let late = |message: String| Err(TransportError::new(Fault::TimedOut, message).into());
    tokio::select! {
        biased;
        answer = exchange(client, ask, partial, &pulse, clock.as_ref()) => answer,
        () = clock.wait(end) => late("the time for the whole request was up".to_owned()),
        () = pulse.silence(idle) => {
            late(format!("nothing was sent or heard for {} s", idle.as_secs_f32()))
        }
    }
}
