//! Runs one command as it is, and attests it.
