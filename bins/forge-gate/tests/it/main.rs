//! The program itself: killed, stopped, started twice, and what it writes.

#[cfg(test)]
mod logs;
#[cfg(test)]
mod process;
#[cfg(test)]
mod running;
#[cfg(test)]
mod service;
