//! Builds twice and compares, file by file.
