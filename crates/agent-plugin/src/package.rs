//! What a loaded package holds.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use strict_json::{Json, Object};

use crate::Diagnostic;

/// The files of a package: relative path to bytes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A package whose manifest is valid.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Package {
    /// The manifest as it stands there, unknown fields and extensions included.
    pub manifest: Object,
    /// The valid skills, sorted by directory.
    pub skills: Vec<Skill>,
    /// The valid servers by name, nothing expanded.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// What was found; errors of components among it.
    pub diagnostics: Vec<Diagnostic>,
    /// The whole snapshot, also of what is ignored.
    pub files: Files,
}

impl Package {
    /// Returns the name of the plugin.
    pub fn name(&self) -> &str {
        self.text("name").unwrap_or_default()
    }

    /// Returns the version, where there is one; any text is one.
    pub fn version(&self) -> Option<&str> {
        self.text("version")
    }

    /// Returns the resources of a skill: full path and bytes.
    pub fn resources<'a>(&'a self, skill: &'a Skill) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let found = |path: &'a String| Some((path.as_str(), self.files.get(path)?.as_slice()));
        skill.files.iter().filter_map(found)
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.manifest.get(key) {
            Some(Json::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// One skill.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Skill {
    /// The path of its `SKILL.md`.
    pub path: String,
    /// Its directory.
    pub root: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// `SKILL.md`, whole.
    pub content: String,
    /// What follows the frontmatter.
    pub body: String,
    /// The whole frontmatter.
    pub metadata: Object,
    /// Full paths of every other file below `root`, keys of [`Package::files`].
    pub files: BTreeSet<String>,
}

/// How a server is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// A process and its standard streams.
    Stdio,
    /// HTTP with streams.
    StreamableHttp,
    /// The older HTTP transport.
    Sse,
}

impl Transport {
    /// Every transport.
    pub const ALL: [Self; 3] = [Self::Stdio, Self::StreamableHttp, Self::Sse];

    /// Returns the value of `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "streamable-http",
            Self::Sse => "sse",
        }
    }

    /// Reads a value of `type`; there are no other spellings.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|transport| transport.as_str() == name)
    }
}

/// One valid server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpServer {
    /// Its transport.
    pub transport: Transport,
    /// Its configuration as it stands there.
    pub config: Object,
}

impl Serialize for McpServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.config.serialize(serializer)
    }
}
