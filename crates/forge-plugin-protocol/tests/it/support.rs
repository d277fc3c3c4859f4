//! A driver for host sessions with a clock that only moves when a test says so.

use std::time::{Duration, Instant};

use forge_plugin_protocol::{
    Capability, Conclusion, HostEvent, HostSession, Operation, PluginExit, ProtocolError, Violation,
};

pub(crate) const ID: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const ALL: &[Capability] = &Capability::ALL;

/// Returns some instant; only differences to it matter.
pub(crate) fn epoch() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "an origin for a clock that stands still"
    )]
    Instant::now()
}

/// Writes a frame with the common fields and a body such as `,"output":"x"`.
pub(crate) fn frame(kind: &str, body: &str) -> String {
    format!("{{\"version\":\"v1\",\"id\":\"{ID}\",\"type\":\"{kind}\"{body}}}\n")
}

pub(crate) fn initialized(selection: &[Capability]) -> String {
    let names: Vec<String> = selection.iter().map(|name| format!("\"{name}\"")).collect();
    frame(
        "initialized",
        &format!(",\"capabilities\":[{}]", names.join(",")),
    )
}

pub(crate) fn progress(sequence: impl std::fmt::Display) -> String {
    frame(
        "progress",
        &format!(r#","sequence":{sequence},"stage":"working","text":"t""#),
    )
}

pub(crate) struct Driver {
    pub(crate) session: HostSession,
    start: Instant,
    now: Instant,
    pub(crate) sent: Vec<String>,
    pub(crate) events: Vec<HostEvent>,
}

impl Driver {
    pub(crate) fn new(operation: Operation, offer: &[Capability]) -> Self {
        let session = HostSession::new(ID.parse().unwrap(), operation, offer).unwrap();
        let start = epoch();
        let mut driver = Self {
            session,
            start,
            now: start,
            sent: Vec::new(),
            events: Vec::new(),
        };
        driver.pump();
        driver
    }

    /// A `text` operation with everything offered.
    pub(crate) fn text() -> Self {
        Self::new(Operation::text("hello").unwrap(), ALL)
    }

    /// A `workspace_edit` operation with everything offered.
    pub(crate) fn workspace() -> Self {
        let timeout = Duration::from_secs(60);
        Self::new(
            Operation::workspace_edit("/w", "edit", timeout).unwrap(),
            ALL,
        )
    }

    /// A session in which the plugin has selected and `execute` is sent.
    pub(crate) fn executing(mut self, selection: &[Capability]) -> Self {
        self.write(initialized(selection));
        assert!(self.sent.last().unwrap().contains(r#""type":"execute""#));
        self
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.session.receive(self.now, bytes.as_ref());
        self.pump();
    }

    /// Lets the clock reach a time after the start; deadlines on the way are kept.
    pub(crate) fn at(&mut self, milliseconds: u64) {
        self.now = self.start + Duration::from_millis(milliseconds);
        self.session.handle_timeout(self.now);
        self.pump();
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        let deadline = self.session.poll_timeout()?;
        u64::try_from((deadline - self.start).as_millis()).ok()
    }

    pub(crate) fn close(&mut self) {
        self.session.stdout_closed(self.now);
        self.pump();
    }

    pub(crate) fn exit(&mut self, exit: PluginExit) {
        self.session.exited(self.now, exit);
        self.pump();
    }

    pub(crate) fn cancel(&mut self) {
        self.session.cancel(self.now);
        self.pump();
    }

    /// Takes everything but leaves frames that wait for being sent.
    pub(crate) fn write_unpumped(&mut self, bytes: impl AsRef<[u8]>) {
        self.session.receive(self.now, bytes.as_ref());
    }

    /// Ends the plugin cleanly and gives the verdict.
    pub(crate) fn end(mut self) -> Conclusion {
        self.close();
        self.exit(PluginExit::Success);
        self.session.conclude()
    }

    pub(crate) fn kills(&self) -> bool {
        self.events.contains(&HostEvent::Finished { kill: true })
    }

    /// Expects that the session is broken by now and returns how.
    pub(crate) fn broken(self) -> ProtocolError {
        assert!(self.session.is_finished());
        match self.session.conclude() {
            Conclusion::Broken(error) => error,
            other => panic!("expected a violation, got {other:?}"),
        }
    }

    pub(crate) fn violation(self) -> Violation {
        self.broken().violation().clone()
    }

    fn pump(&mut self) {
        while let Some(bytes) = self.session.poll_transmit() {
            self.sent.push(String::from_utf8(bytes).unwrap());
        }
        while let Some(event) = self.session.poll_event() {
            self.events.push(event);
        }
    }
}
