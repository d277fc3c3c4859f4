//! The part about receipts: a pipeline runs, its receipt is signed and verified, three things that a
//! receipt must not survive are tried on it, and a plugin refuses a run.
//!
//! Every command is run as a user would run it, its own words are shown, and its outcome is
//! checked: one that ends otherwise than it should fails the whole.

mod workspace;

use std::path::Path;

use cli_shell::layout::pairs;
use cli_shell::{CliError, Ui, clock, visible};
use process_tree::Wrapper;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::command::{self, Ran, Shell, check_of};
use crate::error::DemoError;
use crate::place::Place;
use crate::present::quoted;
use crate::story::{interrupted, step};
use workspace::{CHANGED, DENIED, RECEIPT, Workspace};

/// What was shown, and proven.
#[derive(Debug)]
struct Shown {
    key: String,
    recomputed: String,
    digit: String,
    input: String,
    twice: String,
    denied: String,
    ran: Vec<Ran>,
}

/// Shows the part, removes what it made, and tells the outcome.
pub(crate) async fn tell(keep: bool, ui: &Ui) -> Result<(), CliError> {
    let wrapper = Wrapper::current_exe().map_err(|source| DemoError::Program { source })?;
    let program = std::env::current_exe().map_err(|source| DemoError::Program { source })?;
    let place = Place::empty(program)?;
    let cancel = CancellationToken::new();
    let told = {
        let mut steps = std::pin::pin!(steps(ui, &place, &wrapper, &cancel));
        tokio::select! {
            told = &mut steps => told,
            () = interrupted() => {
                // The command that runs ends with everything that it started, and says so.
                cancel.cancel();
                steps.await
            }
        }
    };
    let kept = keep.then(|| place.path("work"));
    let shown = match &told {
        Ok(shown) => present(shown, kept.as_deref(), ui),
        Err(_) => Ok(()),
    };
    if let Some(work) = kept {
        let program = quoted(&place.program);
        let state = place.keep();
        ui.status(format!(
            "look further:\n  cd {}\n  alias attest='{program} __attest'\n  \
             attest show {RECEIPT}\nremove it all: rm -r {}",
            quoted(&work),
            quoted(&state)
        ));
    } else {
        place.remove()?;
    }
    told?;
    shown
}

async fn steps(
    ui: &Ui,
    place: &Place,
    wrapper: &Wrapper,
    cancel: &CancellationToken,
) -> Result<Shown, DemoError> {
    let started = clock::instant();
    let workspace = Workspace::make(place)?;
    let mut shell = Shell::new(ui, place, wrapper, cancel, workspace.folder());

    let folder = visible(&workspace.folder().display().to_string());
    step(ui, "1  ", &format!("a folder with two steps: {folder}"));
    ui.status(workspace::told());
    ui.status("2  it becomes a workspace of attest, with a key to sign with");
    shell.attest(&["init"]).await?.ends_with(0)?.show(ui);
    let key = shell
        .attest(&["keys", "generate", "--name", "demo"])
        .await?;
    key.ends_with(0)?.show(ui);
    let key = key.only_line()?;

    ui.status("3  the steps run, and what they did is signed");
    let run = shell
        .attest(&["run", "--sign", "--receipt", RECEIPT])
        .await?;
    run.ends_with(0)?.says(RECEIPT)?.show(ui);
    let report = shell.sh("cat out/report.txt").await?;
    report.ends_with(0)?.says("the total is 42")?.show(ui);
    let show = shell.attest(&["show", RECEIPT]).await?;
    show.ends_with(0)?
        .says(&key)?
        .show_between("steps (", "isolation", ui);

    ui.status("4  anybody with the public key verifies it, here with the files beside it");
    let verify = ["verify", "--recompute", RECEIPT];
    let whole = shell.attest(&verify).await?;
    whole
        .ends_with(0)?
        .says(&format!("{RECEIPT}: pass"))?
        .show(ui);
    let recomputed = check_of(&whole, "recompute", "pass")?;
    check_of(&whole, "signature", "pass")?;

    let (before, after) = workspace.forge_a_digit()?;
    ui.status(format!(
        "5  one digit of it is changed in a copy:\n   -   {before}\n   +   {after}"
    ));
    let forged = shell.attest(&["verify", CHANGED]).await?;
    forged
        .ends_with(1)?
        .says(&format!("{CHANGED}: fail"))?
        .show_faults(ui);
    let digit = check_of(&forged, "signature", "FAIL")?;

    ui.status("6  one of the files is changed, the receipt is as it was");
    shell.sh("echo 24 >> numbers.txt").await?.ends_with(0)?;
    let moved = shell.attest(&verify).await?;
    moved.ends_with(1)?.says("step 'sum'")?.show_faults(ui);
    let input = check_of(&moved, "recompute", "FAIL")?;
    check_of(&moved, "signature", "pass")?;

    ui.status("7  a build that is not the same twice");
    ui.status(workspace::told_stamped());
    let twice = shell.attest(&workspace::TWICE).await?;
    twice.ends_with(1)?.show(ui);
    let twice = workspace::differing(&twice)?;
    ui.status(format!("   the file is {twice}"));
    ui.status("8  a plugin that may refuse: pinned by digest, asked before anything runs");
    Workspace::declare_plugin(place)?;
    ui.status(workspace::told_policy());
    let pin = shell.attest(&["plugins", "pin", "policy"]).await?;
    pin.ends_with(0)?.show(ui);
    let denied = shell
        .attest(&["run", "-p", "stamped.yaml", "--receipt", DENIED])
        .await?;
    denied.ends_with(1)?.show_error(ui);
    let denied = workspace.denial(&denied)?;
    ui.status(format!(
        "9  all of it in {:.1} s",
        started.elapsed().as_secs_f64()
    ));
    Ok(Shown {
        key,
        recomputed,
        digit,
        input,
        twice,
        denied,
        ran: shell.into_ran(),
    })
}

/// Shows the outcome, as JSON in one record.
fn present(shown: &Shown, kept: Option<&Path>, ui: &Ui) -> Result<(), CliError> {
    let commands: Vec<Value> = shown.ran.iter().map(Ran::record).collect();
    let record = json!({
        "part": "attest",
        "status": "succeeded",
        "key_id": shown.key,
        "recomputed": shown.recomputed,
        "changed_digit": shown.digit,
        "changed_input": shown.input,
        "not_reproducible": [shown.twice],
        "denied_by_rule": shown.denied,
        "commands": commands,
        "state": kept,
    });
    ui.record(&record, |_| {
        let short = |text: &str| Some(command::short(&visible(text)));
        let table = pairs(&[
            ("  signed by key", short(&shown.key)),
            (
                "  as it was made",
                short(&format!("accepted: {}", shown.recomputed)),
            ),
            (
                "  one digit changed",
                short(&format!("refused: {}", shown.digit)),
            ),
            (
                "  one input changed",
                short(&format!("refused: {}", shown.input)),
            ),
            (
                "  built twice",
                short(&format!("not the same: {}", shown.twice)),
            ),
            (
                "  asked of a plugin",
                short(&format!("denied by the rule {}", shown.denied)),
            ),
        ]);
        format!("\n{}\n{table}", ui.heading("a signed receipt"))
    })?;
    if kept.is_none() {
        ui.status("the state is gone; `forge demo --part attest --keep` leaves it");
    }
    Ok(())
}
