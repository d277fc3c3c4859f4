//! The variables of the table are enough, or it is known what is missing.

use crate::stage::{Finding, Judged, Stage};

/// The name of the scenario.
pub(crate) const NAME: &str = "environment";

/// Variables that programs are used to, with values that give nothing away.
const USUAL: [(&str, &str); 7] = [
    ("HOME", "/tmp"),
    ("TMPDIR", "/tmp"),
    ("USER", "nobody"),
    ("LOGNAME", "nobody"),
    ("SHELL", "/bin/sh"),
    ("TERM", "dumb"),
    ("XDG_RUNTIME_DIR", "/tmp"),
];

/// The plugin begins with the variables of the table and those that were declared.
pub(super) async fn enough(stage: &Stage<'_>) -> Judged {
    // Every process of the suite has these variables and no other.
    stage.open().await.map(|_| Finding::Kept)
}

/// Says which variable would make a plugin begin that does not.
pub(crate) async fn missing(stage: &Stage<'_>) -> Option<String> {
    if !begins(stage, &USUAL).await {
        return None;
    }
    for one in USUAL {
        if begins(stage, &[one]).await {
            let name = one.0;
            return Some(format!(
                "it begins only where `{name}` is set, which a run does not do: declare `{name}` in its `env` table, and give it here with `--env {name}=VALUE`"
            ));
        }
    }
    Some(
        "it begins only with variables that a run does not set, such as HOME and USER: declare what it needs in its `env` table, and give it here with `--env NAME=VALUE`"
            .to_owned(),
    )
}

async fn begins(stage: &Stage<'_>, more: &[(&str, &str)]) -> bool {
    let Ok(mut session) = stage.start_with(more).await else {
        return false;
    };
    stage.greet(&mut session, "[1]").await.is_ok()
}
