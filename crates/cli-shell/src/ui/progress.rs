//! Progress on a terminal, for work that takes longer than a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar appears only when the work takes longer than this.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// A progress bar, or nothing where none is wanted; it disappears when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: Option<Bar>,
}

impl Progress {
    /// A bar, or a spinner where the length is unknown, that comes when it is due.
    pub(super) fn shown_on(bars: &MultiProgress, label: String, length: Option<u64>) -> Self {
        let bar = match length {
            Some(length) => {
                ProgressBar::new(length).with_style(style("{msg} [{bar:30}] {pos}/{len} {elapsed}"))
            }
            None => ProgressBar::new_spinner().with_style(style("{spinner} {msg} {elapsed}")),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        bar.set_message(label);
        Self {
            bar: Some(Bar {
                bar,
                bars: bars.clone(),
                started: crate::clock::instant(),
                shown: AtomicBool::new(false),
            }),
        }
    }

    /// Nothing on the screen.
    pub(super) fn none() -> Self {
        Self { bar: None }
    }

    /// Moves the bar on.
    pub fn advance(&self, by: u64) {
        if let Some(bar) = &self.bar {
            bar.show_when_due();
            bar.bar.inc(by);
        }
    }

    /// Changes the text beside the bar.
    pub fn label(&self, label: impl Into<String>) {
        if let Some(bar) = &self.bar {
            bar.bar.set_message(label.into());
            bar.show_when_due();
        }
    }

    /// Keeps a spinner turning; call it a few times a second.
    pub fn tick(&self) {
        if let Some(bar) = &self.bar {
            bar.show_when_due();
            bar.bar.tick();
        }
    }
}

#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    bars: MultiProgress,
    started: Instant,
    shown: AtomicBool,
}

impl Bar {
    fn show_when_due(&self) {
        if self.started.elapsed() >= PROGRESS_AFTER && !self.shown.swap(true, Ordering::Relaxed) {
            drop(self.bars.add(self.bar.clone()));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
