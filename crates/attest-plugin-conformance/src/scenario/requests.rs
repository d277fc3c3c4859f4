//! Requests as a run sends them, and their verdicts.

use std::time::Duration;

use crate::answer;
use crate::limits::MESSAGE_BYTES;
use crate::message::Message;
use crate::payload::{self, Hook};
use crate::session::Session;
use crate::stage::{Finding, Judged, Stage};

/// How many requests of one session are asked for the sake of their ids.
const REQUESTS: u64 = 100;

/// How many ids are left out in the middle of it.
const GAP: u64 = 1_000_000;

/// How long a message rests in the middle of its way.
const PAUSE: Duration = Duration::from_millis(30);

/// Every request of a hook that was announced gets a verdict.
pub(super) async fn hook(stage: &Stage<'_>, hook: Hook) -> Judged {
    if stage.announced.known().all(|known| known != hook) {
        return Ok(Finding::Skipped(format!("`{hook}` is not announced")));
    }
    let mut session = stage.open().await?;
    for (at, payload) in payload::all(hook).iter().enumerate() {
        let message = session.ask(hook, payload).await?;
        answer::verdict(&message).map_err(|reason| format!("request {}: {reason}", at + 1))?;
    }
    Ok(Finding::Kept)
}

/// Every answer has the id of what it answers, over a long session and over a gap.
pub(super) async fn ids(stage: &Stage<'_>) -> Judged {
    let hook = stage.hook()?;
    let (mut session, greeting) = stage.opened().await?;
    expect_id(1, greeting.id(), || greeting.quoted())?;
    let payloads = payload::all(hook).iter().cycle();
    for (expected, payload) in (2..).zip(payloads).take_while(|(id, _)| *id <= REQUESTS) {
        let message = session.ask(hook, payload).await?;
        expect_id(expected, message.id(), || message.quoted())?;
    }
    session.skip_ids(GAP);
    let message = session.ask(hook, payload::full(hook)).await?;
    expect_id(REQUESTS + GAP + 1, message.id(), || message.quoted())?;
    Ok(Finding::Kept)
}

fn expect_id(
    expected: u64,
    told: Option<u64>,
    quoted: impl FnOnce() -> String,
) -> Result<(), String> {
    if told == Some(expected) {
        return Ok(());
    }
    Err(format!("expected the id {expected}, got {}", quoted()))
}

/// No verdict passes a limit.
pub(super) async fn limits(stage: &Stage<'_>) -> Judged {
    stage.hook()?;
    let mut session = stage.open().await?;
    for hook in stage.announced.known() {
        for payload in payload::all(hook) {
            let message = session.ask(hook, payload).await?;
            answer::limits(&message).map_err(|reason| format!("`{hook}`: {reason}"))?;
        }
    }
    Ok(Finding::Kept)
}

/// A request may be as large as a message may be.
pub(super) async fn large(stage: &Stage<'_>) -> Judged {
    let hook = stage.hook()?;
    let mut session = stage.open().await?;
    // The second message, whose id is 2.
    let payload = payload::padded(hook, 2, MESSAGE_BYTES);
    let message = session.ask(hook, &payload).await?;
    expect_verdict(&message)?;
    let message = session.ask(hook, payload::full(hook)).await?;
    expect_verdict(&message)?;
    Ok(Finding::Kept)
}

/// A message ends with its line feed, in how many parts it may come.
pub(super) async fn split(stage: &Stage<'_>) -> Judged {
    let hook = stage.hook()?;
    let mut session = stage.open().await?;
    let text = payload::all(hook).last().copied().unwrap_or_default();
    for _ in 0..2 {
        let line = payload::request(session.id(), hook, text) + "\n";
        write_in_parts(&mut session, line.as_bytes()).await?;
        let message = session.message(&format!("`{hook}` in parts")).await?;
        expect_verdict(&message)?;
    }
    Ok(Finding::Kept)
}

/// Writes the beginning, half of a character if there is a long one, the rest, and the end.
async fn write_in_parts(session: &mut Session, line: &[u8]) -> Result<(), String> {
    let middle = line.iter().position(|byte| *byte >= 0xc0);
    let middle = middle.map_or(line.len() / 2, |at| at + 1);
    let (before, rest) = line.split_at_checked(middle).unwrap_or((line, &[]));
    let (after, end) = rest
        .split_at_checked(rest.len().saturating_sub(1))
        .unwrap_or((rest, &[]));
    for part in [before, after, end] {
        session.write(part).await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Members of a later minor version change no decision.
pub(super) async fn unknown_fields(stage: &Stage<'_>) -> Judged {
    stage.hook()?;
    let mut session = stage.open().await?;
    for hook in stage.announced.known() {
        let usual = session.ask(hook, payload::full(hook)).await?;
        let message = session.ask(hook, &payload::with_unknown(hook)).await?;
        expect_verdict(&message)?;
        same_decision(hook, &usual, &message)?;
    }
    // Members beside the payload.
    let hook = stage.hook()?;
    let usual = session.ask(hook, payload::full(hook)).await?;
    let id = session.id();
    let request = payload::request(id, hook, payload::full(hook));
    let request = request.replacen(
        '{',
        r#"{"later":{"kind":"shutdown","v":2},"decision":"deny","#,
        1,
    );
    session.send(&request).await?;
    let message = session.message("a request with unknown fields").await?;
    expect_verdict(&message)?;
    same_decision(hook, &usual, &message)?;
    Ok(Finding::Kept)
}

fn same_decision(hook: Hook, usual: &Message, message: &Message) -> Result<(), String> {
    if message.decision() == usual.decision() {
        return Ok(());
    }
    Err(format!(
        "expected the decision of `{hook}` not to depend on unknown fields, got {} instead of {}",
        message.quoted(),
        usual.quoted()
    ))
}

/// A kind of a later minor version is answered with a verdict or not at all, and nothing follows.
pub(super) async fn unknown_kinds(stage: &Stage<'_>) -> Judged {
    let hook = stage.hook()?;
    let mut session = stage.open().await?;
    let unknown = session.id();
    let request = payload::request(
        unknown,
        "step.later",
        r#"{"step":{"name":"build"},"later":[1]}"#,
    );
    session.send(&request).await?;
    let answers = async {
        let mut message = session.ask(hook, payload::full(hook)).await?;
        if message.id() == Some(unknown) {
            expect_verdict(&message)?;
            message = session.message(&format!("`{hook}`")).await?;
        }
        expect_verdict(&message)
    };
    match answers.await {
        Ok(()) => Ok(Finding::Kept),
        Err(reason) => Err(format!("after a request of an unknown kind: {reason}")),
    }
}

/// What a scenario that is about something else asks of an answer.
fn expect_verdict(message: &Message) -> Result<(), String> {
    if message.kind() == Some("verdict") {
        return Ok(());
    }
    Err(format!("expected a verdict, got {}", message.quoted()))
}
