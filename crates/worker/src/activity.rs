//! What a job may say of itself while it runs: that a stage has begun, nothing else.
//!
//! A job reports stages here; the session sends them if the lease selected live activity. No
//! text of a plugin, no name of a command and no time crosses this line: a stage is all there is
//! room for. The line closes with the execution.

use std::sync::{Arc, Mutex, PoisonError};

use forge_domain::{ActivityTrack, MAX_ACTIVITIES, Stage};
use tokio::sync::mpsc;

/// The end that a job holds; clones are the same end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reporter(Option<Arc<Line>>);

#[derive(Debug)]
struct Line {
    track: Mutex<ActivityTrack>,
    stages: mpsc::Sender<Stage>,
}

/// The end that a session reads.
#[derive(Debug)]
pub(crate) struct Stages(mpsc::Receiver<Stage>);

/// Makes a line for one execution.
pub(crate) fn line() -> (Reporter, Stages) {
    // Stages go strictly forward, so this many always fit.
    let (stages, received) = mpsc::channel(usize::from(MAX_ACTIVITIES));
    let line = Line {
        track: Mutex::default(),
        stages,
    };
    (Reporter(Some(Arc::new(line))), Stages(received))
}

impl Reporter {
    /// Says that a stage has begun. What is not later than the last stage is dropped.
    pub(crate) fn reached(&self, stage: Stage) {
        let Some(line) = &self.0 else { return };
        // Held while sending, so that stages arrive in their order.
        let mut track = line.track.lock().unwrap_or_else(PoisonError::into_inner);
        if track.advance(stage).is_some() {
            // A closed line means that nobody wants to know any more.
            line.stages.try_send(stage).ok();
        }
    }

    /// Says what the progress of a plugin means. Its last stage means nothing: the checks are
    /// still to come.
    pub(crate) fn plugin(&self, stage: forge_plugin_protocol::Stage) {
        match stage {
            forge_plugin_protocol::Stage::Started => self.reached(Stage::Analyzing),
            forge_plugin_protocol::Stage::Working => self.reached(Stage::Editing),
            forge_plugin_protocol::Stage::Finalizing => {}
        }
    }
}

impl Stages {
    /// The next stage; nothing when the job has let go of its end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Stage> {
        self.0.recv().await
    }
}

#[cfg(test)]
mod tests {
    use forge_plugin_protocol::Stage as Plugin;
    use proptest::prelude::*;

    use super::*;

    fn sent(mut stages: Stages) -> Vec<Stage> {
        std::iter::from_fn(|| stages.0.try_recv().ok()).collect()
    }

    #[test]
    fn started_is_analyzing_working_is_editing_and_finalizing_is_nothing() {
        for (plugin, stages) in [
            (Plugin::Started, vec![Stage::Analyzing]),
            (Plugin::Working, vec![Stage::Editing]),
            (Plugin::Finalizing, vec![]),
        ] {
            let (reporter, received) = line();
            reporter.plugin(plugin);
            assert_eq!(sent(received), stages, "{plugin:?}");
        }
    }

    #[test]
    fn a_line_that_nobody_reads_takes_everything() {
        let (reporter, received) = line();
        drop(received);
        reporter.plugin(Plugin::Started);
        Reporter::default().reached(Stage::Testing);
    }

    #[derive(Debug, Clone, Copy)]
    enum Said {
        Plugin(Plugin),
        Worker(Stage),
    }

    fn said() -> impl Strategy<Value = Said> {
        prop::sample::select(vec![
            Said::Plugin(Plugin::Started),
            Said::Plugin(Plugin::Working),
            Said::Plugin(Plugin::Finalizing),
            Said::Worker(Stage::Testing),
            Said::Worker(Stage::PreparingResult),
        ])
    }

    proptest! {
        /// Whatever a plugin says how often: at most four stages, each later than the last, and
        /// no plugin comes further than editing.
        #[test]
        fn what_is_sent_goes_strictly_forward(all in prop::collection::vec(said(), 0..140)) {
            let (reporter, received) = line();
            for said in &all {
                match said {
                    Said::Plugin(stage) => reporter.plugin(*stage),
                    Said::Worker(stage) => reporter.reached(*stage),
                }
            }
            let sent = sent(received);
            prop_assert!(sent.len() <= usize::from(MAX_ACTIVITIES));
            prop_assert!(sent.is_sorted_by(|a, b| a < b));
            let worker = all.iter().any(|said| matches!(said, Said::Worker(_)));
            prop_assert!(worker || sent.iter().all(|stage| *stage <= Stage::Editing));
        }
    }
}
