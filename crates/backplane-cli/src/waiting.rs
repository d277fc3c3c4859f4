//! A sign of life while a registry is waited for.

use backplane_client::Cancel;
use cli_shell::{Progress, Ui};

/// Turns a spinner whenever the transport asks whether it shall go on.
pub(crate) struct Waiting(Progress);

impl Waiting {
    pub(crate) fn new(ui: &Ui, label: impl Into<String>) -> Self {
        Self(ui.progress(label, None))
    }
}

impl Cancel for Waiting {
    fn is_cancelled(&self) -> bool {
        self.0.tick();
        // An interrupt ends the program itself; nothing is half done by that.
        false
    }
}
