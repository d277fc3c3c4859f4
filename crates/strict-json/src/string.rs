//! Strings: escapes resolved, surrogates paired, control characters refused.

use crate::error::JsonError;
use crate::parser::Parser;

impl Parser<'_> {
    /// Reads a string; the opening quote is at the current position.
    pub(crate) fn string(&mut self) -> Result<String, JsonError> {
        self.position += 1;
        let mut out = String::new();
        loop {
            let start = self.position;
            while let Some(byte) = self.peek() {
                if byte == b'"' || byte == b'\\' || byte < 0x20 {
                    break;
                }
                self.position += 1;
            }
            out.push_str(self.text.get(start..self.position).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => {
                    return Err(JsonError::ControlCharacter {
                        offset: self.position,
                    });
                }
                None => return Err(self.expected("`\"`")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.position;
        self.position += 1;
        let simple = match self.peek() {
            Some(b'u') => {
                self.position += 1;
                return self.unicode_escape(start);
            }
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.expected("an escape")),
        };
        self.position += 1;
        Ok(simple)
    }

    /// Reads the digits of an escape that started at `start`, and of its second half if it is one.
    fn unicode_escape(&mut self, start: usize) -> Result<char, JsonError> {
        let lone = JsonError::LoneSurrogate { offset: start };
        let first = self.four_hex_digits()?;
        let code = match first {
            0xdc00..=0xdfff => return Err(lone),
            0xd800..=0xdbff => {
                if !(self.eat(b'\\') && self.eat(b'u')) {
                    return Err(lone);
                }
                let second = self.four_hex_digits()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(lone);
                }
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            other => other,
        };
        char::from_u32(code).ok_or(lone)
    }

    fn four_hex_digits(&mut self) -> Result<u32, JsonError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.expected("four hexadecimal digits"));
            };
            code = code * 16 + digit;
            self.position += 1;
        }
        Ok(code)
    }
}
