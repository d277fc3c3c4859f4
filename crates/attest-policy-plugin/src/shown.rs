//! Texts of payloads and policies in messages: visible, on one line, and short.

/// Most bytes that a message shows of one text.
const SHOWN: usize = 160;

/// Makes a foreign text fit for a message.
pub(crate) fn quoted(text: &str) -> String {
    cut(&bounded::text::visible(text), SHOWN)
}

/// Names a step as the resource of a finding.
pub(crate) fn step_resource(step: &str) -> String {
    format!("step:{}", quoted(step))
}

/// Lists patterns for people.
pub(crate) fn listed<'a>(patterns: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<String> = patterns
        .into_iter()
        .map(|text| format!("`{}`", quoted(text)))
        .collect();
    all.join(", ")
}

/// Cuts a text at a character, with a mark in place of what is missing.
fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{}…", bounded::text::head(text, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_short_and_stays_on_its_line() {
        assert_eq!(quoted("a\nb\u{202e}"), "a\\u{a}b\\u{202e}");
        assert_eq!(quoted(&"a".repeat(SHOWN)), "a".repeat(SHOWN));
        assert_eq!(
            quoted(&"a".repeat(SHOWN + 1)),
            format!("{}…", "a".repeat(SHOWN))
        );
        assert_eq!(
            quoted(&"é".repeat(SHOWN)),
            format!("{}…", "é".repeat(SHOWN / 2))
        );
        assert!(step_resource(&"é".repeat(1_000)).len() <= attest_plugin_protocol::RESOURCE_BYTES);
    }
}
