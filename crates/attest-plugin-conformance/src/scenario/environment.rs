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

/// Says why a plugin does not begin, as far as that can be found out. A silent one is not waited
/// for again: what misses a variable ends and says so.
pub(crate) async fn missing(stage: &Stage<'_>, reason: &str, silent: bool) -> String {
    if !silent && begins(stage, &USUAL).await {
        for one in USUAL {
            if begins(stage, &[one]).await {
                let name = one.0;
                return format!(
                    "it begins only where `{name}` is set, which a run does not do: declare `{name}` in its `env` table, and give it here with `--env {name}=VALUE`"
                );
            }
        }
        return "it begins only with variables that a run does not set, such as HOME and USER: declare what it needs in its `env` table, and give it here with `--env NAME=VALUE`".to_owned();
    }
    match stage.target.workspace {
        Some(_) => reason.to_owned(),
        None => format!(
            "{reason}; its workspace is a new empty folder, `--workspace DIR` names another"
        ),
    }
}

async fn begins(stage: &Stage<'_>, more: &[(&str, &str)]) -> bool {
    let Ok(mut session) = stage.start_with(more).await else {
        return false;
    };
    stage.greet(&mut session, "[1]").await.is_ok()
}
