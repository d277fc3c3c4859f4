//! How one scenario ended, and how a rejection is judged.

use std::time::Duration;

use crate::excerpt;
use crate::scenario::Rejection;

/// How a scenario ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// The plugin did what the protocol asks.
    Pass,
    /// It did not.
    Fail,
    /// The scenario does not apply to this plugin.
    Skip,
}

/// One line of a report.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The scenario's name.
    pub name: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was expected and what came, on one line; always there for a failure.
    pub reason: Option<String>,
    /// How long the plugin was run for, all repetitions together.
    pub duration: Duration,
}

/// What a plugin did in one rejection scenario.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// Standard output, up to a little more than was expected.
    pub(crate) stdout: Vec<u8>,
    /// The end of standard error.
    pub(crate) stderr: Vec<u8>,
    /// How the process came to its end.
    pub(crate) end: End,
}

/// How the process of a scenario came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// It left with this code.
    Code(i32),
    /// This signal ended it, and it was not ours.
    Signal(i32),
    /// It had not left when the time was over, and was killed.
    Timeout(Duration),
    /// It left, but something that it started kept its output open.
    HeldOutput,
    /// Nobody knows how, since what watched over it was killed.
    Lost,
    /// It wrote so much more than it should that nobody waited for the end.
    Flood,
}

/// Says what is wrong with a plugin's refusal, if anything is.
pub(crate) fn judge(rejection: &Rejection, observed: &Observed) -> Result<(), String> {
    let mut wrong = Vec::new();
    match observed.end {
        End::Code(0) => wrong.push("expected a non-zero exit, got exit 0".to_owned()),
        // A crash is an ugly refusal, but the peer is told all the same.
        End::Code(_) | End::Signal(_) => {}
        End::Timeout(limit) => {
            wrong.push(format!(
                "expected a non-zero exit within {limit:?} of end of input, still running"
            ));
        }
        End::HeldOutput => {
            wrong.push("expected the output to end with the process, a process that it started held it open".to_owned());
        }
        End::Lost => {
            wrong.push("expected a non-zero exit, the process was lost with its wrapper".to_owned())
        }
        End::Flood => wrong.push("expected the output to end, it did not".to_owned()),
    }
    if observed.stdout != rejection.answer {
        wrong.push(difference(&rejection.answer, &observed.stdout));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.extend(excerpt::tail(&observed.stderr).map(|tail| format!("stderr: {tail}")));
    Err(wrong.join("; "))
}

fn difference(expected: &[u8], got: &[u8]) -> String {
    let text = format!(
        "expected on stdout {}, got {}",
        excerpt::quoted(expected),
        excerpt::quoted(got)
    );
    if expected.is_empty() || got.is_empty() {
        return text;
    }
    let same = expected
        .iter()
        .zip(got)
        .take_while(|(one, other)| one == other)
        .count();
    format!("{text}, differing from byte {same} on")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(answer: &[u8]) -> Rejection {
        Rejection {
            wire: Vec::new(),
            answer: answer.to_vec(),
        }
    }

    fn judged(answer: &[u8], stdout: &[u8], end: End) -> Result<(), String> {
        judge(
            &rejection(answer),
            &Observed {
                stdout: stdout.to_vec(),
                stderr: Vec::new(),
                end,
            },
        )
    }

    #[test]
    fn a_non_zero_exit_with_the_exact_output_passes() {
        assert_eq!(judged(b"", b"", End::Code(2)), Ok(()));
        assert_eq!(judged(b"answer\n", b"answer\n", End::Code(1)), Ok(()));
        assert_eq!(judged(b"", b"", End::Signal(6)), Ok(()));
    }

    #[test]
    fn every_other_end_fails_and_says_why() {
        let ends = [
            (End::Code(0), "exit 0"),
            (End::Timeout(Duration::from_secs(2)), "within 2s"),
            (End::HeldOutput, "held it open"),
            (End::Lost, "lost"),
            (End::Flood, "did not"),
        ];
        for (end, part) in ends {
            assert!(judged(b"", b"", end).unwrap_err().contains(part), "{end:?}");
        }
    }

    #[test]
    fn output_must_match_to_the_byte() {
        assert_eq!(
            judged(b"", b"hello\n", End::Code(2)).unwrap_err(),
            "expected on stdout nothing, got `hello\\n`"
        );
        assert_eq!(
            judged(b"answer\n", b"answer", End::Code(2)).unwrap_err(),
            "expected on stdout `answer\\n`, got `answer`, differing from byte 6 on"
        );
        assert_eq!(
            judged(b"answer\n", b"", End::Code(2)).unwrap_err(),
            "expected on stdout `answer\\n`, got nothing"
        );
    }

    #[test]
    fn the_end_of_standard_error_is_quoted_with_a_failure_only() {
        let observed = Observed {
            stdout: Vec::new(),
            stderr: b"boom\nat line 3\n".to_vec(),
            end: End::Code(0),
        };
        assert_eq!(
            judge(&rejection(b""), &observed).unwrap_err(),
            "expected a non-zero exit, got exit 0; stderr: boom\\nat line 3"
        );
        assert_eq!(
            judge(
                &rejection(b""),
                &Observed {
                    end: End::Code(2),
                    ..observed
                }
            ),
            Ok(())
        );
    }
}
