//! The names of plugins, channels and releases.

use std::fmt;
use std::str::FromStr;

use digest_text::Sha256Text;
use serde::{Serialize, Serializer};

/// Says what a name must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(&'static str);

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $holds:path, $rule:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                if $holds(text) { Ok(Self(text.to_owned())) } else { Err(NameError($rule)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, formatter)
            }
        }
    };
}

name_type!(
    /// The id of a plugin: the `name` of its manifest.
    PluginId,
    is_plugin_id,
    "must be 1 to 64 of a-z, 0-9, `-` and `.`, begin and end with a letter or digit, and hold no `--` or `..`"
);
name_type!(
    /// The name of a channel.
    ChannelName,
    is_channel,
    "must be 1 to 64 of a-z, 0-9, `-` and `.`, begin with a letter or digit, and not begin with `r-`"
);

impl ChannelName {
    /// The channel that is meant where none is named.
    #[must_use]
    pub fn stable() -> Self {
        Self("stable".to_owned())
    }
}

fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
        && text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
}

fn is_plugin_id(text: &str) -> bool {
    is_word(text)
        && text
            .bytes()
            .next_back()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && !text.contains("--")
        && !text.contains("..")
}

fn is_channel(text: &str) -> bool {
    is_word(text) && !text.starts_with("r-")
}

/// The id of a release: the plugin and the bytes, so that the same bytes are the same release.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseId([u8; 16]);

impl ReleaseId {
    /// Makes the id of the release of these bytes.
    #[must_use]
    pub fn of(plugin: &PluginId, artifact: &Sha256Text) -> Self {
        let text = format!("agent-forge/release/1\0{plugin}\0{artifact}");
        let digest = Sha256Text::of(text);
        // Sixteen of its thirty-two bytes are always there.
        Self(digest.as_bytes().first_chunk().copied().unwrap_or_default())
    }
}

impl ReleaseId {
    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl FromStr for ReleaseId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let rule = NameError("must be `r-` followed by 32 lowercase hexadecimal digits");
        let digits = text.strip_prefix("r-").ok_or(rule)?;
        let digits = bounded::Hex32::new(digits).map_err(|_| rule)?;
        u128::from_str_radix(digits.as_str(), 16)
            .map(|number| Self(number.to_be_bytes()))
            .map_err(|_| rule)
    }
}

impl fmt::Display for ReleaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("r-{}", bounded::Hex32::from_bytes(self.0)))
    }
}

impl fmt::Debug for ReleaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for ReleaseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_plugins_are_those_of_manifests() {
        let long = "a".repeat(64);
        for good in ["a", "a.b", "a-b", "a.-b", "a-.b", "0", &long] {
            assert!(good.parse::<PluginId>().is_ok(), "{good}");
        }
        let longer = "a".repeat(65);
        for bad in [
            "", "-a", "a-", ".a", "a.", "a--b", "a..b", "A", "a_b", "a/b", "ä", "a\n", &longer,
        ] {
            assert!(bad.parse::<PluginId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn channels_and_releases_never_mix() {
        for good in ["stable", "1.x", "beta--2", "rc", "r", "a-"] {
            assert!(good.parse::<ChannelName>().is_ok(), "{good}");
            assert!(good.parse::<ReleaseId>().is_err(), "{good}");
        }
        for bad in ["", "r-", "r-1", "-a", ".a", "Beta", "a b"] {
            assert!(bad.parse::<ChannelName>().is_err(), "{bad}");
        }
        let upper = format!("r-{}", "A".repeat(32));
        for bad in ["r-", "r-00", "sha256:00", &upper] {
            assert!(bad.parse::<ReleaseId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_is_the_plugin_and_the_bytes() {
        let plugin: PluginId = "example".parse().unwrap();
        let artifact = Sha256Text::of("abc");
        let text = format!("agent-forge/release/1\0example\0{artifact}");
        let expected: String = Sha256Text::of(text)
            .to_string()
            .chars()
            .skip(7)
            .take(32)
            .collect();
        let id = ReleaseId::of(&plugin, &artifact);
        assert_eq!(id.to_string(), format!("r-{expected}"));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(id, ReleaseId::of(&"examples".parse().unwrap(), &artifact));
        assert_ne!(id, ReleaseId::of(&plugin, &Sha256Text::of("other")));
    }
}
