//! Asks a timestamp authority for a token, as RFC 3161 section 3.4 has it over HTTP.
//!
//! One request, one answer: no redirect is followed, nothing is tried twice, the whole of it takes
//! at most half a minute and a mebibyte. Only to this machine does it go without TLS. What comes
//! back is the token that the authority sent, and nothing is judged about it here.

mod address;
mod error;
mod exchange;

pub use address::TsaUrl;
pub use error::{FetchError, UrlError};
pub use exchange::{TOTAL_TIME, fetch};
