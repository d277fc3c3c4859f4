//! A driver for host sessions with a clock that only moves when a test says so.

use std::time::{Duration, Instant};

use attest_plugin_protocol::{
    AfterStep, Announcement, BeforeStep, Expected, Failure, Hook, HostEvent, HostSession, Payload,
    PipelinePayload, PluginExit, Verdict,
};

/// The declared time-out of every test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const NANO: Duration = Duration::from_nanos(1);

/// Returns some instant; only differences to it matter.
pub(crate) fn epoch() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "an origin for a clock that stands still"
    )]
    Instant::now()
}

/// What the tests declare: `policy`, every hook, deterministic.
pub(crate) fn expected() -> Expected {
    Expected {
        name: "policy".parse().unwrap(),
        hooks: Hook::ALL.to_vec(),
        deterministic: true,
    }
}

pub(crate) fn announcement() -> Announcement {
    Announcement::new("policy".parse().unwrap(), "1.4.2", &Hook::ALL, true)
}

/// The `hello_ok` that fits, as any author would write it.
pub(crate) fn hello_ok() -> String {
    hello_ok_with("", "")
}

/// The same with one field replaced or added, for instance `("\"name\":\"policy\"", "…")`.
pub(crate) fn hello_ok_with(from: &str, to: &str) -> String {
    let line = concat!(
        r#"{"v":1,"id":1,"kind":"hello_ok","name":"policy","version":"1.4.2","protocol":1,"#,
        r#""hooks":["pipeline.validate","step.pre","step.post","receipt.finalize"],"#,
        r#""deterministic":true}"#,
        "\n"
    );
    if from.is_empty() {
        return line.to_owned();
    }
    assert!(line.contains(from), "{from}");
    line.replacen(from, to, 1)
}

/// A verdict with a body such as `,"decision":"allow"`.
pub(crate) fn verdict(id: u64, body: &str) -> String {
    format!("{{\"v\":1,\"id\":{id},\"kind\":\"verdict\"{body}}}\n")
}

pub(crate) fn allow(id: u64) -> String {
    verdict(id, r#","decision":"allow","findings":[]"#)
}

pub(crate) fn pipeline() -> Payload {
    Payload::Pipeline(PipelinePayload::default())
}

pub(crate) fn before() -> Payload {
    Payload::BeforeStep(BeforeStep::default())
}

pub(crate) fn after() -> Payload {
    Payload::AfterStep(AfterStep::default())
}

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) session: HostSession,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<String>,
    pub(crate) events: Vec<HostEvent>,
}

impl Driver {
    /// A session whose `hello` is sent.
    pub(crate) fn new() -> Self {
        Self::expecting(expected())
    }

    pub(crate) fn expecting(expected: Expected) -> Self {
        let now = epoch();
        let mut driver = Self {
            session: HostSession::new(expected, "1.0.0", TIMEOUT, now),
            now,
            sent: Vec::new(),
            events: Vec::new(),
        };
        driver.pump();
        driver
    }

    /// A session that waits for a request.
    pub(crate) fn ready() -> Self {
        let mut driver = Self::new();
        driver.write(hello_ok());
        assert!(driver.session.is_idle(), "{:?}", driver.events);
        driver.events.clear();
        driver
    }

    /// A session with an open request at `step.pre`, id 2.
    pub(crate) fn asked() -> Self {
        let mut driver = Self::ready();
        driver.ask(&before());
        driver
    }

    pub(crate) fn pump(&mut self) {
        while let Some(line) = self.session.poll_transmit() {
            self.sent.push(String::from_utf8(line).unwrap());
        }
        self.events
            .extend(std::iter::from_fn(|| self.session.poll_event()));
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.session.receive(self.now, bytes.as_ref());
        self.pump();
    }

    pub(crate) fn ask(&mut self, payload: &Payload) {
        self.session.request(self.now, payload).unwrap();
        self.pump();
    }

    pub(crate) fn shutdown(&mut self) {
        self.session.shutdown(self.now);
        self.pump();
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
        self.session.handle_timeout(self.now);
        self.pump();
    }

    pub(crate) fn stdout_closed(&mut self) {
        self.session.stdout_closed(self.now);
        self.pump();
    }

    pub(crate) fn exited(&mut self, code: i32) {
        self.session.exited(self.now, PluginExit::Code(code));
        self.pump();
    }

    /// Takes the events but notes.
    pub(crate) fn acts(&mut self) -> Vec<HostEvent> {
        let events = std::mem::take(&mut self.events).into_iter();
        events
            .filter(|event| !matches!(event, HostEvent::Note(_)))
            .collect()
    }

    /// Takes the notes.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        let (notes, others) = std::mem::take(&mut self.events)
            .into_iter()
            .partition::<Vec<_>, _>(|event| matches!(event, HostEvent::Note(_)));
        self.events = others;
        notes
            .into_iter()
            .map(|note| match note {
                HostEvent::Note(text) => text,
                _ => unreachable!(),
            })
            .collect()
    }

    /// Takes the only verdict.
    pub(crate) fn verdict(&mut self) -> Verdict {
        match self.acts().as_slice() {
            [HostEvent::Verdict(verdict)] => verdict.clone(),
            other => panic!("no single verdict: {other:?}"),
        }
    }

    /// Takes the failure, which is the last thing that a session says.
    pub(crate) fn failure(&mut self) -> Failure {
        assert!(self.session.is_over());
        match self.acts().pop() {
            Some(HostEvent::Failed(failure)) => failure,
            other => panic!("no failure: {other:?}"),
        }
    }

    /// Takes the reason of a failure after the start.
    pub(crate) fn broken(&mut self) -> String {
        match self.failure() {
            Failure::Broken(reason) => reason,
            other => panic!("another failure: {other:?}"),
        }
    }

    /// Takes the reason of a failure before `hello_ok`.
    pub(crate) fn not_started(&mut self) -> String {
        match self.failure() {
            Failure::Start(reason) => reason,
            other => panic!("another failure: {other:?}"),
        }
    }
}
