//! A pipeline from its file to its receipt.
