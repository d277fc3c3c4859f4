//! The host's side of a session.

mod session;
mod verdict;

pub use session::HostSession;
pub use verdict::{Conclusion, HostEvent, PluginExit};
