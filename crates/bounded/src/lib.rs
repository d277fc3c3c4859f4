//! Bounded texts, identifiers and durations, checked once when they are made.
//!
//! Every type has a private field and one rule; `FromStr` and `TryFrom<String>` apply it, `Display`
//! gives the wire form back, and serde goes the same way. A value that exists is valid.
//!
//! ```
//! use bounded::{CommitSubject, Hex32};
//!
//! let id: Hex32 = "0123456789abcdef0123456789abcdef".parse()?;
//! assert_eq!(id.to_string(), "0123456789abcdef0123456789abcdef");
//! assert!("0123456789ABCDEF0123456789ABCDEF".parse::<Hex32>().is_err());
//! assert!(" leading space".parse::<CommitSubject>().is_err());
//! # Ok::<(), bounded::BoundError>(())
//! ```

mod author;
mod branch;
mod duration;
mod error;
#[doc(hidden)]
pub mod fuzz_entry;
mod hex;
mod lines;
mod names;
mod prose;
pub mod text;
mod text_type;

pub use author::{AuthorEmail, AuthorName};
pub use branch::BranchName;
pub use duration::GoDuration;
pub use error::BoundError;
pub use hex::{GitSha, Hex32};
pub use lines::{LineTooLong, Lines};
pub use names::{ConfigId, EnvName};
pub use prose::{BoundedText, CommitSubject, ReportText};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
