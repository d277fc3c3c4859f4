//! The program as a core meets it.
