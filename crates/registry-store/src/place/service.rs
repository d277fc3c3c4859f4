//! The way to a service that speaks S3.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientOptions, Error};
use reqwest::redirect::Policy;

const CONNECT: Duration = Duration::from_secs(5);
/// A connection that was quiet for longer may be dead.
const IDLE: Duration = Duration::from_secs(20);

/// Speaks with the service by the TLS settings that were given, and follows it nowhere.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) tls: Arc<rustls::ClientConfig>,
    /// Longest time without a byte from the service.
    pub(super) silence: Duration,
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = || {
            reqwest::Client::builder()
                .user_agent(concat!("backplane/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                .connect_timeout(CONNECT)
                .pool_idle_timeout(IDLE)
                .tls_backend_preconfigured((*self.tls).clone())
        };
        let built = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|source| Error::Generic {
                store: "S3",
                source: Box::new(source),
            })
        };
        Ok(HttpClient::new(Service {
            asking: built(client().read_timeout(self.silence))?,
            writing: built(client())?,
        }))
    }
}

/// Two clients: the time without a byte that reqwest takes goes on while a body is sent, so a long
/// upload would count as silence. Who writes sets the time for that.
#[derive(Debug)]
struct Service {
    asking: reqwest::Client,
    writing: reqwest::Client,
}

impl HttpService for Service {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        if request.method().as_str() == "PUT" {
            self.writing.call(request)
        } else {
            self.asking.call(request)
        }
    }
}
