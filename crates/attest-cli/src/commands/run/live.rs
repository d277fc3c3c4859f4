//! What is seen of a run while it goes on: each line of output with the step's name in front.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use attest_engine::output::{Observer, Stream};
use attest_receipt::receipt::StepResult;
use cli_shell::logging::Verbosity;
use cli_shell::{CliError, Progress, Ui, visible, visible_lines};

use crate::commands::aside::{Queue, Turn};
use crate::commands::through::Aside;

/// A longer line is shown in pieces.
const LINE: usize = 8 * 1024;
/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(120);

/// Does the work while what is seen of it is shown on standard error.
pub(super) fn watch<R>(
    ui: &Ui,
    work: impl FnOnce(&Watching) -> Result<R, CliError>,
) -> Result<R, CliError> {
    let queue = Arc::<Queue<Event>>::default();
    let mut live = Live::new(ui);
    let show = move |turn| {
        match turn {
            Turn::Show(event) => live.show(event),
            Turn::Idle => live.progress.tick(),
        }
        // With standard error closed the run goes on, unseen.
        ControlFlow::Continue(())
    };
    let watching = Watching(Arc::clone(&queue), ui.verbosity());
    queue.shown(TURN, show, || work(&watching))
}

enum Event {
    Started(String),
    Output(String, Stream, Vec<u8>),
    Ended { step: String, cached: bool },
    Warning(String),
    Waiting(String),
    Aside(String),
}

/// Shows a run on standard error.
struct Live<'a> {
    ui: &'a Ui,
    progress: Progress,
    running: BTreeSet<String>,
    /// Lines that have not ended.
    open: BTreeMap<(String, Stream), Vec<u8>>,
}

impl<'a> Live<'a> {
    fn new(ui: &'a Ui) -> Self {
        Self {
            ui,
            progress: ui.progress("starting", None),
            running: BTreeSet::new(),
            open: BTreeMap::new(),
        }
    }

    fn show(&mut self, event: Event) {
        match event {
            Event::Started(step) => {
                self.running.insert(step);
                self.label();
            }
            Event::Output(step, stream, bytes) => self.output(step, stream, &bytes),
            Event::Ended { step, cached } => {
                self.end(&step);
                if cached {
                    let step = visible(&step);
                    let said = format_args!("[{step}] unchanged, taken from the cache");
                    self.ui.status(said);
                }
            }
            Event::Warning(message) => self.ui.warn(visible(&message)),
            Event::Waiting(message) => self.ui.status(visible(&message)),
            Event::Aside(line) => self.ui.status(line),
        }
    }

    fn line(&self, step: &str, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = visible_lines(&String::from_utf8_lossy(line));
        self.ui.status(format_args!("[{}] {text}", visible(step)));
    }

    fn label(&self) {
        let names: Vec<_> = self.running.iter().map(|name| visible(name)).collect();
        self.progress.label(match names.as_slice() {
            [] => "finishing".to_owned(),
            names => format!("running {}", names.join(", ")),
        });
    }

    fn output(&mut self, step: String, stream: Stream, bytes: &[u8]) {
        let key = (step, stream);
        let mut open = self.open.remove(&key).unwrap_or_default();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            open.extend_from_slice(piece);
            if open.last() == Some(&b'\n') {
                open.pop();
                self.line(&key.0, &open);
                open.clear();
            }
            while open.len() > LINE {
                let rest = open.split_off(LINE);
                self.line(&key.0, &open);
                open = rest;
            }
        }
        self.open.insert(key, open);
    }

    fn end(&mut self, step: &str) {
        for stream in [Stream::Out, Stream::Err] {
            let rest = self.open.remove(&(step.to_owned(), stream));
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                self.line(step, &rest);
            }
        }
        self.running.remove(step);
        self.label();
    }
}

/// Hands everything on to be shown.
pub(super) struct Watching(Arc<Queue<Event>>, Verbosity);

impl Watching {
    /// Returns what takes lines that are no step's.
    pub(super) fn asides(&self) -> Aside {
        let queue = Arc::clone(&self.0);
        Arc::new(move |line: String| {
            let bytes = line.len();
            queue.put(Event::Aside(line), bytes);
        })
    }

    fn tell(&self, event: Event) {
        let bytes = match &event {
            Event::Output(_, _, bytes) => bytes.len(),
            Event::Started(text)
            | Event::Ended { step: text, .. }
            | Event::Warning(text)
            | Event::Waiting(text)
            | Event::Aside(text) => text.len(),
        };
        self.0.put(event, bytes);
    }
}

impl Observer for Watching {
    fn started(&self, step: &str) {
        self.tell(Event::Started(step.to_owned()));
    }

    fn output(&self, step: &str, stream: Stream, bytes: &[u8]) {
        if self.1 != Verbosity::Quiet {
            self.tell(Event::Output(step.to_owned(), stream, bytes.to_vec()));
        }
    }

    fn ended(&self, result: &StepResult) {
        self.tell(Event::Ended {
            step: result.name.clone(),
            cached: result.cache_hit,
        });
    }

    fn warning(&self, message: &str) {
        self.tell(Event::Warning(message.to_owned()));
    }

    fn waiting(&self, message: &str) {
        self.tell(Event::Waiting(message.to_owned()));
    }

    fn room(&self, _: Stream) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.0.room()
    }
}
