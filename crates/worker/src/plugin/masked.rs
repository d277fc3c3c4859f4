//! What a plugin may have and must not spill: the values of its environment, taken out of what the
//! log says about its end. A plugin that hides a value on purpose can: this is for accidents.

use std::ffi::OsString;

use cli_shell::visible;

/// Shorter texts are in every second sentence, and no secrets.
const SHORTEST: usize = 8;
/// Where a text was cut.
const CUT: char = '…';

/// Puts `[NAME]` in place of each value, of each of its lines, and of its base64 form; also where
/// the text was cut in the middle of one.
pub(super) fn masked(text: &str, environment: &[(OsString, OsString)]) -> String {
    let mut forms: Vec<(String, String)> = environment
        .iter()
        .flat_map(|(name, value)| {
            let name = format!("[{}]", visible(&name.to_string_lossy()));
            forms(value)
                .into_iter()
                .map(move |form| (form, name.clone()))
        })
        .collect();
    // The whole before its parts.
    forms.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
    let whole = forms.iter().fold(text.to_owned(), |text, (form, name)| {
        text.replace(form.as_str(), name)
    });
    forms
        .iter()
        .fold(whole, |text, (form, name)| at_cuts(&text, form, name))
}

/// How a value may look in a log.
fn forms(value: &OsString) -> Vec<String> {
    let Some(text) = value.to_str() else {
        return Vec::new();
    };
    let lines = text.lines().map(str::trim);
    let plain = std::iter::once(text).chain(lines).map(visible);
    let encoded = (0..3).map(|before| base64(text.trim_end().as_bytes(), before));
    plain
        .chain(encoded)
        .filter(|form| form.len() >= SHORTEST)
        .collect()
}

/// The part of a base64 text that depends on `bytes` alone, if `before` bytes come before them.
fn base64(bytes: &[u8], before: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let all: Vec<u8> = std::iter::repeat_n(0, before)
        .chain(bytes.iter().copied())
        .collect();
    let bits = all.len() * 8;
    (0..bits / 6)
        .skip((before * 8).div_ceil(6))
        .filter_map(|index| {
            let at = index * 6;
            let pair =
                u16::from_be_bytes([*all.get(at / 8)?, all.get(at / 8 + 1).copied().unwrap_or(0)]);
            let six = pair >> (10 - at % 8) & 0x3f;
            LETTERS.get(usize::from(six)).copied().map(char::from)
        })
        .collect()
}

/// Masks the rest of a value behind a cut and the beginning of one before it.
fn at_cuts(text: &str, form: &str, name: &str) -> String {
    let parts: Vec<&str> = text.split(CUT).collect();
    let last = parts.len() - 1;
    let shown = parts.into_iter().enumerate().map(|(index, part)| {
        let mut part = part.to_owned();
        if index > 0
            && let Some(rest) = suffixes(form).find(|rest| part.starts_with(rest))
        {
            part.replace_range(..rest.len(), name);
        }
        if index < last
            && let Some(start) = prefixes(form).find(|start| part.ends_with(start))
        {
            part.replace_range(part.len() - start.len().., name);
        }
        part
    });
    shown.collect::<Vec<_>>().join(&CUT.to_string())
}

/// The proper endings of a text that are not too short, the longest first.
fn suffixes(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.char_indices().skip(1).map(|(at, _)| at);
    starts
        .filter_map(|at| text.get(at..))
        .take_while(|rest| rest.len() >= SHORTEST / 2)
}

fn prefixes(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.char_indices().rev().map(|(at, _)| at);
    ends.filter_map(|at| text.get(..at))
        .take_while(|start| start.len() >= SHORTEST / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "first-line-4b1f9d\nsecond-line-77e02a";

    fn mask(text: &str) -> String {
        masked(
            text,
            &[("KEY".into(), KEY.into()), ("SHORT".into(), "of".into())],
        )
    }

    #[test]
    fn r59_values_are_masked_whole_and_line_by_line() {
        assert_eq!(mask(&format!("bad {}!", visible(KEY))), "bad [KEY]!");
        assert_eq!(
            mask("bad first-line-4b1f9d, second-line-77e02a"),
            "bad [KEY], [KEY]"
        );
        assert_eq!(mask("the end of it"), "the end of it");
    }

    #[test]
    fn r59_values_are_masked_in_base64_wherever_they_begin() {
        for (encoded, expected) in [
            // What stands before and behind shares a letter with the value, and tells little of it.
            ("Zmlyc3QtbGluZS00YjFmOWQKc2Vjb25kLWxpbmUtNzdlMDJh", "[KEY]"),
            (
                "dTpmaXJzdC1saW5lLTRiMWY5ZApzZWNvbmQtbGluZS03N2UwMmE=",
                "dTp[KEY]E=",
            ),
            (
                "dXNlcjpmaXJzdC1saW5lLTRiMWY5ZApzZWNvbmQtbGluZS03N2UwMmE=",
                "dXNlcjp[KEY]E=",
            ),
        ] {
            assert_eq!(mask(&format!("auth {encoded}")), format!("auth {expected}"));
        }
    }

    #[test]
    fn r59_values_that_a_cut_split_are_masked() {
        assert_eq!(mask("…line-4b1f9d is no key"), "…[KEY] is no key");
        assert_eq!(mask("no key: first-li…"), "no key: [KEY]…");
        assert_eq!(mask("…9d"), "…9d");
    }
}
