//! Reading what a Gate answers: strict JSON, bounded, unknown fields passed over.
//!
//! A newer Gate may say more than this client knows, so only what is needed must be there.

use cli_shell::visible;
use strict_json::{Json, JsonError, Layout, Limits};

/// The longest accepted answer, in bytes.
pub(crate) const ANSWER_BYTES: usize = 8 * 1024 * 1024;

const ANSWER_DEPTH: usize = 32;
const SHOWN_BYTES: usize = 300;

pub(crate) fn parse(body: &[u8]) -> Result<Json, JsonError> {
    let limits = Limits {
        bytes: ANSWER_BYTES,
        depth: ANSWER_DEPTH,
    };
    strict_json::parse_value(body, &limits, Layout::Spaced)
}

/// Returns code and message of an error's body, whichever of the known shapes it has.
pub(crate) fn refusal(body: &[u8]) -> (String, String) {
    let Ok(Json::Object(object)) = parse(body) else {
        let text = String::from_utf8_lossy(body);
        return (String::new(), shown(text.trim()));
    };
    let mut fields = object.fields("");
    let mut code = String::new();
    let message = match fields.opt_value("error") {
        Ok(Some(Json::Object(inner))) => {
            let mut inner = inner.fields("error");
            code = inner.opt_text("code").ok().flatten().unwrap_or_default();
            inner.opt_text("message").ok().flatten()
        }
        Ok(Some(Json::Text(text))) => Some(match fields.opt_text("reason") {
            Ok(Some(reason)) => format!("{text}: {reason}"),
            _ => text,
        }),
        _ => fields.opt_text("message").ok().flatten(),
    };
    let message = message.filter(|text| !text.is_empty());
    let message = message.unwrap_or_else(|| code.clone());
    (code, shown(&message))
}

/// Makes a Gate's words safe to print and short.
fn shown(text: &str) -> String {
    let mut text = visible(text);
    if text.is_empty() {
        return "no reason given".to_owned();
    }
    if let Some((cut, _)) = text.char_indices().nth(SHOWN_BYTES) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_refusal_is_read() {
        let cases: [(&[u8], &str, &str); 7] = [
            (b"{\"error\":\"invalid request\"}", "", "invalid request"),
            (
                b"{\"error\":{\"code\":\"job_terminal\",\"message\":\"job has ended\"}}",
                "job_terminal",
                "job has ended",
            ),
            (
                b"{\"error\":{\"code\":\"job_terminal\"}}",
                "job_terminal",
                "job_terminal",
            ),
            (b"{\"message\":\"not found\"}\n", "", "not found"),
            (
                b"{\"error\":\"failed\",\"reason\":\"clone\"}",
                "",
                "failed: clone",
            ),
            (b"unauthorized\n", "", "unauthorized"),
            (b"", "", "no reason given"),
        ];
        for (body, code, message) in cases {
            assert_eq!(refusal(body), (code.to_owned(), message.to_owned()));
        }
    }

    #[test]
    fn foreign_words_are_visible_and_short() {
        let (_, message) = refusal("<html>\u{1b}[2J\u{202e}".repeat(200).as_bytes());
        assert!(!message.contains('\u{1b}') && !message.contains('\u{202e}'));
        assert!(message.chars().count() <= SHOWN_BYTES + 1);
    }
}
