//! Which CI job a run belongs to.
