//! The only place where a process starts: explicit, bounded, reaped to the last descendant.
