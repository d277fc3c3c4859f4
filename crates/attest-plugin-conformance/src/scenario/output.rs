//! What is on standard output beside the answers.

use crate::payload;
use crate::session::Session;
use crate::stage::{Finding, Judged, Stage};

/// Standard output carries messages and nothing else.
pub(super) async fn stray(stage: &Stage<'_>) -> Judged {
    let session = whole(stage, false).await?;
    match session.notes.stray {
        None => Ok(Finding::Kept),
        Some(line) => Err(format!("expected messages only, got {line}")),
    }
}

/// Each message is one compact line.
pub(super) async fn compact(stage: &Stage<'_>) -> Judged {
    let session = whole(stage, false).await?;
    session.notes.loose.map_or(Ok(Finding::Kept), Err)
}

/// Nothing comes that was not asked for.
pub(super) async fn unsolicited(stage: &Stage<'_>) -> Judged {
    let session = whole(stage, true).await?;
    match session.notes.unsolicited {
        None => Ok(Finding::Kept),
        Some(line) => Err(format!(
            "expected one answer to each request, got also {line}"
        )),
    }
}

/// Leads a session from `hello` to the end, with pauses in which nothing may come if they are asked
/// for, and looks at all that came.
async fn whole(stage: &Stage<'_>, pauses: bool) -> Result<Session, String> {
    stage.hook()?;
    let mut session = stage.open().await?;
    for hook in stage.announced.known() {
        if pauses {
            session.quiet().await;
        }
        session.ask(hook, payload::full(hook)).await?;
    }
    if pauses {
        session.quiet().await;
    }
    super::ending::say_goodbye(&mut session).await?;
    session.end(stage.limits.grace).await?;
    if let Some(message) = session.left().first() {
        let quoted = message.quoted();
        session.notes.unsolicited.get_or_insert(quoted);
    }
    Ok(session)
}
