//! What the parser is given in place of the text, so that two of its faults are out of reach.
//!
//! libyaml-safer 0.3 panics at some ends of input without a line break, and on a tag in front of
//! a comma. So a missing last line break is added, and `!`, which means nothing but a tag, is
//! replaced by a character that has no meaning and does not occur. Both are undone in what comes
//! back.

use std::borrow::Cow;

use libyaml_safer::Mark;

use crate::YamlError;

/// A text without the two faults' causes.
pub(crate) struct Fed<'a> {
    text: Cow<'a, str>,
    stand_in: Option<char>,
    added_break: bool,
}

impl<'a> Fed<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, YamlError> {
        let added_break = !text.is_empty() && !text.ends_with(is_break);
        let stand_in = match text.contains('!') {
            true => Some(unused(text)?),
            false => None,
        };
        let mut fed = match stand_in {
            None => Cow::Borrowed(text),
            Some(stand_in) => Cow::Owned(text.replace('!', stand_in.encode_utf8(&mut [0; 4]))),
        };
        if added_break {
            fed.to_mut().push('\n');
        }
        Ok(Self {
            text: fed,
            stand_in,
            added_break,
        })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Returns a scalar as the document has it.
    pub(crate) fn original(
        &self,
        text: String,
        plain: bool,
        line: usize,
    ) -> Result<String, YamlError> {
        match self.stand_in {
            Some(stand_in) if plain && text.starts_with(stand_in) => {
                Err(YamlError::refused(line, "tags are not allowed"))
            }
            Some(stand_in) if text.contains(stand_in) => Ok(text.replace(stand_in, "!")),
            _ => Ok(text),
        }
    }

    /// Takes the added line break out of a block scalar that reaches the end of the text.
    pub(crate) fn without_added_break(
        &self,
        mut text: String,
        start: Mark,
        end: Mark,
        line: usize,
    ) -> Result<String, YamlError> {
        let reaches_end = usize::try_from(end.index) == Ok(self.text.len());
        if !self.added_break || !reaches_end {
            return Ok(text);
        }
        match self.chomping(start) {
            Some('-') => return Ok(text),
            // Whether the spaces are a line of the text depends on the indentation, which the
            // parser keeps to itself. No writer ends a document like this.
            None if self.last_line_is_blank() => {
                let reason = "a text ends in spaces without a line break";
                return Err(YamlError::refused(line, reason));
            }
            _ => {}
        }
        if text.ends_with('\n') {
            text.pop();
        }
        Ok(text)
    }

    /// Returns the `+` or `-` in the head of a block scalar.
    fn chomping(&self, start: Mark) -> Option<char> {
        let head = usize::try_from(start.index)
            .ok()
            .and_then(|start| self.text.get(start..))
            .unwrap_or_default();
        head.chars()
            .skip(1)
            .take(2)
            .find(|c| matches!(c, '+' | '-'))
    }

    fn last_line_is_blank(&self) -> bool {
        let text = self.text.strip_suffix('\n').unwrap_or(&self.text);
        let last = text.rsplit(is_break).next().unwrap_or_default();
        last.bytes().all(|byte| byte == b' ')
    }
}

/// The line breaks of YAML 1.1, without the carriage return, which is refused earlier.
fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Finds a noncharacter that does not occur.
fn unused(text: &str) -> Result<char, YamlError> {
    ('\u{fdd0}'..='\u{fdef}')
        .find(|c| !text.contains(*c))
        .ok_or_else(|| YamlError::refused(1, "every noncharacter from U+FDD0 to U+FDEF occurs"))
}
