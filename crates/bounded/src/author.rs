//! Who a commit names as its author.

use crate::error::{BoundError, check_length};
use crate::text::{has_control_or_format, is_trimmed};
use crate::text_type::text_type;

text_type!(
    /// The name of an author: 1 to 256 bytes, trimmed, none of `<`, `>`, `:` and no controls.
    AuthorName,
    |text| {
        check_length(text, 1, 256)?;
        check_header_safe(text, "name")
    }
);

text_type!(
    /// The address of an author: 3 to 254 bytes, `local@domain` with a domain of DNS labels.
    AuthorEmail,
    |text| {
        check_length(text, 3, 254)?;
        check_header_safe(text, "email")?;
        let broken = |reason| Err(BoundError::Author { part: "email", reason });
        let Some((local, domain)) = text.split_once('@') else {
            return broken("an `@` is missing");
        };
        if local.is_empty() || local.len() > 64 || local.split('.').any(str::is_empty) {
            return broken("the part before `@` must be 1 to 64 bytes without empty pieces");
        }
        if local.chars().any(|c| c.is_whitespace() || matches!(c, '"' | '(' | ')' | ',' | ';' | '[' | ']' | '\\')) {
            return broken("the part before `@` has a character that needs quoting");
        }
        if !domain.split('.').all(is_dns_label) {
            return broken("the part after `@` must be labels of letters, digits and `-`");
        }
        Ok(())
    }
);

/// Refuses what could break out of the header line of a commit object.
fn check_header_safe(text: &str, part: &'static str) -> Result<(), BoundError> {
    if !is_trimmed(text) {
        return Err(BoundError::Untrimmed);
    }
    if has_control_or_format(text) || text.contains(['<', '>', ':']) {
        let reason = "control characters and any of <>: are not allowed";
        return Err(BoundError::Author { part, reason });
    }
    Ok(())
}

fn is_dns_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_their_header_line() {
        for good in ["Ada", "Ada L. O'Neil", "阿达", &"a".repeat(256)] {
            assert!(AuthorName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            " Ada",
            "Ada ",
            "A<b",
            "A>b",
            "A:b",
            "A\nb",
            "A\u{202e}",
            &"a".repeat(257),
        ] {
            assert!(AuthorName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_have_a_local_part_and_a_dns_domain() {
        let longest = format!(
            "{}@{}.{}.{}",
            "a".repeat(64),
            "b".repeat(63),
            "c".repeat(63),
            "d".repeat(61)
        );
        assert_eq!(longest.len(), 254);
        for good in [
            "k@example.com",
            "a.b+c@x-y.example",
            "forge@example.invalid",
            "a@localhost",
            &longest,
        ] {
            assert!(AuthorEmail::new(good).is_ok(), "{good}");
        }
        let too_long = format!("{longest}e");
        let bad = [
            "", "a", "a@", "@b", "a@b@c", "a b@c", "a@b..c", "a@-b", "a@b-", "a@b_c", ".a@b",
            "a.@b", "a..b@c", "a@é", "a@b:c", "<a@b>", "\"a\"@b", "a@[::1]", "a@b ", "a@b\n",
            &too_long,
        ];
        for bad in bad {
            assert!(AuthorEmail::new(bad).is_err(), "{bad:?}");
        }
    }
}
