//! What is seen of a run while it goes on: each line of output with the step's name in front.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use attest_engine::output::{Observer, Stream};
use attest_receipt::receipt::StepResult;
use cli_shell::logging::Verbosity;
use cli_shell::{Progress, Ui, visible, visible_lines};

/// A longer line is shown in pieces.
const LINE: usize = 8 * 1024;

/// Shows a run on standard error.
pub(crate) struct Live<'a> {
    ui: &'a Ui,
    progress: Progress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: BTreeSet<String>,
    /// Lines that have not ended.
    open: BTreeMap<(String, Stream), Vec<u8>>,
}

impl<'a> Live<'a> {
    pub(crate) fn new(ui: &'a Ui) -> Self {
        Self {
            ui,
            progress: ui.progress("starting", None),
            state: Mutex::default(),
        }
    }

    /// Keeps the spinner turning.
    pub(crate) fn tick(&self) {
        self.progress.tick();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, step: &str, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = visible_lines(&String::from_utf8_lossy(line));
        self.ui.status(format_args!("[{}] {text}", visible(step)));
    }

    fn label(&self, running: &BTreeSet<String>) {
        let names: Vec<_> = running.iter().map(|name| visible(name)).collect();
        self.progress.label(match names.as_slice() {
            [] => "finishing".to_owned(),
            names => format!("running {}", names.join(", ")),
        });
    }

    fn end(&self, step: &str) {
        let mut state = self.state();
        for stream in [Stream::Out, Stream::Err] {
            let rest = state.open.remove(&(step.to_owned(), stream));
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                self.show(step, &rest);
            }
        }
        state.running.remove(step);
        self.label(&state.running);
    }
}

impl Observer for Live<'_> {
    fn started(&self, step: &str) {
        let mut state = self.state();
        state.running.insert(step.to_owned());
        self.label(&state.running);
    }

    fn output(&self, step: &str, stream: Stream, bytes: &[u8]) {
        if self.ui.verbosity() == Verbosity::Quiet {
            return;
        }
        let mut state = self.state();
        let open = state.open.entry((step.to_owned(), stream)).or_default();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            open.extend_from_slice(piece);
            if open.last() == Some(&b'\n') {
                open.pop();
                self.show(step, open);
                open.clear();
            }
            while open.len() > LINE {
                let rest = open.split_off(LINE);
                self.show(step, open);
                *open = rest;
            }
        }
    }

    fn ended(&self, result: &StepResult) {
        self.end(&result.name);
        if result.cache_hit {
            let step = visible(&result.name);
            self.ui
                .status(format_args!("[{step}] unchanged, taken from the cache"));
        }
    }

    fn warning(&self, message: &str) {
        self.ui.warn(visible(message));
    }

    fn waiting(&self, message: &str) {
        self.ui.status(visible(message));
    }
}
