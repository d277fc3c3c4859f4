//! A plugin that declares itself deterministic answers from the payload alone.

use std::time::Duration;

use serde_json::Value;

use crate::message::Message;
use crate::payload;
use crate::stage::{Finding, Judged, Stage};

/// Long enough for a clock that counts seconds to go on.
const LATER: Duration = Duration::from_millis(1_100);

/// The same payload gets the same decision and annotation: again in the same process, as the second
/// build of a reproducibility run asks, and in another one, later, elsewhere, in another order.
pub(super) async fn same(stage: &Stage<'_>) -> Judged {
    match stage.announced.deterministic {
        Some(true) => {}
        Some(false) => {
            return Ok(Finding::Skipped(
                "it declares `deterministic` false".to_owned(),
            ));
        }
        None => return Err("expected `deterministic` to be told, it is not".to_owned()),
    }
    stage.hook()?;
    let questions: Vec<(&str, &str)> = stage
        .announced
        .known()
        .flat_map(|hook| payload::all(hook).iter().map(move |text| (hook, *text)))
        .collect();
    let mut session = stage.open().await?;
    let mut first = Vec::new();
    for (hook, text) in &questions {
        first.push(session.ask(hook, text).await?);
    }
    for ((hook, text), before) in questions.iter().zip(&first) {
        let again = session.ask(hook, text).await?;
        agree(before, &again, hook, "in one process")?;
    }
    drop(session);
    tokio::time::sleep(LATER).await;
    let mut session = stage.open().await?;
    for ((hook, text), before) in questions.iter().zip(&first).rev() {
        let again = session.ask(hook, text).await?;
        agree(before, &again, hook, "in another process, a second later")?;
    }
    Ok(Finding::Kept)
}

fn agree(before: &Message, again: &Message, hook: &str, when: &str) -> Result<(), String> {
    // Read as values, so that the order of keys does not count.
    let part = |message: &Message| {
        let of = |name| message.value.get(name).cloned().unwrap_or(Value::Null);
        (of("decision"), of("annotation"))
    };
    if part(before) == part(again) {
        return Ok(());
    }
    Err(format!(
        "expected the same decision and annotation for the same `{hook}` {when}, got {} and then {}",
        before.quoted(),
        again.quoted()
    ))
}
