//! Strict JSON for wire protocols: bounded, no duplicates, nothing ignored.
//!
//! [`parse_object`] turns bytes into an [`Object`] whose keys are unique at every depth;
//! [`Object::fields`] then hands the members out by name, and [`Fields::end`] refuses what nobody
//! asked for. [`to_line`] and [`to_forge_frame`] write compact, deterministic JSON.
//!
//! The crate never reads from a stream, never guesses a type, and never treats `null` as absent.
//!
//! ```
//! use strict_json::{Layout, Limits, parse_object};
//!
//! let limits = Limits { bytes: 1024, depth: 8 };
//! let object = parse_object(br#"{"name":"ada","age":36}"#, &limits, Layout::Compact)?;
//! let mut fields = object.fields("");
//! assert_eq!(fields.text("name")?, "ada");
//! assert_eq!(fields.u64("age")?, 36);
//! fields.end()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod fields;
#[doc(hidden)]
pub mod fuzz_entry;
mod number;
mod parser;
mod string;
mod value;
mod write;

pub use error::{FieldError, JsonError};
pub use fields::{Element, Fields};
pub use parser::{Layout, Limits, MAX_DEPTH, parse_object, parse_value};
pub use value::{Json, Object};
pub use write::{to_forge_frame, to_line};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
