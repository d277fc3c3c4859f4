//! Branch names: what git takes below `refs/heads/`, and no more.

use crate::error::{BoundError, check_length};
use crate::text_type::text_type;

text_type!(
    /// The short name of a branch, 1 to 255 bytes, such as `main` or `feature/x`.
    BranchName,
    |text| {
        check_length(text, 1, 255)?;
        match broken_rule(text) {
            None => Ok(()),
            Some(reason) => Err(BoundError::Branch { reason }),
        }
    }
);

fn broken_rule(text: &str) -> Option<&'static str> {
    let forbidden = |byte: u8| {
        byte <= b' ' || matches!(byte, 0x7f | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\')
    };
    if text == "@" {
        Some("`@` alone means HEAD")
    } else if text.starts_with('-') {
        Some("a leading `-` reads as an option")
    } else if text.bytes().any(forbidden) {
        Some("white space, control characters and any of ~^:?*[\\ are not allowed")
    } else if text.contains("..") || text.contains("@{") {
        Some("`..` and `@{` are revision syntax")
    } else if text.ends_with('.') {
        Some("a trailing `.` is not allowed")
    } else if text.split('/').any(str::is_empty) {
        Some("empty path components are not allowed")
    } else if text
        .split('/')
        .any(|part| part.starts_with('.') || part.ends_with(".lock"))
    {
        Some("no component may start with `.` or end with `.lock`")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_takes_pass() {
        for good in [
            "main",
            "feature/x",
            "a.b",
            "@a",
            "a@",
            "é",
            "a-",
            &"b".repeat(255),
        ] {
            assert!(BranchName::new(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn names_that_git_refuses_fail() {
        let bad = [
            "",
            "@",
            "-a",
            "/a",
            "a/",
            "a.",
            "a b",
            "a\tb",
            "a\u{7f}",
            "a~b",
            "a^b",
            "a:b",
            "a?b",
            "a*b",
            "a[b",
            "a\\b",
            ".a",
            "a/.b",
            "a..b",
            "a@{b",
            "a//b",
            "a.lock",
            "a.lock/b",
            &"b".repeat(256),
        ];
        for bad in bad {
            assert!(BranchName::new(bad).is_err(), "{bad:?}");
        }
    }
}
