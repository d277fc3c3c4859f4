//! Names of plugins.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Longest name (seed 3.1).
const NAME_BYTES: usize = 32;

/// The name of a plugin: 1 to 32 of `a`-`z`, `0`-`9` and `-` (seed 3.1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginName(String);

/// A text that is no name of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a plugin's name is 1 to 32 of a-z, 0-9 and -")]
pub struct InvalidPluginName;

impl PluginName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginName {
    type Err = InvalidPluginName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let right = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if text.is_empty() || text.len() > NAME_BYTES || !text.bytes().all(right) {
            return Err(InvalidPluginName);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl Serialize for PluginName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
