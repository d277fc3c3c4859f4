//! Names on the command line: a plugin, perhaps at a channel or a release. Never a path.

use std::fmt;
use std::str::FromStr;

use cli_shell::CliError;

/// The channel that is meant where none is named.
pub(crate) const STABLE: &str = "stable";

/// A plugin and, if it is said, where to look for its release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginName {
    pub(crate) plugin: String,
    pub(crate) at: Option<At>,
}

/// What follows the `@`. A release starts with `r-` and no channel does, so they never mix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum At {
    /// What a channel points at.
    Channel(String),
    /// One release.
    Release(ReleaseId),
}

/// `r-` and 32 lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReleaseId(String);

/// The name of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelName(String);

/// Why a text is none of these; fits behind the text in backticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    /// It is a path.
    #[error("is a path, not the name of a plugin")]
    Path,
    /// It breaks the rules of plugin names.
    #[error("is no name of a plugin: 1 to 64 of a-z 0-9 - . with a letter or digit at both ends")]
    Plugin,
    /// It breaks the rules of channel names.
    #[error("is no channel: 1 to 64 of a-z 0-9 - . with a letter or digit in front, not `r-…`")]
    Channel,
    /// It is no release.
    #[error("is no release: `r-` and 32 digits of 0-9 a-f")]
    Release,
}

impl FromStr for PluginName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if is_path(text) {
            return Err(NameError::Path);
        }
        let (plugin, at) = match text.split_once('@') {
            Some((plugin, at)) => (plugin, Some(at.parse()?)),
            None => (text, None),
        };
        if !is_plugin(plugin) {
            return Err(NameError::Plugin);
        }
        let plugin = plugin.to_owned();
        Ok(Self { plugin, at })
    }
}

impl PluginName {
    /// Returns what looks like a release where a plugin was to be named. A plugin may have such a name.
    pub(crate) fn lone_release(&self) -> Option<&str> {
        let lone = self.at.is_none() && self.plugin.parse::<ReleaseId>().is_ok();
        lone.then_some(self.plugin.as_str())
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            None => f.write_str(&self.plugin),
            Some(At::Channel(channel)) => write!(f, "{}@{channel}", self.plugin),
            Some(At::Release(release)) => write!(f, "{}@{release}", self.plugin),
        }
    }
}

impl FromStr for At {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.starts_with("r-") {
            return text.parse().map(Self::Release);
        }
        text.parse()
            .map(|channel: ChannelName| Self::Channel(channel.0))
    }
}

impl FromStr for ReleaseId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let hex = text.strip_prefix("r-").ok_or(NameError::Release)?;
        let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hex.len() != 32 || !hex.bytes().all(digit) {
            return Err(NameError::Release);
        }
        Ok(Self(text.to_owned()))
    }
}

impl ReleaseId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReleaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ChannelName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let first = text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        if !first || text.starts_with("r-") || !is_of_letters(text) {
            return Err(NameError::Channel);
        }
        Ok(Self(text.to_owned()))
    }
}

impl ChannelName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Says what is wrong with a name, and what to do where a path was given.
pub(crate) fn refused(text: &str, error: NameError) -> CliError {
    let refused = CliError::usage(format!("`{text}` {error}"));
    match error {
        NameError::Path => refused.hint(
            "this command asks a registry; `backplane inspect` and `backplane publish` take paths",
        ),
        NameError::Plugin => refused
            .hint("`backplane catalog` lists the plugins; a folder or file needs `./` before it"),
        NameError::Channel => refused.hint("for instance `stable` or `beta`"),
        NameError::Release => {
            refused.hint("`backplane releases NAME` lists the releases of a plugin")
        }
    }
}

/// Says how a release is named that stands without its plugin.
pub(crate) fn lone_release_hint(id: &str) -> String {
    format!("a release is named `NAME@{id}`; `backplane resolve --release {id}` shows its plugin")
}

/// Tells whether a text is a path: only so can it be told from a name.
pub(crate) fn is_path(text: &str) -> bool {
    text.contains('/') || text == "." || text == ".." || text.ends_with(".tar.gz")
}

fn is_plugin(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    let whole = ends
        .iter()
        .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()));
    whole && is_of_letters(text) && !text.contains("--") && !text.contains("..")
}

fn is_of_letters(text: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    text.len() <= 64 && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: &str = "r-0123456789abcdef0123456789abcdef";

    #[test]
    fn names_with_channels_and_releases_come_back() {
        for text in ["a", "acme.tools-2", "a@stable", "a@1.2", "x-y@beta-1."] {
            assert_eq!(text.parse::<PluginName>().unwrap().to_string(), text);
        }
        let name: PluginName = format!("a@{RELEASE}").parse().unwrap();
        assert_eq!(name.at, Some(At::Release(RELEASE.parse().unwrap())));
    }

    #[test]
    fn what_is_no_name_is_refused_for_its_reason() {
        for (text, error) in [
            ("./a", NameError::Path),
            ("/a", NameError::Path),
            ("a/b@stable", NameError::Path),
            ("..", NameError::Path),
            ("a.tar.gz", NameError::Path),
            ("", NameError::Plugin),
            ("A", NameError::Plugin),
            ("-a", NameError::Plugin),
            ("a-", NameError::Plugin),
            ("a--b", NameError::Plugin),
            ("a..b", NameError::Plugin),
            ("@stable", NameError::Plugin),
            ("a@", NameError::Channel),
            ("a@Stable", NameError::Channel),
            ("a@-x", NameError::Channel),
            ("a@b@c", NameError::Channel),
            ("a@r-1", NameError::Release),
            ("a@r-0123456789ABCDEF0123456789abcdef", NameError::Release),
        ] {
            assert_eq!(text.parse::<PluginName>(), Err(error), "{text}");
        }
        let long = "a".repeat(65);
        assert_eq!(long.parse::<PluginName>(), Err(NameError::Plugin));
        assert!(long[1..].parse::<PluginName>().is_ok());
        assert_eq!("r-x".parse::<ChannelName>().err(), Some(NameError::Channel));
    }
}
