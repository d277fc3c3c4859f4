//! A path as a word of a shell, for advice that people paste.

use std::{
    fmt::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

/// Quotes a path so that a shell takes it for one word and nothing in it for syntax. Bytes that a
/// terminal would obey, or that are no text, are escaped as Bash, Zsh and POSIX (2024) read them.
#[must_use]
pub fn shell_word(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let text = std::str::from_utf8(bytes).ok();
    let text = text.filter(|text| text.chars().all(is_shown));
    // A leading `-` would be an option, however it is quoted.
    let dash = if bytes.starts_with(b"-") { "./" } else { "" };
    match text {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => format!("{dash}{text}"),
        Some(text) => format!("'{dash}{}'", text.replace('\'', r"'\''")),
        None => format!("$'{dash}{}'", Escaped(bytes)),
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "/._-+@:,%".contains(letter)
}

/// Letters of other alphabets are; what has no shape or turns the line around is not.
fn is_shown(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

struct Escaped<'a>(&'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                b'\'' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                b' '..=b'~' => f.write_char(char::from(*byte))?,
                _ => write!(f, "\\{byte:03o}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, process::Command};

    use super::*;

    #[test]
    fn words_are_as_short_as_they_can_be() {
        for (path, word) in [
            ("/a/.b_c-d+1@x", "/a/.b_c-d+1@x"),
            ("/a b/it's", r"'/a b/it'\''s'"),
            ("-rf", "./-rf"),
            ("/a/$(x)`y`", "'/a/$(x)`y`'"),
            ("/ä", "'/ä'"),
            ("a\nb", r"$'a\012b'"),
            ("a\u{1b}\\'", r"$'a\033\\\''"),
            ("a\u{202e}", r"$'a\342\200\256'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
        assert_eq!(
            shell_word(Path::new(OsStr::from_bytes(b"a\xff7"))),
            r"$'a\3777'"
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the shell that the word is for")]
    fn a_shell_takes_each_for_one_word() {
        for path in ["/a b/it's", "$(x)`y`\"", "*", "~", "a#b", "!x", "\\"] {
            let script = format!("printf %s {}", shell_word(Path::new(path)));
            let said = Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(said.stdout, path.as_bytes(), "{path}");
        }
    }
}
