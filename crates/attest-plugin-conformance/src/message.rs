//! What a plugin wrote, cut into messages, also where the cut is not where it should be.
//!
//! A message that is spread over several lines is put together again and the fault is remembered,
//! so that the scenario about lines fails and the others can still judge what was said.

use serde_json::Value;
use strict_json::{Layout, Limits, MAX_DEPTH, Object, parse_object};

use crate::shown;

/// More output at once than a plugin can have a use for.
pub(crate) const FLOOD: usize = 8 * 1_048_576;

/// How many lines are put together, and how many bytes, before they are stray.
const JOINED_LINES: usize = 200;
const JOINED_BYTES: usize = 2 * 1_048_576;

/// One message as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Its bytes without the line feed.
    pub(crate) raw: Vec<u8>,
    /// Its members for those who do not care about the form.
    pub(crate) value: Value,
    /// Its members, or why a strict reader refuses them.
    pub(crate) strict: Result<Object, String>,
}

/// A part of an output.
#[derive(Debug)]
pub(crate) enum Piece {
    /// An object of JSON.
    Message(Message),
    /// A line that is none.
    Stray(Vec<u8>),
}

impl Message {
    fn read(raw: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(raw).ok()?;
        if !value.is_object() {
            return None;
        }
        let limits = Limits {
            bytes: FLOOD,
            depth: MAX_DEPTH,
        };
        Some(Self {
            raw: raw.to_owned(),
            value,
            strict: parse_object(raw, &limits, Layout::Spaced)
                .map_err(|error| shown::explain(&error)),
        })
    }

    /// The id, if it is a whole number.
    pub(crate) fn id(&self) -> Option<u64> {
        self.value.get("id")?.as_u64()
    }

    /// The kind, if it is a text.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.value.get("kind")?.as_str()
    }

    /// The decision of a verdict.
    pub(crate) fn decision(&self) -> Option<&str> {
        self.value.get("decision")?.as_str()
    }

    /// Quotes the message.
    pub(crate) fn quoted(&self) -> String {
        shown::quoted(&self.raw)
    }

    /// Says why the message is not written as one compact line, if it is not.
    pub(crate) fn loose(&self) -> Option<String> {
        let limits = Limits {
            bytes: FLOOD,
            depth: MAX_DEPTH,
        };
        if self.raw.contains(&b'\n') {
            return Some(format!(
                "expected one line, got a message over several: {}",
                self.quoted()
            ));
        }
        // Whatever else is wrong with it is the fault of another scenario.
        let spaced = parse_object(&self.raw, &limits, Layout::Spaced).is_ok()
            && parse_object(&self.raw, &limits, Layout::Compact).is_err();
        spaced.then(|| {
            format!(
                "expected compact JSON, got white space between its parts: {}",
                self.quoted()
            )
        })
    }
}

/// Cuts an output into pieces as it comes.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    /// How much of the buffer is known to have no line feed.
    searched: usize,
    /// Lines that are the beginning of a message.
    begun: Vec<u8>,
    begun_lines: usize,
    flooded: bool,
}

impl Splitter {
    /// Takes output, unless too much waits already: then the rest is lost, and it is known.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() <= FLOOD {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.flooded = true;
        }
    }

    pub(crate) const fn flooded(&self) -> bool {
        self.flooded
    }

    /// Returns the next piece that is complete.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        loop {
            let line = self.line()?;
            let mut raw = std::mem::take(&mut self.begun);
            let joined = !raw.is_empty();
            if joined {
                raw.push(b'\n');
            }
            raw.extend_from_slice(&line);
            if let Some(message) = Message::read(&raw) {
                self.begun_lines = 0;
                return Some(Piece::Message(message));
            }
            if self.begun_lines < JOINED_LINES && begins_an_object(&raw) {
                self.begun = raw;
                self.begun_lines += 1;
                continue;
            }
            self.begun_lines = 0;
            return Some(Piece::Stray(raw));
        }
    }

    /// Returns what is left without a line feed when the output has ended.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        let mut rest = std::mem::take(&mut self.begun);
        rest.append(&mut self.buffer);
        rest
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let found = self
            .buffer
            .iter()
            .skip(self.searched)
            .position(|byte| *byte == b'\n');
        let Some(at) = found else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line: Vec<u8> = self.buffer.drain(..=self.searched + at).collect();
        line.pop();
        self.searched = 0;
        Some(line)
    }
}

/// Whether more lines could make an object of these.
fn begins_an_object(raw: &[u8]) -> bool {
    raw.len() <= JOINED_BYTES
        && raw.trim_ascii_start().starts_with(b"{")
        && serde_json::from_slice::<Value>(raw).is_err_and(|error| error.is_eof())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(output: &[u8]) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut found = Vec::new();
        // A byte at a time, so that nothing depends on how the output is delivered.
        for byte in output {
            splitter.push(std::slice::from_ref(byte));
            while let Some(piece) = splitter.next() {
                found.push(match piece {
                    Piece::Message(message) => format!("message {}", message.value),
                    Piece::Stray(raw) => format!("stray {}", shown::quoted(&raw)),
                });
            }
        }
        let rest = splitter.rest();
        if !rest.is_empty() {
            found.push(format!("rest {}", shown::quoted(&rest)));
        }
        found
    }

    #[test]
    fn a_line_is_a_message_or_stray() {
        assert_eq!(
            pieces(b"{\"a\":1}\nready\n[1]\n\n{\"b\":2}\r\n{\"c\""),
            [
                "message {\"a\":1}",
                "stray `ready`",
                "stray `[1]`",
                "stray an empty line",
                "message {\"b\":2}",
                "rest `{\"c\"`",
            ]
        );
    }

    #[test]
    fn a_message_over_several_lines_is_put_together() {
        assert_eq!(
            pieces(b"{\n  \"a\": 1\n}\n{\"b\":2}\n{ oops\n"),
            ["message {\"a\":1}", "message {\"b\":2}", "stray `{ oops`"]
        );
    }

    #[test]
    fn what_is_not_compact_says_why() {
        let loose = |raw: &[u8]| Message::read(raw).unwrap().loose();
        assert_eq!(loose(b"{\"a\":[1,2],\"b\":\" \"}"), None);
        assert!(loose(b"{\"a\": 1}").unwrap().contains("white space"));
        assert!(loose(b"{\"a\":1}\r").unwrap().contains("white space"));
        assert!(loose(b"{\n\"a\":1}").unwrap().contains("one line"));
        assert_eq!(loose(b"{\"a\":1,\"a\":2}"), None, "told by another");
    }

    #[test]
    fn only_so_much_is_kept() {
        let mut splitter = Splitter::default();
        splitter.push(&vec![b'x'; FLOOD]);
        assert!(!splitter.flooded());
        splitter.push(b"x");
        assert!(splitter.flooded());
        assert_eq!(splitter.buffer.len(), FLOOD);
    }
}
