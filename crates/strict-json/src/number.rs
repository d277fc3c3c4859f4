//! Numbers: plain integers stay exact, everything else becomes the nearest double.

use crate::error::JsonError;
use crate::parser::Parser;
use crate::value::Json;

impl Parser<'_> {
    /// Reads a number by the grammar of RFC 8259 section 6.
    pub(crate) fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.position;
        let negative = self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        let mut plain = true;
        if self.eat(b'.') {
            plain = false;
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            plain = false;
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        let text = self.text.get(start..self.position).unwrap_or_default();
        // `-0` is no plain integer: as one it would lose its sign.
        if plain && !(negative && text == "-0") {
            if let Ok(value) = text.parse::<i64>() {
                return Ok(Json::Integer(value));
            }
            if let Ok(value) = text.parse::<u64>() {
                return Ok(Json::Unsigned(value));
            }
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Json::Number(value)),
            _ => Err(JsonError::NumberOutOfRange { offset: start }),
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.position;
        while let Some(b'0'..=b'9') = self.peek() {
            self.position += 1;
        }
        if self.position == start {
            Err(self.expected("a digit"))
        } else {
            Ok(())
        }
    }
}
