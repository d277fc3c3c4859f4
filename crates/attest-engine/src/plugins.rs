//! Plugins of attest-plugin/1 as the hooks of a run.
//!
//! Payloads are made here, from facts in memory, for each plugin anew; what a plugin answers is
//! kept by the host. Neither has a way to a key: the host stands below everything that knows one.

mod payload;

use attest_plugin_host::host;
use attest_plugin_host::{Host, HostOptions, Plugins, StartError};
use attest_plugin_protocol::{Hook, Payload};
use attest_receipt::receipt::{PluginRecord, Receipt};

use crate::hooks::{
    AfterStep, Answer, BeforeStep, Farewell, Hooks, PipelineFacts, Stop, StopKind, Verdict,
};

pub use payload::{ARTIFACTS, artifact_manifest_hash};

/// The plugins that a workspace declares, running.
#[derive(Debug)]
pub struct PluginHooks {
    host: Host,
}

impl PluginHooks {
    /// Makes hooks of plugins that were started.
    #[must_use]
    pub fn new(mut host: Host) -> Self {
        // Who did not start failed before the first build and not in it: where there are two, there
        // is nothing of it to be compared.
        host.end_build();
        Self { host }
    }

    /// Starts and greets the declared plugins.
    ///
    /// # Errors
    /// The run must not begin: exit code 2.
    pub async fn start(plugins: &Plugins, options: HostOptions) -> Result<Self, StartError> {
        Ok(Self::new(Host::start(plugins, options).await?))
    }

    async fn ask(&mut self, hook: Hook, mut payload: impl FnMut(bool) -> Payload) -> Verdict {
        let stop = |plugin, reason, kind| {
            Verdict::Stop(Stop {
                plugin,
                reason,
                kind,
            })
        };
        match self.host.ask(hook, &mut payload).await {
            host::Answer::Go => Verdict::Go,
            host::Answer::Denied { plugin, reason } => stop(plugin, reason, StopKind::Denied),
            host::Answer::Failed { plugin, reason } => stop(plugin, reason, StopKind::Failed),
            host::Answer::Cancelled => Verdict::Cancelled,
        }
    }
}

impl Hooks for PluginHooks {
    fn pipeline_validate<'a>(&'a mut self, facts: &'a PipelineFacts) -> Answer<'a> {
        let payload = |_wants_output| payload::pipeline(facts);
        Box::pin(self.ask(Hook::PipelineValidate, payload))
    }

    fn step_pre<'a>(&'a mut self, facts: &'a BeforeStep<'a>) -> Answer<'a> {
        let payload = |_wants_output| payload::before_step(facts);
        Box::pin(self.ask(Hook::StepPre, payload))
    }

    fn step_post<'a>(&'a mut self, facts: &'a AfterStep<'a>) -> Answer<'a> {
        let payload = |wants_output| payload::after_step(facts, wants_output);
        Box::pin(self.ask(Hook::StepPost, payload))
    }

    fn receipt_finalize<'a>(&'a mut self, receipt: &'a Receipt) -> Answer<'a> {
        let payload = |wants_output| payload::receipt(receipt, wants_output);
        Box::pin(self.ask(Hook::ReceiptFinalize, payload))
    }

    fn records(&self) -> Option<Vec<PluginRecord>> {
        // A file that declares nobody is as none, and so is the receipt.
        Some(self.host.records()).filter(|records| !records.is_empty())
    }

    fn know_declarations(&self) -> bool {
        true
    }

    fn wants_output(&self) -> bool {
        self.host.wants_output()
    }

    fn end_build(&mut self) -> Vec<PluginRecord> {
        self.host.end_build()
    }

    fn finish(&mut self) -> Farewell<'_> {
        Box::pin(self.host.shutdown())
    }
}
