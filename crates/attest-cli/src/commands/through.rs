//! What a command writes goes on to this program's own outputs, unchanged.

use std::io::{self, Write};

use attest_engine::output::{Observer, Stream};
use cli_shell::{Ui, visible};

/// Passes on what a command writes as it comes.
pub(crate) struct Through<'a> {
    ui: &'a Ui,
}

impl<'a> Through<'a> {
    pub(crate) fn new(ui: &'a Ui) -> Self {
        Self { ui }
    }
}

impl Observer for Through<'_> {
    fn output(&self, _step: &str, stream: Stream, bytes: &[u8]) {
        // A reader that went away is no reason to end the command, which may do more than write.
        drop(match stream {
            Stream::Out => io::stdout()
                .write_all(bytes)
                .and_then(|()| io::stdout().flush()),
            Stream::Err => io::stderr().write_all(bytes),
        });
    }

    fn warning(&self, message: &str) {
        self.ui.warn(visible(message));
    }

    fn waiting(&self, message: &str) {
        self.ui.status(visible(message));
    }
}
