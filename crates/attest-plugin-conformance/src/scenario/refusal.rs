//! What no core sends. A plugin that answers it as if it were fine would not notice a core gone
//! wrong; since the core is what is trusted, most of this is advice.

use crate::limits::MESSAGE_BYTES;
use crate::payload;
use crate::session::{Notes, Session};
use crate::stage::{Finding, Judged, Stage};

/// A line that is no JSON cannot be a request, so nothing can be its answer.
pub(super) async fn not_json(stage: &Stage<'_>) -> Judged {
    let line = b"{\"v\":1,\"id\":2,\"kind\":\n";
    let found = heard(stage.open().await?, stage, line).await?;
    match found {
        Said::Consent(quoted) => Err(format!(
            "expected no verdict for a line that is no JSON, got {quoted}"
        )),
        Said::Noise(quoted) => Ok(Finding::Advice(format!(
            "for a line that is no JSON it writes {quoted}; it should end with code 1"
        ))),
        Said::Nothing => Ok(Finding::Kept),
    }
}

/// Text that is not UTF-8 is no JSON.
pub(super) async fn invalid_utf8(stage: &Stage<'_>) -> Judged {
    let mut line = usual(stage)?
        .replacen(r#""name":""#, "\"name\":\"\u{1}", 1)
        .into_bytes();
    for byte in &mut line {
        if *byte == 1 {
            *byte = 0xff;
        }
    }
    advise(stage, &line, "a request that is not UTF-8").await
}

/// Of two members with one name nobody knows which counts.
pub(super) async fn duplicate_keys(stage: &Stage<'_>) -> Judged {
    let line = usual(stage)?.replacen('{', r#"{"id":2,"#, 1);
    advise(
        stage,
        line.as_bytes(),
        "a request in which `id` stands twice",
    )
    .await
}

/// A line that has no end was cut off.
pub(super) async fn unterminated(stage: &Stage<'_>) -> Judged {
    let line = usual(stage)?;
    advise(
        stage,
        line.trim_end().as_bytes(),
        "a request without its line feed",
    )
    .await
}

/// More than 1 MiB is no message.
pub(super) async fn oversized(stage: &Stage<'_>) -> Judged {
    let hook = stage.hook()?;
    let request = payload::request(2, hook, payload::full(hook));
    let padding = "x".repeat(MESSAGE_BYTES);
    let line = request.replacen('{', &format!(r#"{{"later":"{padding}","#), 1) + "\n";
    advise(stage, line.as_bytes(), "a request of more than 1 MiB").await
}

/// A message of another major is not of this protocol.
pub(super) async fn other_version(stage: &Stage<'_>) -> Judged {
    let line = usual(stage)?.replacen(r#""v":1"#, r#""v":2"#, 1);
    advise(stage, line.as_bytes(), "a request with `v` 2").await
}

/// Before `hello` nothing can be asked.
pub(super) async fn before_hello(stage: &Stage<'_>) -> Judged {
    let hook = stage.hook()?;
    let line = payload::request(1, hook, payload::full(hook)) + "\n";
    let session = stage.start().await?;
    let found = heard(session, stage, line.as_bytes()).await?;
    Ok(found.advice("a request before `hello`"))
}

/// The first request of a session, with its line feed.
fn usual(stage: &Stage<'_>) -> Result<String, String> {
    let hook = stage.hook()?;
    Ok(payload::request(2, hook, payload::full(hook)) + "\n")
}

async fn advise(stage: &Stage<'_>, line: &[u8], what: &str) -> Judged {
    let found = heard(stage.open().await?, stage, line).await?;
    Ok(found.advice(what))
}

/// What a plugin says to such a line, after which its input ends.
enum Said {
    /// A verdict that lets the work go on.
    Consent(String),
    /// Something that is no message.
    Noise(String),
    /// Nothing that could be taken for consent.
    Nothing,
}

impl Said {
    fn advice(self, what: &str) -> Finding {
        match self {
            Self::Consent(quoted) => Finding::Advice(format!(
                "it answers {what} as if it were fine: {quoted}; it should end with code 1"
            )),
            Self::Noise(quoted) => Finding::Advice(format!(
                "for {what} it writes {quoted}; it should end with code 1"
            )),
            Self::Nothing => Finding::Kept,
        }
    }
}

async fn heard(mut session: Session, stage: &Stage<'_>, line: &[u8]) -> Result<Said, String> {
    // What came so far belongs to the beginning.
    session.notes = Notes::default();
    session.write(line).await?;
    session.close();
    session.end(stage.limits.grace).await?;
    let messages = session.left();
    let consent = messages.iter().find(|message| {
        message
            .decision()
            .is_some_and(|decision| decision != "deny")
    });
    Ok(match (consent, session.notes.stray) {
        (Some(message), _) => Said::Consent(message.quoted()),
        (None, Some(line)) => Said::Noise(line),
        (None, None) => Said::Nothing,
    })
}
