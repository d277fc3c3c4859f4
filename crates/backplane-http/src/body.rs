//! A body on its way out, in pieces, so that silence and slowness can be told apart.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::Body;
use tokio_util::bytes::Bytes;

use crate::clock::Clock;

/// How much is handed over at once.
const PIECE: usize = 64 * 1024;

/// When something was last sent or heard.
#[derive(Debug, Clone)]
pub(crate) struct Pulse {
    clock: Arc<dyn Clock>,
    last: Arc<AtomicU64>,
}

impl Pulse {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let last = Arc::new(AtomicU64::new(0));
        let pulse = Self { clock, last };
        pulse.beat();
        pulse
    }

    /// Notes that something was sent or heard.
    pub(crate) fn beat(&self) {
        let now = u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Release);
    }

    /// Returns once there was silence for so long.
    pub(crate) async fn silence(&self, idle: Duration) {
        loop {
            let last = Duration::from_nanos(self.last.load(Ordering::Acquire));
            let due = last.saturating_add(idle);
            if self.clock.now() >= due {
                return;
            }
            self.clock.wait(due).await;
        }
    }
}

/// Makes a body of bytes, which are shared and not copied.
pub(crate) fn outgoing(bytes: Bytes, pulse: Pulse) -> Body {
    let pieces = stream::unfold(bytes, |mut left| async move {
        let piece = left.split_to(left.len().min(PIECE));
        (!piece.is_empty()).then_some((piece, left))
    });
    Body::wrap_stream(pieces.map(move |piece| {
        pulse.beat();
        Ok::<_, Infallible>(piece)
    }))
}
