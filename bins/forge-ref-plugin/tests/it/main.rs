//! The reference plugin as a process: frames in, frames out, exit code.

#[cfg(test)]
mod session;
