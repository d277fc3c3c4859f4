//! Where what plugins say for people goes.

/// The run log.
pub trait RunLog: Send + Sync {
    /// Takes one line about a plugin. Its control characters are visible already, it has no line
    /// end, and all lines of one plugin together are bounded. It is called from whatever thread
    /// has the line, and should not wait for anything slow.
    fn line(&self, plugin: &str, line: &str);
}
