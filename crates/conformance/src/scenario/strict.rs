//! What `--strict` adds: every form that a lenient reader lets pass and the protocol forbids,
//! the forms that it leaves open, and how a plugin behaves over a session.

use super::{Check, Scenario, bad_execute, bad_opening, ended};
use crate::Operation;
use crate::conduct::{Aspect, Expect, Manner, Offer, Trial};
use crate::wire::{CAPABILITIES, FRAME_BYTES, Frame, SESSION, TEXT_BYTES, list, quoted};

const LIMITS_FROM_THE_LAST: &str = concat!(
    r#"{"commit_subject_bytes":256,"progress_text_bytes":1024,"#,
    r#""text_bytes":65536,"progress_frames":128,"frame_bytes":1048576}"#
);

const FRAME_LIMIT: &str = r#""frame_bytes":1048576"#;

pub(super) const SCENARIOS: &[Scenario] = &[
    // -- limits --
    limits("limit-missing", r#","commit_subject_bytes":256"#, ""),
    limits(
        "limit-extra",
        FRAME_LIMIT,
        r#""frame_bytes":1048576,"more":1"#,
    ),
    limits(
        "limit-wrong",
        r#""progress_frames":128"#,
        r#""progress_frames":129"#,
    ),
    limits("limit-text", FRAME_LIMIT, r#""frame_bytes":"1048576""#),
    limits("limit-exponent", FRAME_LIMIT, r#""frame_bytes":1048576e0"#),
    limits("limit-null", FRAME_LIMIT, r#""frame_bytes":null"#),
    limits(
        "limit-duplicate",
        FRAME_LIMIT,
        r#""frame_bytes":1048576,"frame_bytes":1048576"#,
    ),
    limits("limit-key-case", FRAME_LIMIT, r#""Frame_bytes":1048576"#),
    opening("limits-missing", |frame| frame.without("limits")),
    opening("limits-null", |frame| frame.set("limits", "null")),
    // -- fields of initialize --
    opening("key-case", |frame| frame.rename("type", "Type")),
    opening("duplicate-escaped-key", |frame| {
        frame.with(r"\u0074ype", r#""initialize""#)
    }),
    opening("version-missing", |frame| frame.without("version")),
    opening("version-null", |frame| frame.set("version", "null")),
    opening("id-missing", |frame| frame.without("id")),
    opening("id-null", |frame| frame.set("id", "null")),
    opening("id-short", |frame| {
        frame.set("id", r#""0123456789abcdef0123456789abcde""#)
    }),
    opening("type-missing", |frame| frame.without("type")),
    opening("capabilities-missing", |frame| {
        frame.without("capabilities")
    }),
    opening("capabilities-null", |frame| {
        frame.set("capabilities", "null")
    }),
    opening("capabilities-empty", |frame| {
        frame.set("capabilities", "[]")
    }),
    opening("capabilities-without-operation", |frame| {
        frame.set("capabilities", r#"["progress"]"#)
    }),
    bad_opening("capabilities-text", |operation| {
        Frame::initialize(operation)
            .set("capabilities", &quoted(operation.capability()))
            .line()
    }),
    bad_opening("capability-case", |operation| {
        Frame::initialize(operation)
            .set("capabilities", &list(&[operation.capability(), "Progress"]))
            .line()
    }),
    // -- bytes around and inside of initialize --
    bad_opening("byte-order-mark", |operation| {
        [b"\xef\xbb\xbf", &Frame::initialize(operation).line()[..]].concat()
    }),
    bad_opening("leading-space", |operation| {
        [b" ", &Frame::initialize(operation).line()[..]].concat()
    }),
    bad_opening("trailing-space", |operation| {
        ended(Frame::initialize(operation).bare(), b" \n")
    }),
    bad_opening("inner-carriage-return", |operation| {
        let mut wire = Frame::initialize(operation).line();
        wire.insert(1, b'\r');
        wire
    }),
    bad_opening("nul-byte", |operation| {
        ended(Frame::initialize(operation).bare(), b"\0\n")
    }),
    bad_opening("two-objects", |operation| {
        let frame = Frame::initialize(operation);
        [frame.bare(), frame.line()].concat()
    }),
    bad_opening("array-frame", |operation| {
        [b"[", &Frame::initialize(operation).bare()[..], b"]\n"].concat()
    }),
    bad_opening("deep-nesting", |_| ended(vec![b'['; 100_000], b"\n")),
    bad_opening("execute-first", |operation| {
        Frame::execute(operation).line()
    }),
    bad_opening("eof-at-once", |_| Vec::new()),
    bad_opening("eof-mid-initialize", |operation| {
        half(&Frame::initialize(operation))
    }),
    // -- fields of execute --
    bad_execute("execute-key-case", |operation| {
        Frame::execute(operation).rename("operation", "Operation")
    }),
    bad_execute("execute-duplicate-escaped-key", |operation| {
        Frame::execute(operation).with(r"\u0074ype", r#""execute""#)
    }),
    bad_execute("execute-version-missing", |operation| {
        Frame::execute(operation).without("version")
    }),
    bad_execute("execute-id-missing", |operation| {
        Frame::execute(operation).without("id")
    }),
    bad_execute("execute-id-case", |operation| {
        Frame::execute(operation).set("id", &quoted(&SESSION.to_uppercase()))
    }),
    bad_execute("operation-missing", |operation| {
        Frame::execute(operation).without("operation")
    }),
    bad_execute("operation-null", |operation| {
        Frame::execute(operation).set("operation", "null")
    }),
    bad_execute("operation-not-offered", |operation| match operation {
        Operation::Text => Frame::execute(Operation::WorkspaceEdit),
        Operation::WorkspaceEdit => Frame::execute(Operation::Text),
    }),
    bad_execute("payload-missing", |operation| {
        Frame::execute(operation).without(operation.payload())
    }),
    payload("payload-null", "null"),
    payload("payload-lone-surrogate", r#""\ud800""#),
    payload("payload-reversed-surrogates", r#""\ude00\ud83d""#),
    payload("payload-bad-escape", r#""\x61""#),
    payload("payload-raw-control", "\"a\tb\""),
    second("payload-invalid-utf8", |operation| {
        holding(operation, b"\xff")
    }),
    second("payload-overlong-utf8", |operation| {
        holding(operation, b"\xc1\xa1")
    }),
    second("payload-surrogate-bytes", |operation| {
        holding(operation, b"\xed\xa0\x80")
    }),
    workspace("workspace-missing", |frame| frame.without("workspace")),
    workspace("workspace-null", |frame| frame.set("workspace", "null")),
    workspace("workspace-relative", |frame| {
        frame.set("workspace", r#""work""#)
    }),
    workspace("workspace-nul", |frame| {
        frame.set("workspace", r#""/work\u0000""#)
    }),
    workspace("instruction-empty", |frame| {
        frame.set("instruction", r#""""#)
    }),
    workspace("timeout-missing", |frame| frame.without("timeout_ms")),
    workspace("timeout-null", |frame| frame.set("timeout_ms", "null")),
    workspace("timeout-zero", |frame| frame.set("timeout_ms", "0")),
    workspace("timeout-negative", |frame| frame.set("timeout_ms", "-1")),
    workspace("timeout-float", |frame| frame.set("timeout_ms", "1000.0")),
    workspace("timeout-exponent", |frame| frame.set("timeout_ms", "1e3")),
    workspace("timeout-text", |frame| frame.set("timeout_ms", r#""1000""#)),
    workspace("timeout-too-long", |frame| {
        frame.set("timeout_ms", "86400001")
    }),
    // -- bytes and frames in the place of execute --
    second("execute-blank-frame", |_| b"\n".to_vec()),
    second("execute-crlf-frame", |operation| {
        ended(Frame::execute(operation).bare(), b"\r\n")
    }),
    second("execute-non-compact-frame", |operation| {
        let mut wire = Frame::execute(operation).line();
        wire.insert(1, b' ');
        wire
    }),
    second("execute-two-objects", |operation| {
        let frame = Frame::execute(operation);
        [frame.bare(), frame.line()].concat()
    }),
    bad_execute("initialize-twice", Frame::initialize),
    bad_execute("cancel-before-execute", |_| Frame::cancel()),
    second("frame-at-limit", |operation| {
        ended(sized(operation, FRAME_BYTES), b"\n")
    }),
    second("frame-over-limit", |operation| {
        ended(sized(operation, FRAME_BYTES + 1), b"\n")
    }),
    second("eof-after-initialize", |_| Vec::new()),
    second("eof-mid-execute", |operation| {
        half(&Frame::execute(operation))
    }),
    // -- forms that are right --
    session(
        "keys-reordered",
        Trial {
            opening: |_, frame| frame.reversed(),
            execute: |_, frame| frame.reversed(),
            ..Trial::PLAIN
        },
    ),
    session(
        "limits-reordered",
        Trial {
            opening: |_, frame| frame.set("limits", LIMITS_FROM_THE_LAST),
            ..Trial::PLAIN
        },
    ),
    session(
        "escapes-in-strings",
        Trial {
            opening: |operation, frame| {
                frame
                    .set("version", r#""\u00761""#)
                    .set("type", r#""initi\u0061lize""#)
                    .set(
                        "capabilities",
                        &format!("[{}]", escaped(operation.capability())),
                    )
            },
            execute: |operation, frame| {
                frame
                    .set("id", &escaped(SESSION))
                    .set("operation", &escaped(operation.capability()))
                    .set(operation.payload(), &escaped(operation.task()))
            },
            ..Trial::PLAIN
        },
    ),
    session(
        "unusual-characters",
        Trial {
            execute: |operation, frame| {
                let text = format!(
                    "{} \u{7f}\u{85}\u{2028}\u{2029}\u{feff}\u{fffe}\u{10ffff}",
                    operation.task()
                );
                frame.set(operation.payload(), &quoted(&text))
            },
            ..Trial::PLAIN
        },
    ),
    session(
        "largest-payload",
        Trial {
            execute: |operation, frame| {
                let task = operation.task();
                let text = format!("{task} {}", "x".repeat(TEXT_BYTES - task.len() - 1));
                frame.set(operation.payload(), &escaped(&text))
            },
            expect: Expect::Answer,
            ..Trial::PLAIN
        },
    ),
    Scenario {
        only: Some(Operation::Text),
        ..session(
            "empty-input",
            Trial {
                execute: |_, frame| frame.set("input", r#""""#),
                expect: Expect::Answer,
                ..Trial::PLAIN
            },
        )
    },
    session(
        "all-capabilities",
        Trial {
            aspects: Aspect::ALL,
            ..Trial::OFFERS_ALL
        },
    ),
    session(
        "capabilities-reordered",
        Trial {
            offer: Offer::AllFromTheLast,
            aspects: Aspect::ALL,
            ..Trial::PLAIN
        },
    ),
    session(
        "byte-by-byte",
        Trial {
            manner: Manner::ByteByByte,
            execute: |operation, frame| {
                frame.set(
                    operation.payload(),
                    &quoted(&format!("{} é€😀", operation.task())),
                )
            },
            ..Trial::PLAIN
        },
    ),
    session(
        "frames-in-one-write",
        Trial {
            manner: Manner::OneWrite,
            ..Trial::PLAIN
        },
    ),
    // -- conduct --
    session(
        "selection",
        Trial {
            aspects: &[Aspect::Selection],
            ..Trial::OFFERS_ALL
        },
    ),
    session(
        "nothing-unselected",
        Trial {
            aspects: &[Aspect::Unselected],
            ..Trial::PLAIN
        },
    ),
    progress("progress-place", &[Aspect::ProgressPlace]),
    progress("progress-sequence", &[Aspect::ProgressSequence]),
    progress("progress-count", &[Aspect::ProgressCount]),
    progress("progress-stage", &[Aspect::ProgressStage]),
    progress("progress-text", &[Aspect::ProgressText]),
    session(
        "subject-limits",
        Trial {
            needs: Some("commit_subject"),
            aspects: &[Aspect::Subject],
            ..Trial::OFFERS_ALL
        },
    ),
    session(
        "report-limits",
        Trial {
            needs: Some("agent_report"),
            aspects: &[Aspect::Report],
            ..Trial::OFFERS_ALL
        },
    ),
    Scenario {
        only: Some(Operation::Text),
        ..session(
            "output-limit",
            Trial {
                // Three bytes in upper case for two in lower case.
                execute: |_, frame| frame.set("input", &quoted(&"\u{149}".repeat(TEXT_BYTES / 2))),
                expect: Expect::Answer,
                aspects: &[Aspect::Output],
                ..Trial::PLAIN
            },
        )
    },
    cancel("cancel-at-once", Manner::CancelAtOnce),
    cancel("cancel-under-way", Manner::CancelUnderWay),
    session(
        "one-terminal-frame",
        Trial {
            aspects: &[Aspect::Trailing],
            ..Trial::PLAIN
        },
    ),
    session(
        "exit-in-time",
        Trial {
            aspects: &[Aspect::ExitTime],
            ..Trial::PLAIN
        },
    ),
    session(
        "stdin-closed-early",
        Trial {
            manner: Manner::ClosedEarly,
            expect: Expect::AnswerOrRefusal,
            ..Trial::PLAIN
        },
    ),
    session(
        "slow-reader",
        Trial {
            manner: Manner::SlowReader,
            execute: |operation, frame| match operation {
                // A little more than a pipe holds, so that the plugin has to wait for its reader.
                Operation::Text => frame.set("input", &quoted(&"x".repeat(TEXT_BYTES - 36))),
                Operation::WorkspaceEdit => frame,
            },
            expect: Expect::Answer,
            ..Trial::PLAIN
        },
    ),
    session(
        "reader-gone",
        Trial {
            manner: Manner::ReaderGone,
            expect: Expect::Refusal,
            ..Trial::PLAIN
        },
    ),
    session(
        "no-descendant",
        Trial {
            aspects: &[Aspect::Descendant],
            ..Trial::PLAIN
        },
    ),
    session(
        "no-writes-outside",
        Trial {
            watch_files: true,
            ..Trial::PLAIN
        },
    ),
    session(
        "identical-on-repeat",
        Trial {
            twice: true,
            ..Trial::OFFERS_ALL
        },
    ),
];

const fn limits(name: &'static str, from: &'static str, to: &'static str) -> Scenario {
    Scenario {
        name,
        only: None,
        check: Check::BadLimits { from, to },
    }
}

const fn opening(name: &'static str, change: fn(Frame) -> Frame) -> Scenario {
    Scenario {
        name,
        only: None,
        check: Check::ChangedOpening(change),
    }
}

const fn workspace(name: &'static str, change: fn(Frame) -> Frame) -> Scenario {
    Scenario {
        name,
        only: Some(Operation::WorkspaceEdit),
        check: Check::ChangedExecute(change),
    }
}

const fn payload(name: &'static str, raw: &'static str) -> Scenario {
    Scenario {
        name,
        only: None,
        check: Check::BadPayload(raw),
    }
}

const fn second(name: &'static str, wire: fn(Operation) -> Vec<u8>) -> Scenario {
    Scenario {
        name,
        only: None,
        check: Check::BadSecond(wire),
    }
}

const fn session(name: &'static str, trial: Trial) -> Scenario {
    Scenario {
        name,
        only: None,
        check: Check::Session(trial),
    }
}

const fn progress(name: &'static str, aspects: &'static [Aspect]) -> Scenario {
    session(
        name,
        Trial {
            needs: Some("progress"),
            aspects,
            ..Trial::OFFERS_ALL
        },
    )
}

const fn cancel(name: &'static str, manner: Manner) -> Scenario {
    session(
        name,
        Trial {
            manner,
            needs: Some("cancel"),
            expect: Expect::ResultOrCancelled,
            aspects: &[Aspect::CancelTime, Aspect::ExitTime],
            ..Trial::OFFERS_ALL
        },
    )
}

/// Writes the first half of a frame.
fn half(frame: &Frame) -> Vec<u8> {
    let mut wire = frame.bare();
    wire.truncate(wire.len() / 2);
    wire
}

/// Writes an `execute` with these bytes in the middle of its payload.
fn holding(operation: Operation, bytes: &[u8]) -> Vec<u8> {
    const MARK: &str = "MARK";
    let frame = Frame::execute(operation).set(operation.payload(), &quoted(MARK));
    let wire = frame.line();
    let at = wire
        .windows(MARK.len())
        .position(|window| window == MARK.as_bytes())
        .unwrap_or_default();
    let (before, after) = wire.split_at(at);
    let after = after.get(MARK.len()..).unwrap_or_default();
    [before, bytes, after].concat()
}

/// Writes an `execute` of exactly so many bytes, nearly all of them in its payload.
fn sized(operation: Operation, bytes: usize) -> Vec<u8> {
    let frame = Frame::execute(operation).set(operation.payload(), &quoted(""));
    let missing = bytes.saturating_sub(frame.bare().len());
    frame
        .set(operation.payload(), &quoted(&"x".repeat(missing)))
        .bare()
}

/// Writes a text with every character as an escape.
fn escaped(text: &str) -> String {
    let units: Vec<String> = text
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    quoted(&units.concat())
}

/// Every capability, in the order of the protocol or from the last to the first.
pub(crate) fn all_capabilities(from_the_last: bool) -> Vec<&'static str> {
    let mut all = CAPABILITIES.to_vec();
    if from_the_last {
        all.reverse();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: [Operation; 2] = [Operation::Text, Operation::WorkspaceEdit];

    #[test]
    fn frames_of_a_size_have_that_size() {
        for operation in OPERATIONS {
            for bytes in [FRAME_BYTES, FRAME_BYTES + 1] {
                assert_eq!(sized(operation, bytes).len(), bytes);
            }
            assert!(serde_json::from_slice::<serde_json::Value>(&sized(operation, 2_000)).is_ok());
        }
    }

    #[test]
    fn an_escaped_text_is_the_same_text() {
        let text = "feat: é😀/";
        let read: String = serde_json::from_str(&escaped(text)).unwrap();
        assert_eq!(read, text);
        assert!(escaped(text).is_ascii());
    }

    #[test]
    fn raw_bytes_stand_inside_of_the_payload() {
        let wire = holding(Operation::Text, b"\xff");
        assert!(wire.ends_with(b"\"input\":\"\xff\"}\n"));
    }

    #[test]
    fn every_right_form_is_json_that_says_the_same() {
        for operation in OPERATIONS {
            let value =
                |frame: &Frame| serde_json::from_slice::<serde_json::Value>(&frame.bare()).unwrap();
            for name in ["keys-reordered", "limits-reordered", "escapes-in-strings"] {
                let scenario = SCENARIOS.iter().find(|one| one.name == name).unwrap();
                let Check::Session(trial) = scenario.check else {
                    panic!("`{name}` is a session");
                };
                let opening = Frame::initialize(operation);
                let execute =
                    Frame::execute(operation).set(operation.payload(), &quoted(operation.task()));
                assert_eq!(
                    value(&(trial.opening)(operation, opening.clone())),
                    value(&opening),
                    "{name}"
                );
                assert_eq!(
                    value(&(trial.execute)(operation, execute.clone())),
                    value(&execute),
                    "{name}"
                );
            }
        }
    }
}
