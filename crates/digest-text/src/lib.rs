//! Digests that always carry the name of their algorithm.
