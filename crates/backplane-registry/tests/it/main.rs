//! A whole registry: its router in this process, and its sockets.

#[cfg(test)]
mod artifacts;
#[cfg(test)]
mod config;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod installations;
#[cfg(test)]
mod journey;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod releases;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod support;
