//! The operator's commands: an HTTP client of the Gate.
