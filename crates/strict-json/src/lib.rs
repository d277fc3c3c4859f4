//! Strict JSON for wire protocols: bounded, no duplicates, nothing ignored.
