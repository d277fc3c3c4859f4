//! Both sides against each other, with certificates made for the test.

#[cfg(test)]
mod handshakes;
