//! What an entry is worth.
