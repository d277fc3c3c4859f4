//! What is accepted and what is refused.
