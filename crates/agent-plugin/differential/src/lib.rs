//! Nothing but tests: this loader next to another one of the same format.
