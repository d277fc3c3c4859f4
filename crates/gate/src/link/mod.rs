//! The Worker link: one WebSocket for each slot.

mod connect;
mod connection;
mod handshake;
mod wire;

pub(crate) use connect::connect;
