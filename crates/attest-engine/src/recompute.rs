//! Hashes a workspace again for `verify --recompute`.
