//! The handshake.

use attest_plugin_protocol::PluginName;

use crate::answer;
use crate::message::Message;
use crate::payload::HOOKS;
use crate::session::Ended;
use crate::shown;
use crate::stage::{Announced, Finding, Judged, Stage};

/// A major that no core and no plugin speaks.
const NO_MAJOR: u32 = 4_000_000_000;

/// `hello` gets one `hello_ok` that says what it has to say, and the same each time.
pub(super) async fn answer(stage: &Stage<'_>) -> Judged {
    let (_session, message) = stage.opened().await?;
    let found = answer::hello_ok(&message, stage.target.name.as_ref().map(PluginName::as_str))?;
    same(stage, &message)?;
    Ok(found)
}

/// There is a hook that a declaration can name.
pub(super) async fn hooks(stage: &Stage<'_>) -> Judged {
    stage.hook()?;
    let hooks = &stage.announced.hooks;
    let other = hooks.iter().find(|hook| !HOOKS.contains(&hook.as_str()));
    if let Some(other) = other {
        return Ok(Finding::Advice(format!(
            "the hook `{}` is none of this major version, and no declaration can name it",
            shown::text(other)
        )));
    }
    let mut seen = Vec::new();
    for hook in hooks {
        if seen.contains(&hook) {
            return Ok(Finding::Advice(format!(
                "the hook `{hook}` is announced twice"
            )));
        }
        seen.push(hook);
    }
    Ok(Finding::Kept)
}

/// Members of a later minor version change nothing.
pub(super) async fn unknown_fields(stage: &Stage<'_>) -> Judged {
    let mut session = stage.start().await?;
    let more = r#","later":{"a":[null,{"kind":"shutdown","id":7}]},"protocol":2,"name":"later","later_null":null"#;
    let hello = stage.hello(session.id(), "[1]", more);
    session.send(&hello).await?;
    let message = session.message("`hello` with unknown fields").await?;
    expect_ok(&message)?;
    same(stage, &message)
}

/// Among several majors the plugin finds the one that it speaks.
pub(super) async fn more_majors(stage: &Stage<'_>) -> Judged {
    for protocols in ["[1,2]", "[3,2,1]"] {
        let mut session = stage.start().await?;
        let message = stage.greet(&mut session, protocols).await?;
        let protocol = message.value.get("protocol");
        match protocol.and_then(serde_json::Value::as_u64) {
            Some(1) => {}
            // A plugin may speak a later major too; what it says then is no business of ours.
            Some(2 | 3) => {
                return Ok(Finding::Skipped(
                    "it speaks a later major version".to_owned(),
                ));
            }
            _ => {
                return Err(format!(
                    "expected one of the offered majors {protocols} as `protocol`, got {}",
                    message.quoted()
                ));
            }
        }
    }
    Ok(Finding::Kept)
}

/// A major that the plugin does not speak is not agreed to.
pub(super) async fn other_major(stage: &Stage<'_>) -> Judged {
    let mut session = stage.start().await?;
    let hello = stage.hello(session.id(), &format!("[{NO_MAJOR}]"), "");
    session.send(&hello).await?;
    session.close();
    let ended = session.end(stage.limits.grace).await?;
    let messages = session.left();
    if let Some(message) = messages
        .iter()
        .find(|message| message.kind() == Some("hello_ok"))
    {
        let told = message.value.get("protocol");
        if told.and_then(serde_json::Value::as_u64) == Some(u64::from(NO_MAJOR)) {
            return Err(format!(
                "expected no agreement to a major that does not exist, got {}",
                message.quoted()
            ));
        }
        return Ok(Finding::Advice(
            "it answers `hello_ok` with a major that was not offered; it should end with code 2"
                .to_owned(),
        ));
    }
    match ended {
        Ended::Exit(exit) if exit.is_success() => Ok(Finding::Advice(
            "it ends with code 0 although it has refused; 2 says that it was misconfigured"
                .to_owned(),
        )),
        Ended::Exit(_) => Ok(Finding::Kept),
        Ended::Late(_) => Ok(Finding::Advice(
            "it says nothing and stays; it should end with code 2".to_owned(),
        )),
    }
}

fn expect_ok(message: &Message) -> Result<(), String> {
    if message.kind() == Some("hello_ok") {
        return Ok(());
    }
    Err(format!("expected `hello_ok`, got {}", message.quoted()))
}

/// A declaration fits every process or none.
fn same(stage: &Stage<'_>, message: &Message) -> Judged {
    let (first, now) = (stage.announced, Announced::read(message));
    if (&first.name, &first.hooks, first.deterministic)
        == (&now.name, &now.hooks, now.deterministic)
    {
        return Ok(Finding::Kept);
    }
    Err(format!(
        "expected the same name, hooks and `deterministic` as before, got {}",
        message.quoted()
    ))
}
