//! A fresh workspace of a base commit, and the candidate commit made of it, by a hardened git.
