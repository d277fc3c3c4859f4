//! The client of a Backplane: catalog, releases, artifacts and JSON requests under one prefix.
//!
//! It opens no socket and reads no clock: a [`Transport`] carries the requests, and what it has to
//! enforce is written there. Nothing here is asynchronous either. Each operation is a [`Call`]: a
//! request, and the reader of its answer. [`Client`] sends calls through its transport and waits;
//! who has a runtime sends [`Call::request`] in its own way and gives the answer to [`Call::finish`].
//!
//! An error never holds a body of the provider, and no `Debug` or `Display` a token. Who publishes
//! can ask why it was refused: [`Call::asking_why`].
//!
//! ```
//! use backplane_client::{Answer, Auth, Body, Cancel, Client, Never, Request};
//!
//! let transport = |request: &Request, _: &dyn Cancel| {
//!     assert_eq!(request.url(), "https://backplane.example/plugin-protocol/v1/catalog");
//!     Ok(Answer::new(200, Body::Bytes(br#"{"data":[]}"#.to_vec())))
//! };
//! let client = Client::new("https://backplane.example", Auth::None, Vec::new(), transport)?;
//! assert!(client.catalog(&Never)?.get("data").is_some());
//! # Ok::<(), backplane_client::ClientError>(())
//! ```

mod address;
mod answer;
mod auth;
mod call;
mod client;
mod download;
mod error;
#[doc(hidden)]
pub mod fuzz_entry;
mod redirect;
mod refusal;
mod retry;
mod retry_after;
mod retrying;
mod selection;
mod transport;
mod upload;

pub use address::{BaseUrl, LONGEST_URL, PREFIX, RequestPath};
pub use auth::{Auth, Header, Token};
pub use call::Call;
pub use client::Client;
pub use download::Download;
pub use error::{AddressError, AnswerError, ClientError, HeaderError, PathError, SelectionError};
pub use redirect::{MOST_REDIRECTS, Redirects};
pub use refusal::{MAX_REFUSAL_BYTES, Refusal, RefusalCode};
pub use retry::{Attempt, Failure, GaveUp, Next, Retry, RetryPolicy};
pub use retry_after::retry_after;
pub use retrying::{Clock, Retrying};
pub use selection::{CatalogPage, InstallationsPage, ReleasesPage, Selection};
pub use strict_json::{Json, Object};
pub use transport::{
    Answer, Body, Cancel, Fault, MAX_JSON_BYTES, Method, Never, Request, Transport, TransportError,
};
pub use upload::MAX_RECEIPT_BYTES;
