//! libyaml's events of one document, with everything refused that is not plain data.

use std::io::BufReader;

use libyaml_safer::{Encoding, Error, Event, EventData, Mark, Parser, ScalarStyle};

use crate::build::Builder;
use crate::fed::Fed;
use crate::{Limits, Node, Value, YamlError};

/// Bytes that are decoded ahead: the parser keeps four for each of them.
const READ_AHEAD: usize = 8 * 1024;

/// Reads a text whose characters were checked.
pub(crate) fn read(text: &str, limits: &Limits) -> Result<Node, YamlError> {
    let fed = Fed::new(text)?;
    let mut parser = Parser::new();
    // Left to guess, the parser takes every first byte 0xef for a byte order mark.
    parser.set_encoding(Encoding::Utf8);
    parser.set_input(BufReader::with_capacity(READ_AHEAD, fed.as_bytes()));
    let mut document = Document {
        builder: Builder::new(limits.depth),
        fed: &fed,
        started: false,
    };
    loop {
        let event = parser.parse().map_err(|error| malformed(&error))?;
        if event.data == EventData::StreamEnd {
            break;
        }
        document.event(event)?;
    }
    let root = document.builder.finish();
    Ok(root.filter(has_content).unwrap_or_else(nothing))
}

/// Tells whether a document is more than the empty scalar behind a `---`.
fn has_content(root: &Node) -> bool {
    !matches!(&root.value, Value::Scalar { text, plain: true } if text.is_empty())
}

/// A document in the making.
struct Document<'a> {
    builder: Builder,
    fed: &'a Fed<'a>,
    started: bool,
}

impl Document<'_> {
    fn event(&mut self, event: Event) -> Result<(), YamlError> {
        let line = line_of(event.start_mark);
        let refused = |reason: &str| Err(YamlError::refused(line, reason));
        match event.data {
            EventData::DocumentStart { .. } if self.started => {
                refused("a second document is not allowed")
            }
            EventData::DocumentStart {
                version_directive: None,
                tag_directives,
                ..
            } if tag_directives.is_empty() => {
                self.started = true;
                Ok(())
            }
            EventData::DocumentStart { .. } => refused("directives are not allowed"),
            EventData::DocumentEnd { implicit: false } => refused("`...` is not allowed"),
            EventData::Alias { .. } => refused("aliases are not allowed"),
            EventData::Scalar {
                anchor: Some(_), ..
            }
            | EventData::SequenceStart {
                anchor: Some(_), ..
            }
            | EventData::MappingStart {
                anchor: Some(_), ..
            } => refused("anchors are not allowed"),
            EventData::Scalar { tag: Some(_), .. }
            | EventData::SequenceStart { tag: Some(_), .. }
            | EventData::MappingStart { tag: Some(_), .. } => refused("tags are not allowed"),
            EventData::Scalar { value, style, .. } => {
                self.scalar(value, style, event.start_mark, event.end_mark)
            }
            EventData::SequenceStart { .. } => self.builder.sequence(line),
            EventData::MappingStart { .. } => self.builder.mapping(line),
            EventData::SequenceEnd | EventData::MappingEnd => self.builder.end(),
            EventData::StreamStart { .. }
            | EventData::StreamEnd
            | EventData::DocumentEnd { implicit: true } => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        start: Mark,
        end: Mark,
    ) -> Result<(), YamlError> {
        let line = line_of(start);
        let plain = style == ScalarStyle::Plain;
        let text = if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
            self.fed.without_added_break(text, start, end, line)?
        } else {
            text
        };
        let text = self.fed.original(text, plain, line)?;
        self.builder.scalar(text, plain, line)
    }
}

/// What a document without content holds.
fn nothing() -> Node {
    Node {
        value: Value::Scalar {
            text: "null".to_owned(),
            plain: true,
        },
        line: 1,
    }
}

/// Repeats the parser's words, which never hold a part of the document.
fn malformed(error: &Error) -> YamlError {
    let line = error.problem_mark().map_or(1, line_of);
    match error.context() {
        None => YamlError::refused(line, error.problem()),
        Some(context) => YamlError::refused(line, format!("{} {context}", error.problem())),
    }
}

fn line_of(mark: Mark) -> usize {
    usize::try_from(mark.line).map_or(usize::MAX, |line| line.saturating_add(1))
}
