//! Properties of all types, and the corpus of the fuzz target.

#[cfg(test)]
mod properties;
