//! The causal ledger on disk.
