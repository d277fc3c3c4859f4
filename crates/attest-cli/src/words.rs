//! What errors say, without what must not or need not be said.

use attest_engine::output::Secrets;
use cli_shell::CliError;

/// A longer word is cut in its middle: a path of thousands of folders tells no more than its ends.
const LONGEST: usize = 200;
/// How much of each end stays, so that what is left fits a line.
const END: usize = 32;

/// Returns the error with the values of secrets replaced in every message and hint.
pub(crate) fn hidden(error: CliError, secrets: &Secrets) -> CliError {
    if secrets.is_empty() {
        return error;
    }
    reworded(&error, |text| secrets.replace(text))
}

/// Returns the error with very long words cut in their middle.
pub(crate) fn short(error: CliError) -> CliError {
    let long = |text: &String| text.len() > LONGEST;
    if error.messages().iter().any(&long) || error.hints().iter().any(&long) {
        return reworded(&error, shortened);
    }
    error
}

fn reworded(error: &CliError, word: impl Fn(&str) -> String) -> CliError {
    let messages = error.messages();
    let mut messages = messages.iter().rev().map(|message| word(message));
    let mut new = CliError::new(error.kind(), messages.next().unwrap_or_default());
    for message in messages {
        new = new.because(message);
    }
    for hint in error.hints() {
        new = new.hint(word(hint));
    }
    new
}

fn shortened(text: &str) -> String {
    text.split_inclusive(char::is_whitespace)
        .map(cut)
        .collect::<String>()
}

/// Takes a word with the white space that follows it.
fn cut(word: &str) -> String {
    let (word, space) = word.split_at(word.trim_end().len());
    let count = word.chars().count();
    if count <= LONGEST {
        return format!("{word}{space}");
    }
    let first: String = word.chars().take(END).collect();
    let last: String = word.chars().skip(count - END).collect();
    format!("{first}[…{}…]{last}{space}", count - 2 * END)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> CliError {
        CliError::no("cannot open `/canary-77/x`")
            .because("while looking for canary-77")
            .hint("remove canary-77")
    }

    #[test]
    fn secrets_are_replaced_in_messages_and_hints() {
        let secrets = Secrets::new([("TOKEN", b"canary-77".as_slice())]);
        let hidden = hidden(error(), &secrets);
        assert_eq!(hidden.kind(), error().kind());
        assert_eq!(
            hidden.messages(),
            [
                "while looking for [redacted TOKEN]",
                "cannot open `/[redacted TOKEN]/x`"
            ]
        );
        assert_eq!(hidden.hints(), ["remove [redacted TOKEN]"]);
    }

    #[test]
    fn a_very_long_word_is_cut_in_its_middle_and_others_stay() {
        let path = "/d".repeat(3000);
        let error = CliError::operation(format!("File name too long: `{path}/end` at once"))
            .because("cannot hash")
            .hint("shorten it");
        let short = short(error);
        let messages = short.messages();
        assert_eq!(messages[0], "cannot hash");
        assert!(messages[1].starts_with("File name too long: `/d/d"));
        assert!(messages[1].ends_with("/d/d/end` at once"), "{messages:?}");
        assert!(messages[1].contains("[…5942…]"), "{messages:?}");
        assert!(messages[1].chars().count() < 120);
        assert_eq!(short.hints(), ["shorten it"]);
        assert_eq!(cut(&"é".repeat(LONGEST)), "é".repeat(LONGEST));
    }
}
