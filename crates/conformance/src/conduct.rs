//! Sessions in which the tool does everything right, and a plugin is judged by one aspect of what
//! it does.

use std::time::Duration;

use crate::dialog::{self, Dialog};
use crate::ground::Ground;
use crate::heard::{Broken, Heard, Reading, Terminal, fixed_lines};
use crate::run::explain;
use crate::scenario::strict::all_capabilities;
use crate::verdict::End;
use crate::wire::{Frame, list, quoted};
use crate::{Operation, Target, excerpt};

/// A session and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    /// How the tool speaks and listens.
    pub(crate) manner: Manner,
    /// What it offers.
    pub(crate) offer: Offer,
    /// How its first frame is written.
    pub(crate) opening: fn(Operation, Frame) -> Frame,
    /// How its second frame is written.
    pub(crate) execute: fn(Operation, Frame) -> Frame,
    /// A capability without which there is nothing to see.
    pub(crate) needs: Option<&'static str>,
    /// How the session has to end.
    pub(crate) expect: Expect,
    /// What is judged besides form and end.
    pub(crate) aspects: &'static [Aspect],
    /// The plugin gets a private HOME and TMPDIR, in which it must leave nothing.
    pub(crate) watch_files: bool,
    /// The session is led a second time and must come to the same bytes.
    pub(crate) twice: bool,
}

/// How the tool speaks and listens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manner {
    /// Each frame after the answer to the one before.
    Plain,
    /// One byte after the other.
    ByteByByte,
    /// Both frames at once.
    OneWrite,
    /// The input ends with `execute`.
    ClosedEarly,
    /// The output is read late and little by little.
    SlowReader,
    /// The output is closed before `execute`.
    ReaderGone,
    /// `cancel` comes together with `execute`.
    CancelAtOnce,
    /// `cancel` comes when the plugin shows that it works, or after a moment.
    CancelUnderWay,
}

/// What the tool offers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Offer {
    /// The operation alone.
    Operation,
    /// All six capabilities.
    All,
    /// All six, the last one first.
    AllFromTheLast,
}

/// How a session has to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Expect {
    /// With a result and exit 0.
    Result,
    /// With a result or a failure, and exit 0.
    Answer,
    /// With a result, or with a failure that is called `cancelled`, and exit 0.
    ResultOrCancelled,
    /// With a result or a failure and exit 0, or with neither and another exit.
    AnswerOrRefusal,
    /// With an exit that is not 0.
    Refusal,
}

/// What a broken rule is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Aspect {
    /// The form of the frames and their order; judged always.
    Form,
    /// The terminal frame and the exit; judged always.
    End,
    /// The capabilities in `initialized`.
    Selection,
    /// Frames and fields whose capability was not selected.
    Unselected,
    /// Progress before `initialized` or after the terminal frame.
    ProgressPlace,
    /// The numbers of progress frames.
    ProgressSequence,
    /// How many there are.
    ProgressCount,
    /// Their stages.
    ProgressStage,
    /// Their texts.
    ProgressText,
    /// The commit subject.
    Subject,
    /// The report.
    Report,
    /// The size of the output.
    Output,
    /// Bytes after the terminal frame.
    Trailing,
    /// The time from the end of input to the exit.
    ExitTime,
    /// The time from `cancel` to the terminal frame.
    CancelTime,
    /// Processes that are left behind.
    Descendant,
}

impl Aspect {
    /// All that do not measure a time.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Selection,
        Self::Unselected,
        Self::ProgressPlace,
        Self::ProgressSequence,
        Self::ProgressCount,
        Self::ProgressStage,
        Self::ProgressText,
        Self::Subject,
        Self::Report,
        Self::Output,
        Self::Trailing,
        Self::Descendant,
    ];

    const fn is_time(self) -> bool {
        matches!(self, Self::ExitTime | Self::CancelTime)
    }
}

/// What came of a scenario that broke no rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Finding {
    /// The rule was kept.
    Kept,
    /// It does not apply, for this reason.
    Skipped(String),
}

/// How late the tool itself has to be for a time to be measured again, and how often.
const HELD_UP: Duration = Duration::from_millis(40);
const MEASUREMENTS: u32 = 3;

impl Trial {
    /// A session that offers the operation alone and must come to a result.
    pub(crate) const PLAIN: Self = Self {
        manner: Manner::Plain,
        offer: Offer::Operation,
        opening: |_, frame| frame,
        execute: |_, frame| frame,
        needs: None,
        expect: Expect::Result,
        aspects: &[],
        watch_files: false,
        twice: false,
    };

    /// The same with all six capabilities on offer.
    pub(crate) const OFFERS_ALL: Self = Self {
        offer: Offer::All,
        ..Self::PLAIN
    };

    /// Whether the trial measures a time and should have the machine for itself.
    pub(crate) fn measures(&self) -> bool {
        self.aspects.iter().any(|aspect| aspect.is_time())
    }

    /// Leads the session and says what is wrong with it, if anything is.
    pub(crate) async fn conduct(
        &self,
        target: &Target,
        operation: Operation,
        limit: Duration,
    ) -> Result<Finding, String> {
        let mut measurement = 1;
        loop {
            let (heard, reading, strays) = self.lead(target, operation, limit).await?;
            if let Some(needs) = self.needs
                && let Some(all) = &reading.selection
                && all.iter().all(|one| one != needs)
            {
                let reason = format!("the plugin does not select `{needs}`");
                return Ok(Finding::Skipped(reason));
            }
            let mut broken = self.judge(&heard, &reading);
            if broken.is_empty() && self.twice {
                broken.extend(self.again(target, operation, limit, &heard).await?);
            }
            broken.extend(strays);
            if broken.is_empty() {
                return Ok(Finding::Kept);
            }
            // A time that the tool was too late to read says nothing about the plugin.
            let unsure = heard.late >= HELD_UP && broken.iter().all(|one| one.aspect.is_time());
            if unsure && measurement < MEASUREMENTS {
                measurement += 1;
                continue;
            }
            return Err(reason(&broken, &heard, measurement));
        }
    }

    async fn lead(
        &self,
        target: &Target,
        operation: Operation,
        limit: Duration,
    ) -> Result<(Heard, Reading, Option<Broken>), String> {
        let ground = Ground::lay(target, operation, self.watch_files).await?;
        let offer = self.offer(operation);
        let mut execute =
            Frame::execute(operation).set(operation.payload(), &quoted(operation.task()));
        if let Some(workspace) = ground.workspace() {
            let path = serde_json::to_string(workspace).map_err(|error| explain(&error))?;
            execute = execute.set("workspace", &path).set("timeout_ms", "10000");
        }
        let opening = Frame::initialize(operation).set("capabilities", &list(&offer));
        let dialog = Dialog {
            opening: (self.opening)(operation, opening).line(),
            execute: (self.execute)(operation, execute).line(),
            manner: self.manner,
        };
        let heard = dialog::hold(target, ground.environment(), &dialog, limit)
            .await
            .map_err(|error| explain(&error))?;
        let strays = ground.strays()?.map(|text| Broken {
            aspect: Aspect::End,
            text,
        });
        let reading = heard.read(operation, &offer);
        Ok((heard, reading, strays))
    }

    fn offer(&self, operation: Operation) -> Vec<&'static str> {
        match self.offer {
            Offer::Operation => vec![operation.capability()],
            Offer::All => all_capabilities(false),
            Offer::AllFromTheLast => all_capabilities(true),
        }
    }

    /// Returns the broken rules that the trial is about.
    fn judge(&self, heard: &Heard, reading: &Reading) -> Vec<Broken> {
        let mut broken: Vec<Broken> = Vec::new();
        broken.extend(self.expect.broken(heard, reading).map(|text| Broken {
            aspect: Aspect::End,
            text,
        }));
        let judged = |aspect| aspect == Aspect::Form || self.aspects.contains(&aspect);
        let own = reading.broken.iter().filter(|one| judged(one.aspect));
        broken.extend(own.cloned());
        broken
    }

    /// Leads the session once more and compares.
    async fn again(
        &self,
        target: &Target,
        operation: Operation,
        limit: Duration,
        first: &Heard,
    ) -> Result<Option<Broken>, String> {
        let (second, ..) = self.lead(target, operation, limit).await?;
        let (one, other) = (fixed_lines(&first.stdout), fixed_lines(&second.stdout));
        if one == other {
            return Ok(None);
        }
        Ok(Some(Broken {
            aspect: Aspect::End,
            text: format!(
                "expected the same frames on repeat, got {} and then {}",
                excerpt::quoted(&one.concat()),
                excerpt::quoted(&other.concat())
            ),
        }))
    }
}

impl Expect {
    /// Says how a session ended that should have ended otherwise.
    fn broken(self, heard: &Heard, reading: &Reading) -> Option<String> {
        let exit = match heard.end {
            End::Code(code) => format!("exit {code}"),
            End::Signal(signal) => format!("an end by signal {signal}"),
            End::Timeout(limit) => format!("no exit within {limit:?}"),
            End::HeldOutput => "a process that it started and that holds its output".to_owned(),
            End::Lost => "a process lost with its wrapper".to_owned(),
            End::Flood => "an output without end".to_owned(),
        };
        let answer = match &reading.terminal {
            Some(Terminal::Result) => "a result".to_owned(),
            Some(Terminal::Failure(category)) => {
                format!("a failure `{}`", excerpt::message(category))
            }
            None => "no terminal frame".to_owned(),
        };
        if reading.selection.is_none() {
            // Whatever does not even begin a session would otherwise pass for one that refuses.
            return Some(format!("expected `initialized`, got none and {exit}"));
        }
        let refused = matches!(heard.end, End::Code(1..) | End::Signal(_));
        let succeeded = heard.end == End::Code(0);
        // A plugin that stays after its answer is told from one that never answered: the first
        // has missed a time, and only the trials that measure it say so.
        let stays = reading.terminal.is_some()
            && heard.left_after.is_some()
            && matches!(heard.end, End::Timeout(_));
        let answered = succeeded || stays;
        let (holds, expected) = match (self, &reading.terminal) {
            (Self::Result, terminal) => (
                answered && *terminal == Some(Terminal::Result),
                "a result and exit 0",
            ),
            (Self::Answer, terminal) => (
                answered && terminal.is_some(),
                "a result or a failure, and exit 0",
            ),
            (Self::ResultOrCancelled, terminal) => (
                answered
                    && match terminal {
                        Some(Terminal::Result) => true,
                        Some(Terminal::Failure(category)) => category == "cancelled",
                        None => false,
                    },
                "a result or a failure `cancelled`, and exit 0",
            ),
            (Self::AnswerOrRefusal, Some(_)) => (succeeded, "exit 0 after the terminal frame"),
            (Self::AnswerOrRefusal, None) => (refused, "a terminal frame or a non-zero exit"),
            (Self::Refusal, _) => (refused, "a non-zero exit, since nobody reads the answer"),
        };
        (!holds).then(|| format!("expected {expected}, got {answer} and {exit}"))
    }
}

fn reason(broken: &[Broken], heard: &Heard, measurements: u32) -> String {
    let mut parts: Vec<String> = broken.iter().map(|one| one.text.clone()).collect();
    // A broken frame every time says no more than the first three.
    parts.truncate(3);
    if measurements > 1 {
        parts.push(format!(
            "measured {measurements} times, since this program was held up itself, at last by {} ms",
            heard.late.as_millis()
        ));
    }
    parts.extend(excerpt::tail(&heard.stderr).map(|tail| format!("stderr: {tail}")));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(terminal: Option<Terminal>) -> Reading {
        let mut reading = Reading::default();
        reading.selection = Some(vec!["text".to_owned()]);
        reading.terminal = terminal;
        reading
    }

    fn heard(end: End) -> Heard {
        Heard {
            stdout: Vec::new(),
            stderr: Vec::new(),
            end,
            descendants: 0,
            left_after: None,
            stopped_after: None,
            late: Duration::ZERO,
        }
    }

    fn failure(category: &str) -> Option<Terminal> {
        Some(Terminal::Failure(category.to_owned()))
    }

    fn holds(expect: Expect, terminal: Option<Terminal>, end: End) -> bool {
        expect.broken(&heard(end), &reading(terminal)).is_none()
    }

    #[test]
    fn each_expectation_takes_its_ends_and_no_other() {
        let result = || Some(Terminal::Result);
        let (well, badly) = (End::Code(0), End::Code(2));
        assert!(holds(Expect::Result, result(), well));
        assert!(!holds(Expect::Result, result(), badly));
        assert!(!holds(Expect::Result, failure("execution_failed"), well));
        assert!(!holds(Expect::Result, None, well));
        assert!(holds(Expect::Answer, failure("execution_failed"), well));
        assert!(!holds(Expect::Answer, None, well));
        assert!(!holds(Expect::Answer, result(), End::HeldOutput));
        assert!(holds(Expect::ResultOrCancelled, result(), well));
        assert!(holds(Expect::ResultOrCancelled, failure("cancelled"), well));
        assert!(!holds(
            Expect::ResultOrCancelled,
            failure("incompatible"),
            well
        ));
        assert!(holds(Expect::AnswerOrRefusal, result(), well));
        assert!(!holds(Expect::AnswerOrRefusal, result(), badly));
        assert!(holds(Expect::AnswerOrRefusal, None, badly));
        assert!(!holds(Expect::AnswerOrRefusal, None, well));
        let late = End::Timeout(Duration::from_secs(12));
        assert!(!holds(Expect::AnswerOrRefusal, None, late));
        assert!(holds(Expect::Refusal, None, badly));
        assert!(holds(Expect::Refusal, None, End::Signal(13)));
        assert!(!holds(Expect::Refusal, None, well));
    }

    #[test]
    fn what_does_not_begin_a_session_meets_no_expectation() {
        for expect in [Expect::Result, Expect::AnswerOrRefusal, Expect::Refusal] {
            let said = expect.broken(&heard(End::Code(1)), &Reading::default());
            assert_eq!(
                said.as_deref(),
                Some("expected `initialized`, got none and exit 1")
            );
        }
    }

    #[test]
    fn a_plugin_that_stays_has_answered_all_the_same() {
        let stays = Heard {
            left_after: Some(Duration::from_secs(1)),
            ..heard(End::Timeout(Duration::from_secs(1)))
        };
        let answered = reading(Some(Terminal::Result));
        assert_eq!(Expect::Result.broken(&stays, &answered), None);
        assert!(Expect::Result.broken(&stays, &reading(None)).is_some());
    }

    #[test]
    fn a_reason_is_short_and_owns_up_to_a_bad_measurement() {
        let broken: Vec<Broken> = (0..5)
            .map(|number| Broken {
                aspect: Aspect::ExitTime,
                text: format!("rule {number}"),
            })
            .collect();
        let late = Heard {
            late: Duration::from_millis(90),
            ..heard(End::Code(0))
        };
        assert_eq!(reason(&broken, &late, 1), "rule 0; rule 1; rule 2");
        assert!(reason(&broken, &late, 3).ends_with(
            "measured 3 times, since this program was held up itself, at last by 90 ms"
        ));
    }
}
