//! The transport of `backplane-client`: HTTP/1.1 over TLS, or plainly to this machine.
//!
//! [`HttpTransport`] is a [`backplane_client::Transport`] that blocks. It has a thread of its own for
//! the network, so it may be called anywhere; inside of a runtime it blocks the thread that it is
//! called on, so there either wrap it into `spawn_blocking` or take the call apart:
//!
//! ```no_run
//! # use backplane_client::{Auth, Client, ClientError, Never, Selection};
//! # use backplane_http::{HttpTransport, Options};
//! # async fn resolve() -> Result<(), Box<dyn std::error::Error>> {
//! let http = HttpTransport::new(Options::default())?;
//! let client = Client::new("https://backplane.example", Auth::None, Vec::new(), http)?;
//! let call = client.resolve_call(&Selection::plugin("acme-tools"))?;
//! let answer = client.transport().send_async(call.request(), &Never).await;
//! let release = call.finish(answer, &Never)?;
//! # drop(release);
//! # Ok(())
//! # }
//! ```
//!
//! What it keeps to: certificates are verified and there is no way to turn that off; plain `http`
//! stays on this machine unless [`Options::allow_plain_http`] says otherwise; nothing for this machine
//! goes to a proxy; redirects stay within the origin; connecting, silence and the whole have limits of
//! time; no more of a body is read than the request allows, and nothing of the body of a failure; a
//! download that breaks off goes on where it stopped, with a [`ResumeFile`] even in another process.
//! It reads no variable and no configuration.

mod attempt;
mod attempts;
mod body;
mod clock;
mod error;
mod exchange;
mod head;
mod options;
mod partial;
mod proxies;
mod resume_file;
mod transport;
mod wire;

pub use clock::{Clock, SystemClock, Wait};
pub use error::{ResumeError, SetupError};
pub use options::{Options, Roots, Times};
pub use proxies::Proxies;
pub use resume_file::ResumeFile;
pub use transport::HttpTransport;
