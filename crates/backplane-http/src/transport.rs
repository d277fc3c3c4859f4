//! The transport, for those who block and for those who have a runtime.

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backplane_client::{
    Answer, Call, Cancel, ClientError, Download, Fault, Request, Transport, TransportError,
};
use bounded::text::with_causes;
use reqwest::Client;
use tls_files::{PlainPolicy, Transport as Protection};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use url::Url;

use crate::attempts::{cancelled, carry_out};
use crate::clock::{Clock, SystemClock};
use crate::error::SetupError;
use crate::exchange::Ask;
use crate::options::Options;
use crate::partial::Partial;
use crate::resume_file::ResumeFile;
use crate::wire::{Trust, Wires};

/// How often a cancellation is looked for; the rule says 25 ms.
const LOOK: Duration = Duration::from_millis(10);

type Outcome = (Result<Answer, TransportError>, Option<ResumeFile>);

/// Carries requests over HTTP. It is shared by reference; any number of requests may be on the way.
pub struct HttpTransport {
    shared: Arc<Shared>,
    runtime: OnceLock<Runtime>,
}

struct Shared {
    options: Options,
    trust: Trust,
    clock: Arc<dyn Clock>,
    /// Of the own runtime.
    own: Wires,
    /// Of the caller's runtime.
    callers: Wires,
}

impl HttpTransport {
    /// Checks the options and reads a file of authorities; connects to nothing.
    ///
    /// # Errors
    /// The authorities cannot be read, or a proxy's address is none.
    pub fn new(options: Options) -> Result<Self, SetupError> {
        Self::with_clock(options, Arc::new(SystemClock::new()))
    }

    /// The same in a time of the caller's. The limit for connecting alone stays the machine's.
    ///
    /// # Errors
    /// As [`HttpTransport::new`].
    pub fn with_clock(options: Options, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        options.proxies.for_reqwest()?;
        let trust = Trust::new(options.roots.clone())?;
        let shared = Shared {
            options,
            trust,
            clock,
            own: Wires::default(),
            callers: Wires::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            runtime: OnceLock::new(),
        })
    }

    /// Tells whether a request to this URL would leave the machine in clear text, by the wish of
    /// [`Options::allow_plain_http`]: that deserves a warning.
    #[must_use]
    pub fn sends_plain(&self, url: &str) -> bool {
        let url = Url::parse(url);
        let judged = url.ok().and_then(|url| self.shared.judge(&url).ok());
        judged == Some(Protection::PlainRemote)
    }

    /// Carries a request out on the caller's runtime. All calls of one transport should be of one
    /// runtime, which the connections that are kept belong to.
    ///
    /// # Errors
    /// There is no answer. An answer with any status is none of these.
    pub async fn send_async(
        &self,
        request: &Request,
        cancel: &dyn Cancel,
    ) -> Result<Answer, TransportError> {
        let ask = self.shared.ask(request)?;
        let mut partial = Partial::new(ask.url.as_str(), ask.limit, None);
        let stop = cancelled_by(cancel);
        let wires = &self.shared.callers;
        self.shared.carry(wires, &ask, &mut partial, stop).await
    }

    /// Downloads an artifact and keeps what there is of it in a file, from which the next call goes
    /// on if this one breaks off. Blocks as [`Transport::send`] does.
    ///
    /// The file is removed with the artifact in hand and with an artifact that is not wanted; it
    /// stays where another attempt may have better luck.
    ///
    /// # Errors
    /// As [`backplane_client::Client::download`].
    pub fn download(
        &self,
        call: Call<Download>,
        file: ResumeFile,
        cancel: &dyn Cancel,
    ) -> Result<Download, ClientError> {
        let (answer, file) = self.block(call.request(), Some(file), cancel);
        let came = answer.as_ref().is_ok_and(|answer| answer.status == 200);
        let outcome = call.finish(answer, cancel);
        let wanted_later = match &outcome {
            Ok(_) => false,
            Err(ClientError::Cancelled) => true,
            Err(_) => !came,
        };
        match (file, wanted_later) {
            (Some(file), true) => file.keep(),
            (Some(file), false) => file.remove(),
            (None, _) => {}
        }
        outcome
    }

    fn block(&self, request: &Request, file: Option<ResumeFile>, cancel: &dyn Cancel) -> Outcome {
        if cancel.is_cancelled() {
            return (Err(cancelled()), file);
        }
        let ready = self
            .shared
            .ask(request)
            .and_then(|ask| Ok((ask, self.runtime()?)));
        let (ask, runtime) = match ready {
            Ok(ready) => ready,
            Err(error) => return (Err(error), file),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (done, outcome) = sync_channel(1);
        let shared = Arc::clone(&self.shared);
        drop(runtime.spawn(work(shared, ask, file, stopped, done)));
        let mut stop = Some(stop);
        loop {
            match outcome.recv_timeout(LOOK) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => drop(stop.take()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let message = "the network's thread has ended";
                    let error = TransportError::new(Fault::Refused, message);
                    return (Err(error), None);
                }
            }
        }
    }

    fn runtime(&self) -> Result<&Runtime, TransportError> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let made = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("backplane-http")
            .enable_all()
            .build();
        let runtime = made.map_err(|error| {
            let message = format!("cannot start the network's thread: {error}");
            TransportError::new(Fault::Refused, message)
        })?;
        if let Err(second) = self.runtime.set(runtime) {
            // Another thread was faster. A runtime must not be dropped inside of another one.
            second.shutdown_background();
        }
        let unset = || TransportError::new(Fault::Refused, "the network has no thread");
        self.runtime.get().ok_or_else(unset)
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: &Request, cancel: &dyn Cancel) -> Result<Answer, TransportError> {
        self.block(request, None, cancel).0
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        // A look-up of a name that hangs is not waited for, and neither is it inside of a runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn ask(&self, request: &Request) -> Result<Ask, TransportError> {
        let ask = Ask::of(request)?;
        self.judge(&ask.url)?;
        Ok(ask)
    }

    fn judge(&self, url: &Url) -> Result<Protection, TransportError> {
        let policy = match self.options.allow_plain_http {
            true => PlainPolicy::Anywhere,
            false => PlainPolicy::LoopbackOnly,
        };
        let refused = |message: String| TransportError::new(Fault::Refused, message);
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("expected `https://`".to_owned()));
        }
        let judged = policy.judge(url.scheme(), url.host_str().unwrap_or_default());
        judged.map_err(|error| refused(bounded::text::visible(&error.to_string())))
    }

    async fn carry(
        &self,
        wires: &Wires,
        ask: &Ask,
        partial: &mut Partial,
        stop: impl Future<Output = ()>,
    ) -> Result<Answer, TransportError> {
        let client = self.client(wires, &ask.url)?;
        let times = &self.options.times;
        carry_out(client, ask, partial, &self.clock, times, stop).await
    }

    fn client<'a>(&self, wires: &'a Wires, url: &Url) -> Result<&'a Client, TransportError> {
        wires
            .client(url, &self.options, &self.trust)
            .map_err(|error| TransportError::new(Fault::Tls, with_causes(&error)))
    }
}

/// What runs on the own runtime. Who waits for it has gone once `stopped` is ready.
async fn work(
    shared: Arc<Shared>,
    ask: Ask,
    file: Option<ResumeFile>,
    stopped: oneshot::Receiver<()>,
    done: SyncSender<Outcome>,
) {
    let mut partial = Partial::new(ask.url.as_str(), ask.limit, file);
    let stop = async {
        // Nothing is ever sent: the other half is dropped.
        let _dropped = stopped.await;
    };
    let answer = shared.carry(&shared.own, &ask, &mut partial, stop).await;
    let _nobody_waits = done.send((answer, partial.into_file()));
}

async fn cancelled_by(cancel: &dyn Cancel) {
    while !cancel.is_cancelled() {
        tokio::time::sleep(LOOK).await;
    }
}
