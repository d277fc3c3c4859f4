//! RFC 3161 time stamps over the 64 bytes of a signature.
//!
//! [`request`] makes what an authority is asked, [`token_of_response`] takes its token out of the
//! answer, and [`Token`] verifies one: it covers the signature, its signer's certificate may stamp
//! times and nothing else, and a pinned [`Authority`] issued that certificate. There is no search
//! for a path: exactly one certificate lies between an authority and a token. Algorithms are a
//! closed list, DER is taken strictly, and whatever is not understood is refused.
//!
//! Nothing here opens a file, asks a network or reads a clock.

mod algorithm;
mod asn1;
mod authority;
mod certificate;
mod error;
#[doc(hidden)]
pub mod fuzz_entry;
mod moment;
mod request;
mod response;
mod signer;
mod token;

pub use authority::Authority;
pub use error::{CertificateError, ResponseError, TokenError};
pub use request::{Nonce, request};
pub use response::{MAX_RESPONSE_BYTES, token_of_response};
pub use token::{Examined, Stamp, Token};
