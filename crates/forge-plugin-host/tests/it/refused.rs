//! Requests that start nothing, and plugins that do not start.

use forge_plugin_host::{InvalidRequest, RunError, run};
use forge_plugin_protocol::Capability;
use process_tree::{StartError, Wrapper};

use crate::support::{FIXTURE, Run};

#[tokio::test]
async fn h8_a_missing_executable() {
    let end = Run::argv(["/no/such/plugin"]).end().await;
    assert!(
        matches!(end, Err(RunError::Start(StartError::NotFound { .. }))),
        "{end:?}"
    );
}

/// What a shell says about a missing command is an exit code like any other.
#[tokio::test]
async fn exit_code_127_is_no_failed_start() {
    let (reason, _) = Run::argv(["/bin/sh", "-c", "exit 127"]).broken().await;
    assert!(reason.contains("exit 127"), "{reason}");
}

/// A wrong request is refused as such even when it is cancelled already.
#[tokio::test]
async fn a_wrong_command_is_refused_before_anything_else() {
    let mut run = Run::argv([]);
    run.cancel.cancel();
    let end = run.end().await;
    assert!(
        matches!(
            end,
            Err(RunError::Invalid(InvalidRequest::ArgumentCount(0)))
        ),
        "{end:?}"
    );
}

#[tokio::test]
async fn an_offer_without_the_operation_is_refused() {
    let given = Run::argv(["/no/such/plugin"]);
    for offer in [
        &[Capability::Progress][..],
        &[],
        &[Capability::Text, Capability::Text],
    ] {
        let end = run(
            &Wrapper::new(FIXTURE),
            &given.command,
            &given.operation,
            offer,
            &given.limits,
            &given.cancel,
            &mut |_| {},
        )
        .await;
        assert!(
            matches!(end, Err(RunError::Invalid(InvalidRequest::Offer(_)))),
            "{end:?}"
        );
    }
}
