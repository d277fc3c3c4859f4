//! A host and a plugin in memory: random operations, capabilities, chunks and moments of events,
//! under a clock that the test moves.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use forge_plugin_protocol::{
    Capability, Conclusion, FailureCategory, HostEvent, HostSession, Operation, Outcome,
    PluginEvent, PluginExit, PluginSession, Progress, Report, Stage,
};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

use crate::support::{ID, epoch};

/// What the handler of the plugin does.
#[derive(Debug, Clone)]
struct Script {
    progress: Vec<(Stage, String)>,
    ending: Ending,
    obeys_cancel: bool,
}

#[derive(Debug, Clone)]
enum Ending {
    Succeed(Outcome),
    Fail(FailureCategory),
}

/// Both ends, the bytes under way, and what the test has seen.
struct Pair {
    host: HostSession,
    plugin: PluginSession,
    script: VecDeque<Step>,
    obeys_cancel: bool,
    ending: Ending,
    to_plugin: VecDeque<u8>,
    to_host: VecDeque<u8>,
    stdin_closed: bool,
    running: bool,
    cancels_sent: usize,
    progress_seen: Vec<Progress>,
    now: Instant,
    cancelled: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Progress(Stage, String),
    End,
}

impl Pair {
    fn new(
        operation: Operation,
        offer: &[Capability],
        supported: &[Capability],
        script: Script,
    ) -> Self {
        let mut steps: VecDeque<Step> = script
            .progress
            .into_iter()
            .map(|(stage, text)| Step::Progress(stage, text))
            .collect();
        steps.push_back(Step::End);
        Self {
            host: HostSession::new(ID.parse().unwrap(), operation, offer).unwrap(),
            plugin: PluginSession::new(supported).unwrap(),
            script: steps,
            obeys_cancel: script.obeys_cancel,
            ending: script.ending,
            to_plugin: VecDeque::new(),
            to_host: VecDeque::new(),
            stdin_closed: false,
            running: false,
            cancels_sent: 0,
            progress_seen: Vec::new(),
            now: epoch(),
            cancelled: false,
        }
    }

    /// Does one of the things that may happen now; `choice` and `chunk` decide which and how much.
    fn step(&mut self, choice: Index, chunk: Index) {
        self.flush();
        match choice.index(3) {
            0 if !self.to_plugin.is_empty() => {
                let size = 1 + chunk.index(self.to_plugin.len());
                let bytes: Vec<u8> = self.to_plugin.drain(..size).collect();
                self.plugin.receive(&bytes).unwrap();
            }
            1 if !self.to_host.is_empty() => {
                let size = 1 + chunk.index(self.to_host.len());
                let bytes: Vec<u8> = self.to_host.drain(..size).collect();
                self.host.receive(self.now, &bytes);
            }
            2 if self.running => self.work(),
            _ => {}
        }
        self.now += Duration::from_millis(1);
        self.react();
    }

    fn cancel(&mut self) {
        self.flush();
        self.host.cancel(self.now);
        self.cancelled = true;
        self.react();
    }

    fn flush(&mut self) {
        while let Some(bytes) = self.host.poll_transmit() {
            self.cancels_sent += usize::from(bytes.ends_with(b"\"type\":\"cancel\"}\n"));
            self.to_plugin.extend(bytes);
        }
        while let Some(bytes) = self.plugin.poll_transmit() {
            self.to_host.extend(bytes);
        }
    }

    /// Lets the handler do its next step.
    fn work(&mut self) {
        match self.script.pop_front() {
            Some(Step::Progress(stage, text)) => {
                let _dropped_without_the_capability =
                    self.plugin.progress(stage, text.parse().unwrap());
            }
            Some(Step::End) => {
                let sent = match &self.ending {
                    Ending::Succeed(outcome) => self.plugin.succeed(outcome),
                    Ending::Fail(category) => self.plugin.fail(*category),
                };
                if sent.is_err() {
                    self.plugin.fail(FailureCategory::ExecutionFailed).unwrap();
                }
                self.running = false;
            }
            None => {}
        }
    }

    fn react(&mut self) {
        while let Some(event) = self.plugin.poll_event() {
            match event {
                PluginEvent::Execute(_) => self.running = true,
                PluginEvent::Cancel if self.running && self.obeys_cancel => {
                    self.plugin.fail(FailureCategory::Cancelled).unwrap();
                    self.running = false;
                }
                PluginEvent::Cancel | PluginEvent::InputClosed => {}
            }
        }
        while let Some(event) = self.host.poll_event() {
            match event {
                HostEvent::Progress(progress) => self.progress_seen.push(progress),
                HostEvent::CloseStdin => self.stdin_closed = true,
                HostEvent::Initialized(_) | HostEvent::Finished { .. } => {}
            }
        }
        self.flush();
    }

    /// Delivers what is left, ends the plugin, and takes the verdict.
    fn finish(mut self) -> (Conclusion, usize, Vec<Progress>) {
        while !self.host.is_finished() && !self.stdin_closed {
            let before = (self.to_plugin.len(), self.to_host.len(), self.script.len());
            for choice in 0..3 {
                self.step_exactly(choice);
            }
            let idle = before == (self.to_plugin.len(), self.to_host.len(), self.script.len());
            if idle && !self.running {
                break;
            }
        }
        if self.stdin_closed {
            self.plugin.input_closed().unwrap();
            assert!(
                self.to_host.is_empty() || self.cancelled,
                "nothing follows the terminal frame"
            );
            self.host.stdout_closed(self.now);
            self.host.exited(self.now, PluginExit::Success);
        } else if let Some(deadline) = self.host.poll_timeout() {
            self.host.handle_timeout(deadline);
        }
        assert!(self.host.is_finished());
        (self.host.conclude(), self.cancels_sent, self.progress_seen)
    }

    fn step_exactly(&mut self, choice: usize) {
        self.flush();
        match choice {
            0 => {
                let bytes: Vec<u8> = self.to_plugin.drain(..).collect();
                self.plugin.receive(&bytes).unwrap();
            }
            1 => {
                let bytes: Vec<u8> = self.to_host.drain(..).collect();
                self.host.receive(self.now, &bytes);
            }
            _ if self.running => self.work(),
            _ => {}
        }
        self.react();
    }
}

fn any_features() -> impl Strategy<Value = Vec<Capability>> {
    let features = vec![
        Capability::Progress,
        Capability::Cancel,
        Capability::CommitSubject,
        Capability::AgentReport,
    ];
    subsequence(features, 0..=4).prop_shuffle()
}

fn any_line(bytes: usize) -> impl Strategy<Value = String> {
    prop::collection::vec("[!-~é€😀]", 1..=8).prop_map(move |parts| {
        let mut line = parts.concat();
        while line.len() > bytes {
            line.pop();
        }
        line
    })
}

fn any_outcome(edit: bool) -> BoxedStrategy<Outcome> {
    if !edit {
        let text = prop_oneof![any::<String>(), Just("<&>\u{2028}".repeat(1_000))];
        return text
            .prop_map(|text| Outcome::Text(text.parse().unwrap()))
            .boxed();
    }
    let report = (any_line(1024), prop::collection::vec(any_line(256), 1..=12))
        .prop_map(|(summary, changes)| Report::new(summary, changes).unwrap());
    (prop::option::of(any_line(256)), prop::option::of(report))
        .prop_map(|(subject, report)| {
            let subject = subject.map(|subject| subject.parse().unwrap());
            Outcome::Workspace { subject, report }
        })
        .boxed()
}

fn any_script(edit: bool) -> impl Strategy<Value = Script> {
    let ending = prop_oneof![
        3 => any_outcome(edit).prop_map(Ending::Succeed),
        1 => prop::sample::select(FailureCategory::ALL.to_vec()).prop_map(Ending::Fail),
    ];
    let progress = (prop::sample::select(Stage::ALL.to_vec()), "\\PC{0,16}");
    (
        prop::collection::vec(progress, 0..=130),
        ending,
        any::<bool>(),
    )
        .prop_map(|(progress, ending, obeys_cancel)| Script {
            progress,
            ending,
            obeys_cancel,
        })
}

#[derive(Debug)]
struct Case {
    edit: bool,
    offer: Vec<Capability>,
    supported: Vec<Capability>,
    script: Script,
    steps: Vec<(Index, Index)>,
    cancel_at: Option<usize>,
}

fn any_case() -> impl Strategy<Value = Case> {
    any::<bool>().prop_flat_map(|edit| {
        (
            any_features(),
            any_features(),
            any_script(edit),
            prop::collection::vec((any::<Index>(), any::<Index>()), 0..200),
            prop::option::of(0_usize..200),
        )
            .prop_map(
                move |(mut offer, mut supported, script, steps, cancel_at)| {
                    let operation = if edit {
                        Capability::WorkspaceEdit
                    } else {
                        Capability::Text
                    };
                    offer.push(operation);
                    supported.insert(0, operation);
                    Case {
                        edit,
                        offer,
                        supported,
                        script,
                        steps,
                        cancel_at,
                    }
                },
            )
    })
}

fn expected(case: &Case) -> Conclusion {
    let selected = |what| case.offer.contains(&what) && case.supported.contains(&what);
    match &case.script.ending {
        Ending::Fail(category) => Conclusion::Reported(*category),
        Ending::Succeed(Outcome::Workspace { subject, report })
            if (subject.is_some() && !selected(Capability::CommitSubject))
                || (report.is_some() && !selected(Capability::AgentReport)) =>
        {
            Conclusion::Reported(FailureCategory::ExecutionFailed)
        }
        Ending::Succeed(outcome) => Conclusion::Completed(outcome.clone()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn two_honest_sides_always_agree(case in any_case()) {
        let operation = if case.edit {
            Operation::workspace_edit("/w", "edit", Duration::from_secs(60)).unwrap()
        } else {
            Operation::text("hello").unwrap()
        };
        let mut pair = Pair::new(operation, &case.offer, &case.supported, case.script.clone());
        for (index, (choice, chunk)) in case.steps.iter().enumerate() {
            if case.cancel_at == Some(index) {
                pair.cancel();
            }
            pair.step(*choice, *chunk);
        }
        let cancelled = pair.cancelled;
        let (conclusion, cancels, progress) = pair.finish();

        let both = |what| case.offer.contains(&what) && case.supported.contains(&what);
        if cancelled {
            prop_assert_eq!(conclusion, Conclusion::Cancelled);
            prop_assert!(cancels <= usize::from(both(Capability::Cancel)));
        } else {
            prop_assert_eq!(conclusion, expected(&case));
            prop_assert_eq!(cancels, 0);
            let sent = if both(Capability::Progress) { case.script.progress.len().min(128) } else { 0 };
            prop_assert_eq!(progress.len(), sent);
        }
        for (index, (seen, said)) in progress.iter().zip(&case.script.progress).enumerate() {
            prop_assert_eq!(seen.sequence as usize, index + 1);
            prop_assert_eq!(seen.stage, said.0);
            prop_assert_eq!(seen.text.as_str(), said.1.as_str());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        forge_plugin_protocol::fuzz_entry::host(epoch(), &bytes);
        forge_plugin_protocol::fuzz_entry::plugin(&bytes);
    }
}
