//! The transport against scripted servers on this machine.
