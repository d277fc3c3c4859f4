//! The forge plugin protocol v1: frames and both session machines, without I/O.
