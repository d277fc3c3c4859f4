//! JSON, read by its own strict reader and kept with its lines and the spelling of its numbers.

use strict_json::{Json, JsonError, Layout};
use strict_yaml::{
    Limits, MAX_VALUES, Node, Value, YamlError, duplicate as duplicate_key, line_at, too_many,
};

/// Reads a document as JSON; `None` says that by its first character or its syntax it is none.
pub(super) fn read(text: &str, limits: &Limits) -> Option<Result<Node, YamlError>> {
    if !text.trim_start_matches([' ', '\t', '\n']).starts_with('{') {
        return None;
    }
    if let Some(position) = one_value_too_many(text) {
        let line = line_at(text.as_bytes(), position);
        return Some(Err(YamlError::refused(line, too_many())));
    }
    let allowed = strict_json::Limits {
        bytes: limits.bytes,
        depth: limits.depth,
    };
    match strict_json::parse_value(text.as_bytes(), &allowed, Layout::Spaced) {
        Ok(value) => Some(Ok(Tokens::new(text).node(value))),
        Err(JsonError::Syntax { .. }) => None,
        Err(error) => Some(Err(refused(text, limits, &error))),
    }
}

fn refused(text: &str, limits: &Limits, error: &JsonError) -> YamlError {
    match error {
        JsonError::DuplicateKey { key } => duplicate(text, limits, key),
        other => {
            let line = line_at(text.as_bytes(), other.offset().unwrap_or(0));
            YamlError::refused(line, other.to_string())
        }
    }
}

/// Says it as of a YAML document. The reader of JSON keeps no place of a key, the one of YAML
/// does.
fn duplicate(text: &str, limits: &Limits, key: &str) -> YamlError {
    let reason = duplicate_key(key);
    match strict_yaml::read(text, limits) {
        Err(YamlError::Refused { line, reason: said }) if said == reason => {
            YamlError::refused(line, reason)
        }
        _ => YamlError::refused(1, reason),
    }
}

/// Finds the place where a document would have more than [`MAX_VALUES`], before it costs memory.
fn one_value_too_many(text: &str) -> Option<usize> {
    let mut values = 0;
    let mut quoted = false;
    let mut escaped = false;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => values += 1,
            _ => {}
        }
        if values > MAX_VALUES {
            return Some(position);
        }
    }
    None
}

/// The tokens of a text that is known to be JSON, in the order of the document.
struct Tokens<'a> {
    text: &'a str,
    position: usize,
    line: usize,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            position: 0,
            line: 1,
        }
    }

    /// Takes the tokens of one value.
    fn node(&mut self, value: Json) -> Node {
        let token = self.token();
        let line = self.line;
        let value = match value {
            Json::Text(text) => Value::Scalar { text, plain: false },
            Json::Array(items) => {
                Value::Sequence(items.into_iter().map(|item| self.node(item)).collect())
            }
            Json::Object(members) => Value::Mapping(
                members
                    .into_iter()
                    .map(|(key, value)| {
                        self.token();
                        (key, self.node(value))
                    })
                    .collect(),
            ),
            // As it is spelled: where a text is wanted, `1.10` is not `1.1`.
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Unsigned(_) | Json::Number(_) => {
                Value::Scalar {
                    text: token.to_owned(),
                    plain: true,
                }
            }
        };
        Node { value, line }
    }

    /// Returns the next opening bracket, string or plain word.
    fn token(&mut self) -> &'a str {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b',' | b':' | b']' | b'}' => {}
                _ => break,
            }
            self.position += 1;
        }
        let start = self.position;
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'[' | b'{') => self.position += 1,
            _ => self.skip_word(),
        }
        self.text.get(start..self.position).unwrap_or_default()
    }

    fn skip_string(&mut self) {
        self.position += 1;
        while let Some(byte) = self.peek() {
            self.position += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
    }

    fn skip_word(&mut self) {
        while let Some(b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E') = self.peek() {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }
}
