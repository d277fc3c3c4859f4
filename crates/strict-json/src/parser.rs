//! The reader: bytes in, one complete value out, or the first rule that the bytes break.
//!
//! It is written by hand instead of sitting on a serde tokenizer for three reasons: numbers must
//! not depend on features that another crate in the build turns on, fractions must round
//! correctly, and every refusal must know its byte.

use crate::error::JsonError;
use crate::value::{Json, Object};

/// Deepest nesting that any reader accepts, whatever its limits say: the reader recurses.
pub const MAX_DEPTH: usize = 512;

/// How much a reader takes before it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole document: this many pass, one more fails.
    pub bytes: usize,
    /// Levels of objects and arrays, the outermost included; at most [`MAX_DEPTH`].
    pub depth: usize,
}

/// Whether white space between tokens is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// No byte outside of strings that JSON would let the writer drop.
    Compact,
    /// Space, tab, line feed and carriage return may stand between tokens.
    Spaced,
}

/// Reads exactly one object and nothing else.
pub fn parse_object(bytes: &[u8], limits: &Limits, layout: Layout) -> Result<Object, JsonError> {
    match parse_value(bytes, limits, layout)? {
        Json::Object(object) => Ok(object),
        other => Err(JsonError::NotAnObject {
            found: other.kind(),
        }),
    }
}

/// Reads exactly one value of any kind and nothing else.
pub fn parse_value(bytes: &[u8], limits: &Limits, layout: Layout) -> Result<Json, JsonError> {
    if bytes.len() > limits.bytes {
        return Err(JsonError::TooLong {
            limit: limits.bytes,
            actual: bytes.len(),
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError::InvalidUtf8 {
        offset: error.valid_up_to(),
    })?;
    if text.starts_with('\u{feff}') {
        return Err(JsonError::ByteOrderMark);
    }
    let mut parser = Parser {
        text,
        position: 0,
        layout,
        depth: 0,
        depth_limit: limits.depth.min(MAX_DEPTH),
    };
    parser.skip_space()?;
    if parser.peek().is_none() {
        return Err(JsonError::Empty);
    }
    let value = parser.value()?;
    parser.skip_space()?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(JsonError::TrailingData {
            offset: parser.position,
        }),
    }
}

/// A position in a text; each method reads one construct and stands behind it afterwards.
pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) position: usize,
    layout: Layout,
    depth: usize,
    depth_limit: usize,
}

impl Parser<'_> {
    fn value(&mut self) -> Result<Json, JsonError> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Json::Bool(true)),
            Some(b'f') => self.literal("false", Json::Bool(false)),
            Some(b'n') => self.literal("null", Json::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Json, JsonError>,
    ) -> Result<Json, JsonError> {
        if self.depth >= self.depth_limit {
            return Err(JsonError::TooDeep {
                limit: self.depth_limit,
                offset: self.position,
            });
        }
        self.depth += 1;
        self.position += 1;
        self.skip_space()?;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Reads the members and the closing brace; the opening one is behind us.
    fn object(&mut self) -> Result<Json, JsonError> {
        let mut members = Vec::new();
        if !self.eat(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.expected("a key in double quotes"));
                }
                let key = self.string()?;
                self.skip_space()?;
                if !self.eat(b':') {
                    return Err(self.expected("`:`"));
                }
                self.skip_space()?;
                members.push((key, self.value()?));
                self.skip_space()?;
                if self.eat(b'}') {
                    break;
                }
                if !self.eat(b',') {
                    return Err(self.expected("`,` or `}`"));
                }
                self.skip_space()?;
            }
        }
        Object::from_members(members)
            .map(Json::Object)
            .map_err(|key| JsonError::DuplicateKey { key })
    }

    /// Reads the items and the closing bracket; the opening one is behind us.
    fn array(&mut self) -> Result<Json, JsonError> {
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space()?;
            if self.eat(b']') {
                return Ok(Json::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.expected("`,` or `]`"));
            }
            self.skip_space()?;
        }
    }

    fn literal(&mut self, word: &'static str, value: Json) -> Result<Json, JsonError> {
        let rest = self.text.get(self.position..).unwrap_or_default();
        if rest.starts_with(word) {
            self.position += word.len();
            Ok(value)
        } else {
            Err(self.expected("`true`, `false` or `null`"))
        }
    }

    fn skip_space(&mut self) -> Result<(), JsonError> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            if self.layout == Layout::Compact {
                return Err(JsonError::NotCompact {
                    offset: self.position,
                });
            }
            self.position += 1;
        }
        Ok(())
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.position += 1;
        }
        found
    }

    pub(crate) fn expected(&self, expected: &'static str) -> JsonError {
        JsonError::Syntax {
            offset: self.position,
            expected,
        }
    }
}
