//! The writers: compact JSON in the order of the fields, in two escape styles.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Writes compact JSON that escapes only what JSON requires; no line feed at the end.
///
/// # Panics
///
/// If the `Serialize` implementation of the value fails, for instance because a map has keys that
/// are no strings. That is a mistake in the type, not in the data.
pub fn to_line<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    write(value, CompactFormatter)
}

/// Writes compact JSON that also escapes `<`, `>`, `&`, U+2028 and U+2029, as the Forge wires do;
/// no line feed at the end.
///
/// # Panics
///
/// As [`to_line`].
pub fn to_forge_frame<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    write(value, ForgeFormatter)
}

fn write<T: Serialize + ?Sized, F: Formatter>(value: &T, formatter: F) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let result = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    #[expect(
        clippy::panic,
        reason = "a vector takes every byte; only a faulty type gets here"
    )]
    if let Err(error) = result {
        panic!("a type that cannot be written as JSON: {error}");
    }
    out
}

struct ForgeFormatter;

impl Formatter for ForgeFormatter {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((before, escape, after)) = split_at_special(rest) {
            writer.write_all(before.as_bytes())?;
            writer.write_all(escape.as_bytes())?;
            rest = after;
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Splits at the first character that the Forge style escapes: before, its escape, after.
fn split_at_special(text: &str) -> Option<(&str, &'static str, &str)> {
    text.char_indices().find_map(|(at, c)| {
        let escape = match c {
            '<' => r"\u003c",
            '>' => r"\u003e",
            '&' => r"\u0026",
            '\u{2028}' => r"\u2028",
            '\u{2029}' => r"\u2029",
            _ => return None,
        };
        let (before, from) = text.split_at_checked(at)?;
        Some((before, escape, from.get(c.len_utf8()..)?))
    })
}
