//! The version that `--version` prints: `name version commit`.
//!
//! Both parts are set by whoever builds a release (`FORGE_VERSION`, `FORGE_COMMIT`); any other
//! build says `dev unknown`, so that it cannot be taken for one.

use std::sync::LazyLock;

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = option_env!("FORGE_VERSION").unwrap_or("dev");
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
        assert_eq!(version_line("forge").split(' ').count(), 3);
    }
}
