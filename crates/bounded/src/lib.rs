//! Bounded texts, identifiers and durations, checked once when they are made.
