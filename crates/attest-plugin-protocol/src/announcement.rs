//! What a plugin says about itself in `hello_ok`.

use crate::hook::Hook;
use crate::limits::MAJOR;
use crate::name::PluginName;

/// What a plugin announces (seed 6.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Its name; equals the declared one.
    pub name: PluginName,
    /// Its own version: any text of at most 256 bytes.
    pub version: String,
    /// The major that it selected.
    pub protocol: u32,
    /// The hooks that it can answer; names that this version does not know stay as they came, for a
    /// later minor version may send them (seed 11).
    pub hooks: Vec<String>,
    /// Whether its answers are a function of the requests alone; equals the declared value.
    pub deterministic: bool,
}

impl Announcement {
    /// Announces hooks of this version of the protocol.
    #[must_use]
    pub fn new(
        name: PluginName,
        version: impl Into<String>,
        hooks: &[Hook],
        deterministic: bool,
    ) -> Self {
        Self {
            name,
            version: version.into(),
            protocol: MAJOR,
            hooks: hooks.iter().map(|hook| hook.as_str().to_owned()).collect(),
            deterministic,
        }
    }

    /// Tells whether a hook is announced.
    #[must_use]
    pub fn has(&self, hook: Hook) -> bool {
        self.hooks.iter().any(|name| name == hook.as_str())
    }
}
