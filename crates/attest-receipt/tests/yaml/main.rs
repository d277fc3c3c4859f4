//! The reader of documents: what it refuses, and that what it accepts is what was written.

mod reads;
