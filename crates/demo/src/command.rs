//! One command as a user types it: run under a wrapper, shown with its own words, judged.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use cli_shell::{Ui, env, visible, visible_lines};
use forge_client::wrap;
use process_tree::{Capture, CaptureError, Ladder, Signal, Spec, Status, Wrapper, capture};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::error::DemoError;
use crate::place::Place;

/// How long one command may take; each is done in a fraction of a second.
const LONGEST: Duration = Duration::from_secs(60);
const OUTPUT_BYTES: u64 = 1 << 20;
const INDENT: &str = "   ";
/// How much of a hash is shown; nobody reads the rest.
const HASH: usize = 12;

/// Where commands are typed.
#[derive(Debug)]
pub(crate) struct Shell<'a> {
    ui: &'a Ui,
    place: &'a Place,
    wrapper: &'a Wrapper,
    cancel: &'a CancellationToken,
    folder: &'a Path,
    variables: Vec<(&'static str, OsString)>,
    ran: Vec<Ran>,
}

/// A command that ran.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    line: String,
    status: Status,
    out: String,
    err: String,
}

impl<'a> Shell<'a> {
    pub(crate) fn new(
        ui: &'a Ui,
        place: &'a Place,
        wrapper: &'a Wrapper,
        cancel: &'a CancellationToken,
        folder: &'a Path,
    ) -> Self {
        Self {
            ui,
            place,
            wrapper,
            cancel,
            folder,
            variables: Vec::new(),
            ran: Vec::new(),
        }
    }

    /// Types `attest WORDS…`, which is this program under a hidden name.
    pub(crate) async fn attest(&mut self, words: &[&str]) -> Result<Ran, DemoError> {
        let mut argv = vec![self.place.program.clone().into(), "__attest".into()];
        argv.extend(words.iter().map(OsString::from));
        self.run(format!("attest {}", words.join(" ")), argv).await
    }

    /// Types `backplane WORDS…`, which is this program under a hidden name.
    pub(crate) async fn backplane(&mut self, words: &[&str]) -> Result<Ran, DemoError> {
        let mut argv = vec![self.place.program.clone().into(), "__backplane".into()];
        argv.extend(words.iter().map(OsString::from));
        self.run(format!("backplane {}", words.join(" ")), argv)
            .await
    }

    /// Sets a variable for the commands that follow, and shows that.
    pub(crate) fn export(&mut self, name: &'static str, value: &str) {
        self.ui.status(format!("{INDENT}$ export {name}={value}"));
        self.variables.retain(|(other, _)| *other != name);
        self.variables.push((name, value.into()));
    }

    /// Types a line of shell.
    pub(crate) async fn sh(&mut self, line: &str) -> Result<Ran, DemoError> {
        let argv = ["sh", "-c", line].map(OsString::from).to_vec();
        self.run(line.to_owned(), argv).await
    }

    pub(crate) fn into_ran(self) -> Vec<Ran> {
        self.ran
    }

    async fn run(&mut self, line: String, argv: Vec<OsString>) -> Result<Ran, DemoError> {
        self.ui.status(format!("{INDENT}$ {line}"));
        let spec = Spec::new(argv)
            .env(env::pick(["PATH"]))
            // What it makes in passing belongs to the throwaway state too.
            .env([("TMPDIR", self.place.path("tmp"))])
            .env(self.variables.iter().cloned())
            .cwd(self.folder);
        let limits = Capture::new(LONGEST, OUTPUT_BYTES).ladder(Ladder::ask(Signal::Terminate));
        let captured = capture(self.wrapper, spec, limits, self.cancel)
            .await
            .map_err(|source| match source {
                CaptureError::Cancelled => DemoError::Interrupted,
                source => DemoError::Command {
                    line: line.clone(),
                    source,
                },
            })?;
        let ran = Ran {
            line,
            status: captured.exit.status,
            out: String::from_utf8_lossy(&captured.stdout).into_owned(),
            err: String::from_utf8_lossy(&captured.stderr).into_owned(),
        };
        self.ran.push(ran.clone());
        Ok(ran)
    }
}

impl Ran {
    /// Insists on an exit code.
    pub(crate) fn ends_with(&self, code: i32) -> Result<&Self, DemoError> {
        if self.status == Status::Code(code) {
            return Ok(self);
        }
        Err(self.otherwise(&format!("exit code {code}"), &self.status.to_string()))
    }

    /// Insists on words of its answer.
    pub(crate) fn says(&self, words: &str) -> Result<&Self, DemoError> {
        if self.out.contains(words) {
            return Ok(self);
        }
        Err(self.otherwise(words, &self.out))
    }

    /// Insists on a digest in its answer, which a narrow screen may break.
    pub(crate) fn names(&self, digest: &str) -> Result<&Self, DemoError> {
        let whole: String = self.out.split_whitespace().collect();
        if whole.contains(digest) {
            return Ok(self);
        }
        Err(self.otherwise(digest, &self.out))
    }

    /// Insists on an answer of one line.
    pub(crate) fn only_line(&self) -> Result<String, DemoError> {
        match self.out.lines().collect::<Vec<_>>().as_slice() {
            [line] => Ok((*line).to_owned()),
            _ => Err(self.otherwise("one line", &self.out)),
        }
    }

    /// Insists on words among its messages.
    pub(crate) fn complains(&self, words: &str) -> Result<&Self, DemoError> {
        if self.err.contains(words) {
            return Ok(self);
        }
        Err(self.otherwise(words, &self.err))
    }

    /// The first line that says why it failed.
    pub(crate) fn first_error(&self) -> Result<String, DemoError> {
        let found = self
            .err
            .lines()
            .find_map(|line| line.strip_prefix("error: "));
        found
            .map(str::to_owned)
            .ok_or_else(|| self.otherwise("an error", &self.err))
    }

    /// The value in the line that begins with that name.
    pub(crate) fn value(&self, name: &str) -> Result<String, DemoError> {
        let found = self.out.lines().find_map(|line| {
            let rest = line.trim_start().strip_prefix(name)?;
            rest.starts_with(' ').then(|| rest.trim().to_owned())
        });
        found.ok_or_else(|| self.otherwise(name, &self.out))
    }

    /// What it answered.
    pub(crate) fn answer(&self) -> &str {
        &self.out
    }

    /// What it wrote as messages.
    pub(crate) fn messages(&self) -> &str {
        &self.err
    }

    /// Says that it did something else than it should have.
    pub(crate) fn otherwise(&self, expected: &str, found: &str) -> DemoError {
        DemoError::Otherwise {
            line: self.line.clone(),
            expected: visible(expected),
            found: visible(found.trim_end()),
            said: visible_lines(self.err.trim_end()),
        }
    }

    /// Shows all that it said.
    pub(crate) fn show(&self, ui: &Ui) {
        self.show_lines(self.err.lines().chain(self.out.lines()), ui);
    }

    /// Shows why it ended as it did, without what it said on the way.
    pub(crate) fn show_error(&self, ui: &Ui) {
        let lines = self.err.lines();
        self.show_lines(lines.skip_while(|line| !line.starts_with("error: ")), ui);
    }

    /// Shows the lines from one that starts so to another that does.
    pub(crate) fn show_between(&self, from: &str, until: &str, ui: &Ui) {
        let lines = self.out.lines().skip_while(|line| !line.starts_with(from));
        let lines = lines.take_while(|line| !line.starts_with(until));
        self.show_lines(lines.filter(|line| !line.is_empty()), ui);
    }

    /// Shows the verdict and the checks that failed.
    pub(crate) fn show_faults(&self, ui: &Ui) {
        let lines = self.out.lines().enumerate();
        let lines = lines.filter(|(place, line)| *place == 0 || line.contains(" FAIL "));
        self.show_lines(lines.map(|(_, line)| line), ui);
    }

    fn show_lines<'b>(&self, lines: impl Iterator<Item = &'b str>, ui: &Ui) {
        for line in lines {
            ui.status(shown(line).trim_end());
        }
    }

    pub(crate) fn record(&self) -> Value {
        let code = match self.status {
            Status::Code(code) => Some(code),
            Status::Signal(_) | Status::Lost => None,
        };
        json!({
            "command": self.line,
            "exit_code": code,
            "stdout": self.out,
            "stderr": self.err,
        })
    }
}

/// Insists that a check of `attest verify` ended so, and returns what it says.
pub(crate) fn check_of(ran: &Ran, check: &str, status: &str) -> Result<String, DemoError> {
    let found = ran.out.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(check)?.trim_start();
        let detail = rest.strip_prefix(status)?.strip_prefix(' ')?;
        Some(detail.trim_start().to_owned())
    });
    found.ok_or_else(|| ran.otherwise(&format!("{check} {status}"), &ran.out))
}

/// A line of foreign text that fits the screen; what does not fit goes below its last column.
fn shown(line: &str) -> String {
    let line = short(&visible(line));
    let fits = line.chars().count() + INDENT.len() <= cli_shell::layout::WIDTH;
    let column = line.rfind("  ").map_or(0, |place| place + 2);
    let (head, rest) = if fits {
        (line.as_str(), "")
    } else {
        line.split_at(column)
    };
    if fits {
        return format!("{INDENT}{head}");
    }
    let below = " ".repeat(INDENT.len() + head.chars().count());
    wrap(rest, &format!("{INDENT}{head}"), &below)
}

/// Cuts hashes.
pub(crate) fn short(line: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for letter in line.chars().chain(std::iter::once('\n')) {
        if letter.is_ascii_hexdigit() {
            digits.push(letter);
            continue;
        }
        if digits.len() == 64 {
            digits.truncate(HASH);
            digits.push('…');
        }
        out.push_str(&digits);
        digits.clear();
        if letter != '\n' {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(out: &str) -> Ran {
        Ran {
            line: "attest verify r".into(),
            status: Status::Code(1),
            out: out.into(),
            err: "because\u{1b}\n".into(),
        }
    }

    #[test]
    fn hashes_are_cut_and_nothing_else() {
        let hash = "ab".repeat(32);
        assert_eq!(short(&format!("f:{hash} x")), "f:abababababab… x");
        assert_eq!(short(&hash), "abababababab…");
        for text in ["feed x", &"a".repeat(63), &"a".repeat(65), ""] {
            assert_eq!(short(text), text);
        }
    }

    #[test]
    fn a_long_line_goes_on_below_its_last_column() {
        let line = format!("  recompute    FAIL     {}", "word ".repeat(20));
        let text = shown(line.trim_end());
        assert!(text.lines().count() > 1);
        for (place, line) in text.lines().enumerate() {
            assert!(line.chars().count() <= 80, "{line}");
            let head = line.chars().take(27).collect::<String>();
            assert_eq!(head.trim().is_empty(), place > 0, "{line}");
        }
        assert_eq!(shown("short"), "   short");
    }

    #[test]
    fn what_does_not_hold_is_an_error() {
        let fails = ran("r: fail\n  schema  pass  fine\n  signature    FAIL     wrong\n");
        assert_eq!(check_of(&fails, "signature", "FAIL").unwrap(), "wrong");
        for (check, status) in [("signature", "pass"), ("schema", "FAIL"), ("other", "pass")] {
            assert!(check_of(&fails, check, status).is_err(), "{check}");
        }
        assert!(fails.ends_with(1).is_ok() && fails.says("r: fail").is_ok());
        assert!(fails.says("r: pass").is_err() && fails.only_line().is_err());
        let error = fails.ends_with(0).unwrap_err().to_string();
        assert!(
            error.contains("attest verify r") && !error.contains('\u{1b}'),
            "{error}"
        );
    }
}
