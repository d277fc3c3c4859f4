//! The messages between Gate and Worker, and both session machines, without I/O.
