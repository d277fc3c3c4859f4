//! `.attest/plugins.toml`: which plugins there are, pinned by digest.
//!
//! ```toml
//! schema_version = 1
//!
//! [[plugin]]
//! name = "policy"                    # a-z, 0-9 and -, at most 32; names are unique
//! command = "attest-policy"          # a bare name, or an absolute path
//! digest = "blake3:…"                # of the file that runs
//! protocol = "1"
//! hooks = ["pipeline.validate"]      # at least one, each once
//! deterministic = true
//! on_failure = "fail-closed"         # or "fail-open"; fail-closed where it is absent
//! timeout_secs = 30                  # 1 to 3600; 30 where it is absent
//! wants_output = false               # false where it is absent
//! env = { POLICY_FILE = "p.toml" }   # literal values; no ATTEST_ name and no PATH
//!
//! [[plugin.target]]                  # any number, for plugins of several platforms
//! os = "linux"
//! arch = "x86_64"
//! digest = "blake3:…"
//! ```
//!
//! Everything is read by hand and nothing is ignored: an unknown key, another type or a value out
//! of its range refuses the whole file, and the error names the line, the plugin and the key.
//!
//! Where the format leaves room:
//!
//! - `os` and `arch` are the words of the Rust compiler (`linux`, `macos`; `x86_64`, `aarch64`).
//!   Once a plugin has a target, the digest of the target of this platform is the one that
//!   counts, and `digest` itself may be absent. No target of this platform is an error.
//! - A file without any plugin declares nothing: the run is as one without the file, and its
//!   receipt has no `plugins`.
//! - At most [`MAX_PLUGINS`] plugins, since each is a process of a run.

mod error;
mod file;
mod read;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attest_plugin_protocol::{Hook, PluginName};

pub use error::DeclareError;
pub use read::unfit_variable;

/// The digest of a plugin's bytes, `blake3:` and 64 lowercase hexadecimal digits.
pub use digest_text::Blake3Text as Digest;

/// The greatest length of the file in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The greatest number of plugins.
pub const MAX_PLUGINS: usize = 64;
/// Where the file lies in a workspace.
pub const FILE: &str = ".attest/plugins.toml";

pub(crate) use read::{Located, Spot, located};

/// The declarations of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plugins {
    /// In the order of the file, which is the order in which they are asked. May be empty, which
    /// is as if there were no file.
    pub plugins: Vec<Declared>,
}

/// One declared plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its name; also the name of its record.
    pub name: PluginName,
    /// What is started.
    pub command: Command,
    /// What its bytes must hash to on this platform; absent only under [`Strictness::Listing`].
    pub digest: Option<Digest>,
    /// Where it wants to be asked, in the order of the declaration.
    pub hooks: Vec<Hook>,
    /// Whether its answers are a pure function of what it is asked.
    pub deterministic: bool,
    /// What a failure of the plugin means for the run.
    pub on_failure: OnFailure,
    /// How long it may take for one answer.
    pub timeout: Duration,
    /// Whether it is shown what steps wrote.
    pub wants_output: bool,
    /// Variables that it gets beside those of the protocol.
    pub env: BTreeMap<String, String>,
}

/// What a plugin is started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A file.
    Absolute(PathBuf),
    /// A name that is looked up in the folders of `PATH`.
    Bare(String),
}

/// What a failure of a plugin means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The run fails.
    FailClosed,
    /// The run goes on, and the receipt says so.
    FailOpen,
}

/// How complete a declaration has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// For a run and for `plugins verify`: every plugin has a digest.
    Run,
    /// For `plugins list` and `plugins pin`: a digest may be absent or empty.
    Listing,
}

impl Plugins {
    /// Reads declarations.
    ///
    /// # Errors
    /// They break a rule; the error names the line, the plugin, the key and the rule.
    pub fn parse(text: &str, strictness: Strictness) -> Result<Self, DeclareError> {
        let located = located(text, strictness, &Platform::current())?;
        let plugins = located.into_iter().map(|plugin| plugin.declared).collect();
        Ok(Self { plugins })
    }

    /// Reads the declarations of a workspace; `None` where it has none.
    ///
    /// # Errors
    /// There is something in the place of the file that is not a regular file, whatever it leads
    /// to, or as [`Plugins::parse`].
    pub fn load(workspace: &Path, strictness: Strictness) -> Result<Option<Self>, DeclareError> {
        file::read(workspace)?
            .map(|text| Self::parse(&text, strictness))
            .transpose()
    }

    /// Reads the text of the file and judges nothing but its length and its encoding.
    ///
    /// # Errors
    /// As [`Plugins::load`], but for what the text says.
    pub fn text(workspace: &Path) -> Result<Option<String>, DeclareError> {
        file::read(workspace)
    }
}

/// What a target is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Platform {
    pub(crate) os: String,
    pub(crate) arch: String,
}

impl Platform {
    pub(crate) fn current() -> Self {
        Self {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
