//! The version that `--version` prints: `name version commit`.
//!
//! Both parts are set by whoever builds a release (`FORGE_VERSION`, `FORGE_COMMIT`); any other
//! build adds `-dev` to the manifest's version and knows no commit, so that it cannot be taken for one.

use std::sync::LazyLock;

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version =
        option_env!("FORGE_VERSION").unwrap_or(concat!(env!("CARGO_PKG_VERSION"), "-dev"));
    let commit = option_env!("FORGE_COMMIT").unwrap_or("unknown");
    format!("{version} {commit}")
});

/// Returns `version commit`; clap puts the program's name in front of it.
#[must_use]
pub fn version() -> &'static str {
    &VERSION
}

/// Returns `name version commit`.
#[must_use]
pub fn version_line(name: &str) -> String {
    format!("{name} {}", version())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_three_words() {
        let line = version_line("forge");
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words.len(), 3, "{line}");
        // Receipts name the second word, which has to tell versions apart.
        assert!(words[1].starts_with(|c: char| c.is_ascii_digit()), "{line}");
    }
}
