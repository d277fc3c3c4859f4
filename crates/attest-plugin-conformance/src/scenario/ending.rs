//! The end of a session, in every way that it can come.

use process_tree::{Exit, Outlived};

use crate::payload;
use crate::session::{Ended, Session, outlived};
use crate::stage::{Finding, Judged, Stage};

/// After `shutdown` the plugin closes its output and leaves with 0.
pub(super) async fn shutdown(stage: &Stage<'_>) -> Judged {
    let hook = stage.hook()?;
    let mut session = stage.open().await?;
    session.ask(hook, payload::full(hook)).await?;
    leave(stage, session).await
}

/// It does so too if nothing was asked: no hook of its was reached.
pub(super) async fn shutdown_at_once(stage: &Stage<'_>) -> Judged {
    let session = stage.open().await?;
    leave(stage, session).await
}

async fn leave(stage: &Stage<'_>, mut session: Session) -> Judged {
    say_goodbye(&mut session).await?;
    match session.end(stage.limits.grace).await? {
        Ended::Exit(Exit {
            leftovers: Outlived::HeldOutput(_),
            ..
        }) => Err(
            "expected a closed output after `shutdown`, a process that it started holds it open"
                .to_owned(),
        ),
        Ended::Exit(exit) if exit.is_success() => Ok(Finding::Kept),
        Ended::Exit(exit) => Err(format!(
            "expected exit code 0 after `shutdown`, got {}",
            exit.status
        )),
        Ended::Late(limit) => Err(format!(
            "expected the end within {limit:?} of `shutdown`, it stayed"
        )),
    }
}

/// Sends `shutdown`; the input stays open, as a plugin must not wait for its end.
pub(super) async fn say_goodbye(session: &mut Session) -> Result<(), String> {
    let id = session.id();
    session
        .send(&format!(r#"{{"v":1,"id":{id},"kind":"shutdown"}}"#))
        .await
}

/// A core that dies says nothing more; its plugins are not to outlive it.
pub(super) async fn end_of_input(stage: &Stage<'_>) -> Judged {
    let mut session = stage.open().await?;
    session.close();
    match session.end(stage.limits.grace).await? {
        Ended::Exit(_) => Ok(Finding::Kept),
        Ended::Late(limit) => Err(format!(
            "expected the end within {limit:?} of the end of the input, it stayed"
        )),
    }
}

/// SIGTERM is the last word before SIGKILL.
pub(super) async fn terminate(stage: &Stage<'_>) -> Judged {
    let mut session = stage.open().await?;
    session.terminate();
    match session.end(stage.limits.grace).await? {
        Ended::Exit(_) => Ok(Finding::Kept),
        Ended::Late(limit) => Ok(Finding::Advice(format!(
            "it does not end within {limit:?} of SIGTERM, so it has to be killed"
        ))),
    }
}

/// Nothing that the plugin started is there after it.
pub(super) async fn descendants(stage: &Stage<'_>) -> Judged {
    stage.hook()?;
    let mut session = stage.open().await?;
    for hook in stage.announced.known() {
        session.ask(hook, payload::full(hook)).await?;
    }
    say_goodbye(&mut session).await?;
    session.close();
    match session.end(stage.limits.grace).await? {
        Ended::Exit(exit) => match outlived(exit) {
            0 => Ok(Finding::Kept),
            count => Err(format!(
                "expected no process to be left behind, {count} had to be killed"
            )),
        },
        // That it stays is told by the scenario about that.
        Ended::Late(_) => Ok(Finding::Kept),
    }
}
