//! What our HTTP servers share below their routes.
//!
//! [`accept`] takes connections up to a cap, over TLS or plain, and serves a router on each with
//! limits of time and size, until it is told to stop. [`HostRules`] says which names a request may
//! address, [`body`] reads a bounded body in time, [`Lifetime`] stops in order. Nothing here knows
//! a route, a token or a store.

pub mod body;
mod certificate;
mod crowd;
mod deadlines;
mod hosts;
mod lifetime;
mod listen;
mod listener;
mod socket;

pub use certificate::watch as watch_certificate;
pub use deadlines::Deadlines;
pub use hosts::{Foreign, HostRules, host_name, origin};
pub use lifetime::{Lifetime, Signals};
pub use listen::{Listen, ListenError};
pub use listener::{MAX_CONNECTIONS, Serving, accept};
