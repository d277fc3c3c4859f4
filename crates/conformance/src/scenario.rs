//! The scenarios by name, in the order in which they run and print.
//!
//! The table is data: a scenario says what is written and which answer is
//! right; how a process is run and judged is elsewhere. What `--strict` adds stands in a table
//! of its own, behind this one.

pub(crate) mod strict;

use crate::Operation;
use crate::conduct::Trial;
use crate::wire::{FRAME_BYTES, Frame, TEXT_BYTES, quoted};

/// One line of the report.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name that is printed and that `--only` takes.
    pub name: &'static str,
    /// The only operation that it applies to, if it does not apply to both.
    pub(crate) only: Option<Operation>,
    /// What is done and what must come of it.
    pub(crate) check: Check,
}

/// What a scenario does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    /// One whole session as a Worker would lead it.
    ValidSession,
    /// A first frame that breaks one rule: no byte may come back.
    BadOpening(fn(Operation) -> Vec<u8>),
    /// A second frame that breaks one rule: `initialized` may come back, and nothing else.
    BadExecute(fn(Operation) -> Frame),
    /// A first frame with one piece of its limits replaced.
    BadLimits {
        /// What is there once.
        from: &'static str,
        /// What comes in its place.
        to: &'static str,
    },
    /// A first frame changed in a way that does not depend on the operation.
    ChangedOpening(fn(Frame) -> Frame),
    /// A second frame changed in a way that does not depend on the operation.
    ChangedExecute(fn(Frame) -> Frame),
    /// A second frame with another value, as raw JSON, for its payload.
    BadPayload(&'static str),
    /// Bytes instead of a second frame: `initialized` may come back, and nothing else.
    BadSecond(fn(Operation) -> Vec<u8>),
    /// A session in which all is as it should be, led and judged in a way of its own.
    Session(Trial),
}

/// One thing to refuse, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Rejection {
    /// What is written to standard input before it is closed.
    pub(crate) wire: Vec<u8>,
    /// The exact bytes that must be on standard output.
    pub(crate) answer: Vec<u8>,
}

impl Check {
    /// Whether a time is measured, which a busy machine would spoil.
    pub(crate) fn measures(self) -> bool {
        match self {
            Self::ValidSession => true,
            Self::Session(trial) => trial.measures(),
            _ => false,
        }
    }

    /// Returns what to send, unless the check is a session of its own kind.
    pub(crate) fn rejection(self, operation: Operation) -> Option<Rejection> {
        match self {
            Self::ValidSession | Self::Session(_) => None,
            Self::BadOpening(wire) => Some(opening(wire(operation))),
            Self::BadLimits { from, to } => Some(opening(
                Frame::initialize(operation).edit("limits", from, to).line(),
            )),
            Self::ChangedOpening(change) => {
                Some(opening(change(Frame::initialize(operation)).line()))
            }
            Self::ChangedExecute(change) => Some(after_opening(
                operation,
                &change(Frame::execute(operation)).line(),
            )),
            Self::BadPayload(raw) => {
                let frame = Frame::execute(operation).set(operation.payload(), raw);
                Some(after_opening(operation, &frame.line()))
            }
            Self::BadExecute(frame) => Some(after_opening(operation, &frame(operation).line())),
            Self::BadSecond(wire) => Some(after_opening(operation, &wire(operation))),
        }
    }
}

fn opening(wire: Vec<u8>) -> Rejection {
    Rejection {
        wire,
        answer: Vec::new(),
    }
}

fn after_opening(operation: Operation, second: &[u8]) -> Rejection {
    Rejection {
        wire: [&Frame::initialize(operation).line(), second].concat(),
        answer: Frame::initialized(operation).line(),
    }
}

/// A name that cannot be run.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UnknownScenario {
    /// No scenario has it.
    #[error("there is no scenario `{name}`")]
    Name {
        /// The name, fit to be shown.
        name: String,
    },
    /// It belongs to `--strict`, which was not asked for.
    #[error("the scenario `{name}` belongs to `--strict`")]
    Strict {
        /// The name.
        name: &'static str,
    },
}

/// Returns the scenarios of these names, in the order of the tables; all of them if none is named.
///
/// # Errors
/// A name that no scenario has, or that only `strict` has.
pub fn select(names: &[String], strict: bool) -> Result<Vec<Scenario>, UnknownScenario> {
    let table: Vec<Scenario> = if strict {
        all().collect()
    } else {
        SCENARIOS.to_vec()
    };
    for name in names {
        if table.iter().any(|scenario| scenario.name == *name) {
            continue;
        }
        return Err(match all().find(|scenario| scenario.name == *name) {
            Some(Scenario { name, .. }) => UnknownScenario::Strict { name },
            None => UnknownScenario::Name {
                name: bounded::text::visible(name),
            },
        });
    }
    let chosen = |scenario: &Scenario| names.iter().any(|name| name == scenario.name);
    Ok(table
        .into_iter()
        .filter(|scenario| names.is_empty() || chosen(scenario))
        .collect())
}

/// Returns every scenario, in order, those of `--strict` last.
pub fn all() -> impl Iterator<Item = Scenario> {
    SCENARIOS.iter().chain(strict::SCENARIOS).copied()
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "valid-session",
        only: None,
        check: Check::ValidSession,
    },
    bad_opening("blank-frame", |_| b"\n".to_vec()),
    bad_opening("malformed-frame", |_| b"{\n".to_vec()),
    bad_opening("invalid-utf8", |_| b"{\xff}\n".to_vec()),
    bad_opening("crlf-frame", |operation| {
        ended(Frame::initialize(operation).bare(), b"\r\n")
    }),
    bad_opening("non-compact-frame", |operation| {
        let line = Frame::initialize(operation).line();
        [b"{ ", line.get(1..).unwrap_or_default()].concat()
    }),
    bad_opening("invalid-id", |operation| {
        Frame::initialize(operation)
            .set("id", &quoted(&"A".repeat(32)))
            .line()
    }),
    bad_opening("capability-type", |operation| {
        Frame::initialize(operation)
            .set("capabilities", "[1]")
            .line()
    }),
    bad_opening("duplicate-capability", |operation| {
        let capability = quoted(operation.capability());
        Frame::initialize(operation)
            .set("capabilities", &format!("[{capability},{capability}]"))
            .line()
    }),
    bad_opening("unknown-field", |operation| {
        Frame::initialize(operation).with("unknown", "true").line()
    }),
    bad_opening("duplicate-field", |operation| {
        Frame::initialize(operation).twice("type").line()
    }),
    bad_opening("unsupported-version", |operation| {
        Frame::initialize(operation)
            .set("version", r#""v2""#)
            .line()
    }),
    bad_opening("unsupported-capability", |operation| {
        Frame::initialize(operation)
            .set("capabilities", r#"["unsupported"]"#)
            .line()
    }),
    bad_opening("limit-bool", |operation| frame_bytes(operation, "true")),
    bad_opening("limit-float", |operation| {
        frame_bytes(operation, "1048576.0")
    }),
    bad_opening("non-standard-constant", |operation| {
        frame_bytes(operation, "NaN")
    }),
    bad_execute("wrong-id", |operation| {
        Frame::execute(operation).set("id", &quoted(&"f".repeat(32)))
    }),
    bad_execute("wrong-order", |operation| {
        Frame::execute(operation).set("type", r#""result""#)
    }),
    bad_execute("unsupported-operation", |operation| {
        Frame::execute(operation).set("operation", r#""unsupported""#)
    }),
    bad_execute("input-type", |operation| {
        Frame::execute(operation).set(operation.payload(), "1")
    }),
    bad_execute("oversized-input", |operation| {
        Frame::execute(operation).set(operation.payload(), &quoted(&"x".repeat(TEXT_BYTES + 1)))
    }),
    bad_execute("execute-unknown-field", |operation| {
        Frame::execute(operation).with("unknown", "true")
    }),
    bad_opening("oversized-frame", |_| {
        ended(vec![b'x'; FRAME_BYTES + 1], b"\n")
    }),
    bad_opening("no-lf-frame", |operation| {
        Frame::initialize(operation).bare()
    }),
    bad_execute("contradictory-execute", |operation| {
        let frame = Frame::execute(operation);
        match operation {
            Operation::Text => frame
                .with("workspace", r#""/work""#)
                .with("instruction", r#""edit""#)
                .with("timeout_ms", "1000"),
            Operation::WorkspaceEdit => frame.with("input", r#""conformance""#),
        }
    }),
    bad_execute("duplicate-execute", |operation| {
        Frame::execute(operation).twice("type")
    }),
];

const fn bad_opening(name: &'static str, wire: fn(Operation) -> Vec<u8>) -> Scenario {
    Scenario {
        name,
        only: None,
        check: Check::BadOpening(wire),
    }
}

const fn bad_execute(name: &'static str, frame: fn(Operation) -> Frame) -> Scenario {
    Scenario {
        name,
        only: None,
        check: Check::BadExecute(frame),
    }
}

fn frame_bytes(operation: Operation, value: &str) -> Vec<u8> {
    Frame::initialize(operation)
        .edit(
            "limits",
            r#""frame_bytes":1048576"#,
            &format!(r#""frame_bytes":{value}"#),
        )
        .line()
}

fn ended(mut frame: Vec<u8>, end: &[u8]) -> Vec<u8> {
    frame.extend_from_slice(end);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: [Operation; 2] = [Operation::Text, Operation::WorkspaceEdit];

    fn rejection(name: &str, operation: Operation) -> Rejection {
        let scenario = all().find(|one| one.name == name).unwrap();
        scenario.check.rejection(operation).unwrap()
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_names_and_their_order_are_fixed() {
        let names: Vec<&str> = SCENARIOS.iter().map(|one| one.name).collect();
        assert_eq!(
            names,
            [
                "valid-session",
                "blank-frame",
                "malformed-frame",
                "invalid-utf8",
                "crlf-frame",
                "non-compact-frame",
                "invalid-id",
                "capability-type",
                "duplicate-capability",
                "unknown-field",
                "duplicate-field",
                "unsupported-version",
                "unsupported-capability",
                "limit-bool",
                "limit-float",
                "non-standard-constant",
                "wrong-id",
                "wrong-order",
                "unsupported-operation",
                "input-type",
                "oversized-input",
                "execute-unknown-field",
                "oversized-frame",
                "no-lf-frame",
                "contradictory-execute",
                "duplicate-execute",
            ]
        );
    }

    #[test]
    fn a_selection_keeps_the_order_and_refuses_what_it_does_not_know() {
        let names = |all: &[&str]| {
            all.iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let chosen = select(&names(&["wrong-id", "blank-frame", "wrong-id"]), false).unwrap();
        assert_eq!(
            chosen.iter().map(|one| one.name).collect::<Vec<_>>(),
            ["blank-frame", "wrong-id"]
        );
        assert_eq!(select(&[], false).unwrap().len(), 26);
        let error = select(&names(&["wrong-id", "blank\u{1b}"]), true).unwrap_err();
        assert_eq!(error.to_string(), "there is no scenario `blank\\u{1b}`");
    }

    #[test]
    fn strict_adds_behind_the_others_and_only_when_asked_for() {
        let strict = select(&[], true).unwrap();
        let (first, more) = strict.split_at(26);
        assert!(
            first
                .iter()
                .zip(SCENARIOS)
                .all(|(one, other)| one.name == other.name)
        );
        assert!(more.len() > 90);
        let names: std::collections::BTreeSet<&str> = strict.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), strict.len(), "a name is there twice");
        let name = ["slow-reader".to_owned()];
        assert_eq!(select(&name, true).unwrap().len(), 1);
        assert_eq!(
            select(&name, false).unwrap_err().to_string(),
            "the scenario `slow-reader` belongs to `--strict`"
        );
    }

    #[test]
    fn every_rejection_differs_from_the_valid_session_and_from_the_others() {
        for operation in OPERATIONS {
            let valid = [
                Frame::initialize(operation).line(),
                Frame::execute(operation).line(),
            ]
            .concat();
            let mut seen = vec![valid];
            for scenario in all().filter(|one| one.only.is_none_or(|only| only == operation)) {
                if let Some(rejection) = scenario.check.rejection(operation) {
                    assert!(
                        !seen.contains(&rejection.wire),
                        "{} repeats another",
                        scenario.name
                    );
                    seen.push(rejection.wire);
                }
            }
            assert!(seen.len() > 80, "{}", seen.len());
        }
    }

    #[test]
    fn c02_only_a_broken_execute_may_be_preceded_by_initialized() {
        for operation in OPERATIONS {
            for scenario in all() {
                let Some(rejection) = scenario.check.rejection(operation) else {
                    continue;
                };
                let opened = rejection
                    .wire
                    .starts_with(&Frame::initialize(operation).line());
                assert_eq!(!rejection.answer.is_empty(), opened, "{}", scenario.name);
            }
        }
    }

    #[test]
    fn raw_scenarios_are_what_their_names_say() {
        assert_eq!(rejection("blank-frame", Operation::Text).wire, b"\n");
        assert_eq!(rejection("malformed-frame", Operation::Text).wire, b"{\n");
        assert_eq!(rejection("invalid-utf8", Operation::Text).wire, b"{\xff}\n");
        assert!(
            rejection("crlf-frame", Operation::Text)
                .wire
                .ends_with(b"}}\r\n")
        );
        assert!(
            rejection("non-compact-frame", Operation::Text)
                .wire
                .starts_with(b"{ \"version\"")
        );
        assert!(
            rejection("no-lf-frame", Operation::Text)
                .wire
                .ends_with(b"}}")
        );
        let oversized = rejection("oversized-frame", Operation::Text).wire;
        assert_eq!(oversized.len(), 1_048_577 + 1);
        assert!(oversized.iter().rev().skip(1).all(|byte| *byte == b'x'));
    }

    #[test]
    fn edited_scenarios_are_what_their_names_say() {
        let cases = [
            (
                "invalid-id",
                Operation::Text,
                r#""id":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA""#,
            ),
            ("capability-type", Operation::Text, r#""capabilities":[1]"#),
            (
                "duplicate-capability",
                Operation::Text,
                r#""capabilities":["text","text"]"#,
            ),
            (
                "duplicate-capability",
                Operation::WorkspaceEdit,
                r#"["workspace_edit","workspace_edit"]"#,
            ),
            ("unknown-field", Operation::Text, r#"},"unknown":true}"#),
            (
                "duplicate-field",
                Operation::Text,
                r#"},"type":"initialize"}"#,
            ),
            (
                "unsupported-version",
                Operation::Text,
                r#"{"version":"v2","#,
            ),
            (
                "unsupported-capability",
                Operation::Text,
                r#""capabilities":["unsupported"]"#,
            ),
            ("limit-bool", Operation::Text, r#"{"frame_bytes":true,"#),
            (
                "limit-float",
                Operation::Text,
                r#"{"frame_bytes":1048576.0,"#,
            ),
            (
                "non-standard-constant",
                Operation::Text,
                r#"{"frame_bytes":NaN,"#,
            ),
            (
                "wrong-id",
                Operation::Text,
                r#""id":"ffffffffffffffffffffffffffffffff","type":"execute""#,
            ),
            (
                "wrong-order",
                Operation::Text,
                r#""type":"result","operation":"text","input":"conformance"}"#,
            ),
            (
                "unsupported-operation",
                Operation::Text,
                r#""operation":"unsupported","input""#,
            ),
            ("input-type", Operation::Text, r#""input":1}"#),
            (
                "input-type",
                Operation::WorkspaceEdit,
                r#""instruction":1,"timeout_ms""#,
            ),
            (
                "execute-unknown-field",
                Operation::Text,
                r#""input":"conformance","unknown":true}"#,
            ),
            (
                "contradictory-execute",
                Operation::Text,
                r#""conformance","workspace":"/work","instruction":"edit","#,
            ),
            (
                "contradictory-execute",
                Operation::WorkspaceEdit,
                r#""timeout_ms":1000,"input":"conformance"}"#,
            ),
            (
                "duplicate-execute",
                Operation::Text,
                r#""input":"conformance","type":"execute"}"#,
            ),
        ];
        for (name, operation, piece) in cases {
            let wire = rejection(name, operation).wire;
            assert_eq!(text(&wire).matches(piece).count(), 1, "{name}");
            assert!(wire.ends_with(b"}\n"), "{name}");
        }
        for operation in OPERATIONS {
            let wire = rejection("oversized-input", operation).wire;
            let piece = format!(r#""{}":"{}""#, operation.payload(), "x".repeat(65_537));
            assert!(text(&wire).contains(&piece));
        }
    }
}
