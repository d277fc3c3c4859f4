//! The only printer: data on standard output, talk on standard error.
//!
//! Text from elsewhere (instructions, reports, plugin output) goes through [`crate::visible`]
//! before it comes here; messages of errors do so here, since they may quote anything.

mod progress;

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstyle::{AnsiColor, Style};
use indicatif::{MultiProgress, ProgressDrawTarget};
use serde::Serialize;

use crate::error::CliError;
use crate::logging::Verbosity;
use crate::options::{Color, Format, GlobalOpts};
use crate::{layout, visible, visible_json, visible_lines};

pub use progress::Progress;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// Where a program writes, and how much and how colourful.
pub struct Ui {
    format: Format,
    verbosity: Verbosity,
    out: Stream,
    err: Stream,
    bars: MultiProgress,
    progress: bool,
    terminal: bool,
    /// Whether talk is broken into lines: for a terminal, never for a program that reads it.
    wraps: bool,
}

impl Ui {
    /// Writes to the process's own streams as the options say.
    #[must_use]
    pub fn new(options: &GlobalOpts) -> Self {
        let terminal = io::IsTerminal::is_terminal(&io::stderr());
        Self {
            format: options.format,
            verbosity: options.verbosity(),
            out: Stream::new(
                Box::new(io::stdout()),
                colored(options.color, anstream::AutoStream::choice(&io::stdout())),
            ),
            err: Stream::new(
                Box::new(io::stderr()),
                colored(options.color, anstream::AutoStream::choice(&io::stderr())),
            ),
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
            progress: terminal && !options.no_progress && !options.quiet,
            terminal: io::IsTerminal::is_terminal(&io::stdout()),
            wraps: terminal,
        }
    }

    /// Writes into memory, without colour; for tests.
    #[must_use]
    pub fn captured(options: &GlobalOpts) -> (Self, Captured) {
        let captured = Captured::default();
        let ui = Self {
            format: options.format,
            verbosity: options.verbosity(),
            out: Stream::new(Box::new(Shared(Arc::clone(&captured.out))), false),
            err: Stream::new(Box::new(Shared(Arc::clone(&captured.err))), false),
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
            progress: false,
            terminal: false,
            wraps: false,
        };
        (ui, captured)
    }

    /// Returns whether data goes to a terminal, where foreign text is shown and not obeyed; a
    /// program that reads it gets it unchanged.
    #[must_use]
    pub const fn writes_to_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns the chosen output format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns how much is said.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Writes one line of data.
    ///
    /// # Errors
    /// Standard output cannot be written; a reader that went away is the quiet kind.
    pub fn data(&self, line: impl fmt::Display) -> Result<(), CliError> {
        self.write_out(format!("{line}\n").as_bytes())
    }

    /// Writes data as it is, without adding a line feed.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn raw(&self, bytes: &[u8]) -> Result<(), CliError> {
        self.write_out(bytes)
    }

    /// Writes one JSON record on a line of its own, with escapes for what no terminal should obey.
    ///
    /// # Errors
    /// As [`Ui::data`], or the value has no JSON form.
    pub fn json<T: Serialize + ?Sized>(&self, record: &T) -> Result<(), CliError> {
        let line = serde_json::to_string(record)
            .map_err(|error| CliError::operation(error).because("cannot write a JSON record"))?;
        self.json_line(&line)
    }

    /// Does the same with a record that is JSON already.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn json_line(&self, record: &str) -> Result<(), CliError> {
        let mut line = visible_json(record);
        line.push('\n');
        self.write_out(line.as_bytes())
    }

    /// Writes a record in the chosen format: as JSON, or as the lines that `human` makes of it.
    ///
    /// # Errors
    /// As [`Ui::json`].
    pub fn record<T: Serialize + ?Sized>(
        &self,
        record: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<(), CliError> {
        match self.format {
            Format::Json => self.json(record),
            Format::Human => {
                let mut text = human(record);
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                self.write_out(text.as_bytes())
            }
        }
    }

    /// Says what is going on; silent with `--quiet`.
    pub fn status(&self, message: impl fmt::Display) {
        if self.verbosity != Verbosity::Quiet {
            self.say(&format!("{message}\n"));
        }
    }

    /// Says a detail; only with `--verbose`.
    pub fn detail(&self, message: impl fmt::Display) {
        if self.verbosity >= Verbosity::Verbose {
            self.say(&format!("{message}\n"));
        }
    }

    /// Warns.
    pub fn warn(&self, message: impl fmt::Display) {
        self.say(&self.labelled(Some(WARNING), "warning:", &message.to_string()));
    }

    /// Says what the user can do.
    pub fn hint(&self, message: impl fmt::Display) {
        self.say(&self.labelled(Some(HINT), "hint:", &message.to_string()));
    }

    /// Prints an error with its causes and hints.
    pub fn error(&self, error: &CliError) {
        let mut text = String::new();
        for (index, message) in error.messages().iter().enumerate() {
            let (style, label) = match index {
                0 => (Some(ERROR), "error:"),
                _ => (None, "  because:"),
            };
            text.push_str(&self.labelled(style, label, &visible_lines(message)));
        }
        for hint in error.hints() {
            text.push_str(&self.labelled(Some(HINT), "hint:", &visible(hint)));
        }
        self.say(&text);
    }

    /// A message behind a label, in lines that fit if somebody looks at them.
    fn labelled(&self, style: Option<Style>, label: &str, message: &str) -> String {
        let mut text = format!("{label} {message}\n");
        if self.wraps {
            let lead = label.len() - label.trim_start().len();
            text = fitted(&text, &" ".repeat(lead + 2));
        }
        match (style, text.strip_prefix(label)) {
            (Some(style), Some(rest)) => format!("{}{rest}", self.err.paint(style, label)),
            _ => text,
        }
    }

    /// Returns the text as a heading for standard output.
    #[must_use]
    pub fn heading(&self, text: &str) -> String {
        self.out.paint(HEADING, text)
    }

    /// Returns the text marked as good news for standard output.
    #[must_use]
    pub fn good(&self, text: &str) -> String {
        self.out.paint(GOOD, text)
    }

    /// Returns the text marked as bad news for standard output.
    #[must_use]
    pub fn bad(&self, text: &str) -> String {
        self.out.paint(BAD, text)
    }

    /// Returns the text marked as less important for standard output.
    #[must_use]
    pub fn faint(&self, text: &str) -> String {
        self.out.paint(FAINT, text)
    }

    /// Starts a progress bar on standard error, or a spinner where the length is unknown.
    ///
    /// It shows only on a terminal and only when the work takes longer than a second.
    #[must_use]
    pub fn progress(&self, label: impl Into<String>, length: Option<u64>) -> Progress {
        if self.progress {
            Progress::shown_on(&self.bars, label.into(), length)
        } else {
            Progress::none()
        }
    }

    fn write_out(&self, bytes: &[u8]) -> Result<(), CliError> {
        self.bars
            .suspend(|| self.out.write(bytes))
            .map_err(CliError::output)
    }

    /// Writes to standard error; when that fails there is nowhere left to say so.
    fn say(&self, text: &str) {
        drop(self.bars.suspend(|| self.err.write(text.as_bytes())));
    }
}

impl fmt::Debug for Ui {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Ui")
            .field("format", &self.format)
            .field("verbosity", &self.verbosity)
            .finish_non_exhaustive()
    }
}

/// What a [`Ui`] for tests has written so far.
#[derive(Debug, Clone, Default)]
pub struct Captured {
    out: Arc<Mutex<Vec<u8>>>,
    err: Arc<Mutex<Vec<u8>>>,
}

impl Captured {
    /// Returns what went to standard output.
    #[must_use]
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&lock(&self.out)).into_owned()
    }

    /// Returns what went to standard error.
    #[must_use]
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&lock(&self.err)).into_owned()
    }
}

/// Prints an error for a program that has no [`Ui`] at hand.
pub(crate) fn report(error: &CliError) {
    Ui::new(&GlobalOpts::default()).error(error);
}

/// Breaks the lines that are too long for a terminal; the others may be laid out, and stay.
fn fitted(text: &str, indent: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.chars().nth(layout::WIDTH).is_none() {
            out.push_str(line);
            out.push('\n');
        } else {
            let spaces = line.len() - line.trim_start_matches(' ').len();
            let first = line.get(..spaces).unwrap_or_default();
            out.push_str(&layout::wrap_words(line, first, indent));
        }
    }
    out
}

fn colored(wish: Color, detected: anstream::ColorChoice) -> bool {
    match wish {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => detected != anstream::ColorChoice::Never,
    }
}

struct Stream {
    to: Mutex<Box<dyn Write + Send>>,
    color: bool,
}

impl Stream {
    fn new(to: Box<dyn Write + Send>, color: bool) -> Self {
        Self {
            to: Mutex::new(to),
            color,
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut to = lock(&self.to);
        to.write_all(bytes)?;
        to.flush()
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.color {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A panic of another holder leaves half a line at worst, which is no reason to stop printing.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(format: Format) -> GlobalOpts {
        GlobalOpts {
            format,
            ..GlobalOpts::default()
        }
    }

    #[test]
    fn data_and_talk_go_to_different_streams() {
        let (ui, captured) = Ui::captured(&options(Format::Human));
        ui.data("result").unwrap();
        ui.status("working");
        ui.warn("odd");
        ui.hint("try this");
        assert_eq!(captured.out(), "result\n");
        assert_eq!(captured.err(), "working\nwarning: odd\nhint: try this\n");
    }

    #[test]
    fn a_record_is_one_json_line_or_human_lines() {
        let record = serde_json::json!({"id": "a\nb"});
        let (ui, captured) = Ui::captured(&options(Format::Json));
        ui.record(&record, |_| "never".into()).unwrap();
        assert_eq!(captured.out(), "{\"id\":\"a\\nb\"}\n");
        let (ui, captured) = Ui::captured(&options(Format::Human));
        ui.record(&record, |_| "one\ntwo".into()).unwrap();
        assert_eq!(captured.out(), "one\ntwo\n");
    }

    #[test]
    fn quiet_keeps_warnings_and_errors() {
        let quiet = GlobalOpts {
            quiet: true,
            ..GlobalOpts::default()
        };
        let (ui, captured) = Ui::captured(&quiet);
        ui.status("working");
        ui.detail("detail");
        ui.warn("odd");
        assert_eq!(captured.err(), "warning: odd\n");
    }

    #[test]
    fn an_error_shows_causes_and_hints_and_no_control_characters() {
        let (ui, captured) = Ui::captured(&GlobalOpts::default());
        ui.error(
            &CliError::operation("refused \u{1b}[31mred\u{202e}")
                .because("cannot reach `x`")
                .hint("start it"),
        );
        let text = captured.err();
        assert!(
            text.starts_with("error: cannot reach `x`\n  because: refused "),
            "{text}"
        );
        assert!(text.ends_with("hint: start it\n"), "{text}");
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text}"
        );
    }

    #[test]
    fn talk_fits_a_terminal_and_is_one_line_for_a_program() {
        let error = || {
            CliError::operation("word ".repeat(30))
                .because(format!("cannot read `{}`", "/x".repeat(60)))
                .hint("do ".repeat(40))
        };
        let (mut ui, captured) = Ui::captured(&GlobalOpts::default());
        ui.error(&error());
        assert_eq!(captured.err().lines().count(), 3);
        ui.wraps = true;
        let before = captured.err().len();
        ui.error(&error());
        ui.warn("odd ".repeat(40) + "\n    |    ^ here");
        let text = captured.err().split_off(before);
        let long: Vec<&str> = text.lines().filter(|line| line.len() > 80).collect();
        assert_eq!(long, [format!("  `{}`", "/x".repeat(60))], "{text}");
        assert!(text.starts_with("error: cannot read\n"), "{text}");
        assert!(text.contains("\n  because: word word"), "{text}");
        assert!(text.contains("\n    word word"), "{text}");
        assert!(text.contains("\nwarning: odd odd"), "{text}");
        assert!(text.ends_with(" odd\n    |    ^ here\n"), "{text}");
        assert_eq!(text.matches("do").count(), 40, "{text}");
        ui.err.color = true;
        ui.hint("x");
        assert!(
            captured
                .err()
                .ends_with("\u{1b}[1m\u{1b}[36mhint:\u{1b}[0m x\n")
        );
    }

    #[test]
    fn json_holds_nothing_that_a_terminal_obeys() {
        let (ui, captured) = Ui::captured(&options(Format::Json));
        ui.json(&serde_json::json!({"id": "a\u{9b}\u{202e}"}))
            .unwrap();
        ui.json_line("[\"\u{7f}\"]").unwrap();
        assert_eq!(
            captured.out(),
            "{\"id\":\"a\\u009b\\u202e\"}\n[\"\\u007f\"]\n"
        );
    }

    #[test]
    fn a_reader_that_went_away_is_the_quiet_kind() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (mut ui, _) = Ui::captured(&GlobalOpts::default());
        ui.out = Stream::new(Box::new(Gone), false);
        let error = ui.data("x").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::BrokenPipe);
    }

    #[test]
    fn colours_only_where_wanted() {
        assert!(colored(Color::Always, anstream::ColorChoice::Never));
        assert!(!colored(Color::Never, anstream::ColorChoice::Always));
        assert!(!colored(Color::Auto, anstream::ColorChoice::Never));
        let stream = Stream::new(Box::new(io::sink()), true);
        assert_eq!(stream.paint(HEADING, "x"), "\u{1b}[1mx\u{1b}[0m");
    }
}
