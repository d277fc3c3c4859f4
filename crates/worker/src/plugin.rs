//! One operation of a plugin, seen from a job: offer, limits, log, and what its end means.
//!
//! Progress texts and stderr stay on this host. A failure's category does too: to the Gate all
//! are alike.

mod masked;

use std::path::Path;
use std::sync::Arc;

use bounded::text::with_causes;
use forge_domain::Reason;
use forge_plugin_host::{PluginCommand, RunError, RunLimits};
use forge_plugin_protocol::{Capability, Operation, Outcome};
use process_tree::Wrapper;

use crate::acceptance::{Environment, Terms};
use crate::config::PluginEntry;
use crate::execution::Control;
use crate::plugin_identity::PluginIdentities;

/// The whole offer for a text operation.
const TEXT_OFFER: &[Capability] = &[Capability::Text];
/// The whole offer for an edit, in the order of the original host.
const EDIT_OFFER: &[Capability] = &[
    Capability::WorkspaceEdit,
    Capability::Progress,
    Capability::Cancel,
    Capability::CommitSubject,
    Capability::AgentReport,
];

/// Runs plugins.
#[derive(Debug, Clone)]
pub(crate) struct PluginRunner {
    pub(crate) wrapper: Wrapper,
    pub(crate) identities: Arc<PluginIdentities>,
}

/// A plugin that brought no outcome.
#[derive(Debug)]
pub(crate) struct PluginFailure {
    /// What the evidence says.
    pub(crate) reason: Reason,
    /// What the log of the Worker says.
    pub(crate) detail: String,
}

impl PluginRunner {
    /// Runs one operation in a fresh process of the plugin.
    pub(crate) async fn run(
        &self,
        terms: &Terms,
        environment: Environment,
        operation: &Operation,
        control: &Control,
    ) -> Result<Outcome, PluginFailure> {
        self.note_identity(&terms.plugin).await;
        let command = PluginCommand {
            argv: terms.plugin.argv.clone(),
            env: environment,
            cwd: None,
        };
        let limits = RunLimits {
            timeout: terms.limits.plugin_timeout,
            output_bytes: terms.limits.plugin_output_bytes,
        };
        let offer = offer(&terms.plugin, operation);
        let mut progress = |progress: forge_plugin_protocol::Progress| {
            // The text stays here.
            control.activity.plugin(progress.stage);
            tracing::debug!(sequence = progress.sequence, stage = ?progress.stage, "plugin progress");
        };
        forge_plugin_host::run(
            &self.wrapper,
            &command,
            operation,
            &offer,
            &limits,
            &control.cancel,
            &mut progress,
        )
        .await
        .map_err(|error| match error {
            // The host counts both as a cancellation; here they can be told apart.
            RunError::Cancelled if !control.cancel.is_cancelled() => PluginFailure {
                reason: Reason::PluginProtocolFailed,
                detail: format!("no end within the plugin_timeout of {:?}", limits.timeout),
            },
            error => failure(&terms.plugin, error),
        })
        .map_err(|failure| match failure.reason {
            // The plugin's own words are in it.
            Reason::PluginReportedFailure | Reason::PluginProtocolFailed => PluginFailure {
                detail: masked::masked(&failure.detail, &command.env),
                ..failure
            },
            _ => failure,
        })
    }

    async fn note_identity(&self, plugin: &PluginEntry) {
        let Some(program) = plugin.argv.first().cloned() else {
            return;
        };
        let identities = Arc::clone(&self.identities);
        let looked_up =
            tokio::task::spawn_blocking(move || identities.look_up(Path::new(&program)));
        match looked_up.await {
            Ok(Ok(found)) => {
                tracing::info!(path = %found.path.display(), digest = %found.digest, "plugin starts");
            }
            Ok(Err(error)) => tracing::warn!(%error, "the plugin's program cannot be read"),
            Err(error) => tracing::warn!(%error, "the plugin's program was not looked up"),
        }
    }
}

/// What the plugin is offered: everything for its operation, unless its entry says less.
fn offer(plugin: &PluginEntry, operation: &Operation) -> Vec<Capability> {
    let whole = match operation {
        Operation::Text { .. } => TEXT_OFFER,
        Operation::WorkspaceEdit { .. } => EDIT_OFFER,
    };
    let allowed = |capability: &Capability| {
        plugin
            .capabilities
            .as_ref()
            .is_none_or(|only| only.contains(capability))
    };
    whole.iter().copied().filter(allowed).collect()
}

fn failure(plugin: &PluginEntry, error: RunError) -> PluginFailure {
    let (reason, detail) = match error {
        RunError::Invalid(cause) => (Reason::PluginFailed, cause.to_string()),
        RunError::Start(cause) => (Reason::PluginStartFailed, with_causes(&cause)),
        error @ RunError::Reported { .. } => (Reason::PluginReportedFailure, error.to_string()),
        RunError::Cancelled => (Reason::PluginProtocolFailed, error.to_string()),
        RunError::Protocol {
            reason,
            stderr_tail,
            initialized,
        } => {
            if plugin.capabilities.is_none() && !initialized {
                tracing::warn!(
                    "the plugin ended before it answered `initialize`; one that is older than a \
                     capability runs if `capabilities` of its entry in the configuration names \
                     those that it knows"
                );
            }
            let mut detail = reason.to_string();
            if !stderr_tail.is_empty() {
                detail.push_str(&format!("; end of stderr: `{stderr_tail}`"));
            }
            (Reason::PluginProtocolFailed, detail)
        }
    };
    PluginFailure { reason, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(capabilities: Option<Vec<Capability>>) -> PluginEntry {
        PluginEntry {
            argv: vec!["/x".to_owned()],
            capabilities,
        }
    }

    fn edit() -> Operation {
        Operation::workspace_edit("/w", "do", std::time::Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn the_end_of_stderr_is_told_where_there_is_one() {
        let detail = |stderr_tail: &str| {
            let error = RunError::Protocol {
                reason: "it ended".into(),
                stderr_tail: stderr_tail.to_owned(),
                initialized: true,
            };
            failure(&entry(None), error).detail
        };
        assert_eq!(detail(""), "it ended");
        assert_eq!(detail("oops"), "it ended; end of stderr: `oops`");
    }

    #[test]
    fn the_whole_offer_is_in_the_order_of_the_protocol() {
        assert_eq!(offer(&entry(None), &edit()), EDIT_OFFER);
        assert_eq!(
            offer(&entry(None), &Operation::text("x").unwrap()),
            TEXT_OFFER
        );
    }

    #[test]
    fn an_entry_narrows_the_offer_and_never_widens_it() {
        let old = entry(Some(vec![
            Capability::CommitSubject,
            Capability::WorkspaceEdit,
        ]));
        assert_eq!(
            offer(&old, &edit()),
            [Capability::WorkspaceEdit, Capability::CommitSubject]
        );
        assert!(offer(&old, &Operation::text("x").unwrap()).is_empty());
    }
}
