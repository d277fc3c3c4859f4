//! Names that configuration files use.

use crate::error::BoundError;
use crate::text_type::text_type;

text_type!(
    /// The id of a worker, pool, repository or plugin: `^[a-z0-9][a-z0-9._-]{0,63}$`.
    ConfigId,
    |text| {
        let mut bytes = text.bytes();
        let valid = text.len() <= 64
            && bytes.next().is_some_and(|first| matches!(first, b'a'..=b'z' | b'0'..=b'9'))
            && bytes.all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'));
        matched(valid, "^[a-z0-9][a-z0-9._-]{0,63}$")
    }
);

text_type!(
    /// The name of an environment variable: `^[A-Z_][A-Z0-9_]{0,127}$`.
    EnvName,
    |text| {
        let mut bytes = text.bytes();
        let valid = text.len() <= 128
            && bytes.next().is_some_and(|first| matches!(first, b'A'..=b'Z' | b'_'))
            && bytes.all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
        matched(valid, "^[A-Z_][A-Z0-9_]{0,127}$")
    }
);

fn matched(valid: bool, pattern: &'static str) -> Result<(), BoundError> {
    if valid {
        Ok(())
    } else {
        Err(BoundError::Pattern { pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_ids_follow_their_pattern() {
        for good in ["a", "0", "worker-1", "a.b_c-d", &"a".repeat(64)] {
            assert!(ConfigId::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            ".a",
            "_a",
            "A",
            "a b",
            "a#1",
            "a/b",
            "é",
            "a\n",
            &"a".repeat(65),
        ] {
            assert!(ConfigId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn environment_names_follow_their_pattern() {
        for good in ["A", "_", "PATH", "A_1", &"A".repeat(128)] {
            assert!(EnvName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "1A", "a", "A-B", "A=B", "A\0", &"A".repeat(129)] {
            assert!(EnvName::new(bad).is_err(), "{bad}");
        }
    }
}
