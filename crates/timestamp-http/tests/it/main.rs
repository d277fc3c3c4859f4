//! Asking an authority over HTTP on this machine.

#[cfg(test)]
mod exchange;
