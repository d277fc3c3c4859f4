//! Keys, and which of them are trusted.
