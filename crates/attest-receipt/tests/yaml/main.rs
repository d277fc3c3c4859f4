//! The reader of documents: what it refuses, and that what it accepts is what was written.

mod agreement;
mod bounds;
mod flips;
mod fuzz_corpus;
mod reads;
mod round_trip;
