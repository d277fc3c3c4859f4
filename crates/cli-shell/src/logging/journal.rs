//! Lines for the journal of systemd: the level in front, in the syntax of sd-daemon(3).

use std::fmt;
use std::os::fd::AsFd;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::env;

/// Device and inode of the stream that the journal reads.
const VARIABLE: &str = "JOURNAL_STREAM";

/// Whether the journal reads standard error: the variable is inherited, also by a program whose
/// standard error goes elsewhere.
pub(super) fn receives_stderr() -> bool {
    let named = env::var(VARIABLE).ok().flatten().unwrap_or_default();
    receives(&named, std::io::stderr())
}

fn receives(named: &str, stream: impl AsFd) -> bool {
    rustix::fs::fstat(stream)
        .is_ok_and(|found| format!("{}:{}", found.st_dev, found.st_ino) == named)
}

/// Writes the level, then what another format makes of the event.
pub(super) struct Leveled<F>(pub(super) F);

impl<S, N, F> FormatEvent<S, N> for Leveled<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        writer.write_str(level(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        _ => "<7>",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stream_itself_is_the_journals() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| fs_err::File::create(folder.path().join(name)).unwrap();
        let (ours, other) = (file("a"), file("b"));
        let found = rustix::fs::fstat(&ours).unwrap();
        let named = format!("{}:{}", found.st_dev, found.st_ino);
        assert!(receives(&named, ours.file()));
        assert!(!receives(&named, other.file()));
        for broken in ["", ":", "1", "x:y"] {
            assert!(!receives(broken, ours.file()), "{broken}");
        }
    }
}
