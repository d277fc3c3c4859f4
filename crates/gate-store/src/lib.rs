//! The Gate's memory: jobs, attempts, evidence and workers in SQLite.
