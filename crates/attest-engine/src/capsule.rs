//! Steps in containers pinned by digest.
