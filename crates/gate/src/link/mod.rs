//! The Worker link: one WebSocket for each slot.

mod connect;
mod connection;
mod control;
mod handshake;
mod incoming;
mod orders;
mod pulse;
mod wire;

pub(crate) use connect::connect;
pub(crate) use orders::Orders;
pub use pulse::Pace;
