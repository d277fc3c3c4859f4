//! A command line in words, split as a shell would without running one.
//!
//! Only quoting is understood: variables, globs, pipes and redirections are refused instead of
//! being passed on literally, since nobody who writes them means that.

/// Splits a command line into its argument vector.
///
/// # Errors
/// A quote is open, the line is empty, or something in it needs a shell; the text says what.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(letter) => word.push(letter),
                        None => return Err("a single quote is not closed".to_owned()),
                    }
                }
            }
            '"' => double_quoted(word.get_or_insert_default(), &mut letters)?,
            '\\' => match letters.next() {
                Some(letter) => word.get_or_insert_default().push(letter),
                None => return Err("it ends in a backslash".to_owned()),
            },
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' => {
                return Err(format!(
                    "`{letter}` has no meaning without a shell: quote it, or run a shell as in \
                     --check \"sh -c '...'\""
                ));
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(words)
}

fn double_quoted(word: &mut String, letters: &mut std::str::Chars<'_>) -> Result<(), String> {
    loop {
        match letters.next() {
            Some('"') => return Ok(()),
            Some('\\') => match letters.next() {
                Some(letter @ ('"' | '\\' | '$' | '`')) => word.push(letter),
                Some(letter) => word.extend(['\\', letter]),
                None => break,
            },
            Some(letter @ ('$' | '`')) => {
                return Err(format!(
                    "`{letter}` in double quotes has no meaning without a shell: use single quotes"
                ));
            }
            Some(letter) => word.push(letter),
            None => break,
        }
    }
    Err("a double quote is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_as_in_a_shell() {
        assert_eq!(split("cargo test").unwrap(), ["cargo", "test"]);
        assert_eq!(split("  a\t b\nc ").unwrap(), ["a", "b", "c"]);
        assert_eq!(split("sh -c 'a | b $x'").unwrap(), ["sh", "-c", "a | b $x"]);
        assert_eq!(split(r#"a"b c"'d'\ e"#).unwrap(), ["ab cd e"]);
        assert_eq!(split(r#""a\"b\\c\n""#).unwrap(), [r#"a"b\c\n"#]);
        assert_eq!(split("x '' \"\"").unwrap(), ["x", "", ""]);
    }

    #[test]
    fn what_needs_a_shell_is_refused() {
        for line in [
            "a | b", "a && b", "a; b", "a > f", "$HOME/x", "a *.rs", "`id`", "\"$x\"", "(a)",
        ] {
            assert!(split(line).is_err(), "{line}");
        }
        for line in ["", "  ", "'a", "\"a", "a\\", "\"a\\"] {
            assert!(split(line).is_err(), "{line}");
        }
    }
}
