//! The valid session: the plugin is run as a Worker runs it, and must come to a real result.

use std::ffi::OsString;
use std::time::Duration;

use forge_plugin_host::{PluginCommand, RunError, RunLimits};
use forge_plugin_protocol::{Capability, Operation as Request, Outcome};
use tokio_util::sync::CancellationToken;

use crate::ground::{Git, temporary};
use crate::run::explain;
use crate::{Operation, Target, excerpt};

const WORKSPACE_TIMEOUT: Duration = Duration::from_secs(10);
const OUTPUT_BYTES: u64 = 1_048_576;

/// Leads one session and says what is wrong with it, if anything is.
pub(crate) async fn valid(
    target: &Target,
    operation: Operation,
    timeout: Duration,
) -> Result<(), String> {
    match operation {
        Operation::Text => text(target, timeout).await,
        Operation::WorkspaceEdit => workspace_edit(target, timeout).await,
    }
}

async fn text(target: &Target, timeout: Duration) -> Result<(), String> {
    let request = Request::text(Operation::Text.task()).map_err(|error| explain(&error))?;
    match lead(target, &request, &[Capability::Text], timeout).await? {
        Outcome::Text(output) if output.as_str().is_empty() => {
            Err("expected an output that is not empty, got an empty one".to_owned())
        }
        Outcome::Text(_) => Ok(()),
        Outcome::Workspace { .. } => {
            Err("expected the result of a text operation, got another".to_owned())
        }
    }
}

/// The capabilities that the valid session offers to a workspace plugin.
const OFFER: [Capability; 4] = [
    Capability::WorkspaceEdit,
    Capability::Progress,
    Capability::Cancel,
    Capability::CommitSubject,
];

async fn workspace_edit(target: &Target, timeout: Duration) -> Result<(), String> {
    let directory = temporary()?;
    let git = Git {
        target,
        directory: directory.path(),
    };
    git.prepare().await?;
    let workspace = directory.path().to_string_lossy();
    let instruction = Operation::WorkspaceEdit.task();
    let request = Request::workspace_edit(&workspace, instruction, WORKSPACE_TIMEOUT)
        .map_err(|error| explain(&error))?;
    match lead(target, &request, &OFFER, timeout).await? {
        Outcome::Workspace { .. } => {}
        Outcome::Text(_) => {
            return Err("expected the result of a workspace edit, got another".to_owned());
        }
    }
    if git.run(&["status", "--porcelain"]).await?.is_empty() {
        return Err("expected an edited workspace, got one without changes (`git status --porcelain` is empty)".to_owned());
    }
    // What cannot be removed is in a temporary directory, and no fault of the plugin's protocol.
    drop(directory.close());
    Ok(())
}

async fn lead(
    target: &Target,
    request: &Request,
    offer: &[Capability],
    timeout: Duration,
) -> Result<Outcome, String> {
    let command = PluginCommand {
        argv: texts(&target.argv)?,
        env: target.env.clone(),
        cwd: None,
    };
    let limits = RunLimits {
        timeout,
        output_bytes: OUTPUT_BYTES,
    };
    let cancel = CancellationToken::new();
    let mut ignore = |_| {};
    let run = forge_plugin_host::run(
        &target.wrapper,
        &command,
        request,
        offer,
        &limits,
        &cancel,
        &mut ignore,
    );
    run.await.map_err(|error| match error {
        RunError::Invalid(error) => explain(&error),
        RunError::Start(error) => explain(&crate::TargetError::from(error)),
        RunError::Reported {
            category,
            stderr_tail,
        } => {
            let said = format!("expected a result, got a failure frame with category `{category}`");
            match excerpt::tail(stderr_tail.as_bytes()) {
                Some(tail) => format!("{said}; stderr: {tail}"),
                None => said,
            }
        }
        RunError::Cancelled => format!("expected a result within {timeout:?}, got none"),
        RunError::Protocol {
            reason,
            stderr_tail,
            initialized: _,
        } => {
            let reason = excerpt::message(&reason);
            match excerpt::tail(stderr_tail.as_bytes()) {
                Some(tail) => format!("{reason}; stderr: {tail}"),
                None => reason,
            }
        }
    })
}

fn texts(argv: &[OsString]) -> Result<Vec<String>, String> {
    argv.iter()
        .map(|argument| argument.clone().into_string())
        .collect::<Result<_, _>>()
        .map_err(|argument| {
            format!(
                "an argument of the plugin is not UTF-8: `{}`",
                excerpt::message(&argument.to_string_lossy())
            )
        })
}
