//! `causal export`: a receipt and the events that it names, as an archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attest_exchange::archive::{self, Limits, Parts};
use attest_receipt::ledger::Event;
use attest_receipt::receipt::Receipt;
use attest_verify::{Status, chain};
use clap::Args;
use cli_shell::{CliError, Ui, exit, visible};
use serde::Serialize;

use super::files::{self, Place};
use crate::{new_file, prerequisite, receipt_file};

/// Ids and reasons that are told one by one.
const TOLD: usize = 4;

/// What to export, and where to.
#[derive(Debug, Clone, Args)]
pub(super) struct Export {
    /// The receipt
    #[arg(long, value_name = "FILE")]
    receipt: PathBuf,
    /// The archive to write; its name usually ends with .attest.tar.zst; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write the archive even if events are missing; it says so of itself
    #[arg(long)]
    allow_partial: bool,
    #[command(flatten)]
    place: Place,
}

/// What `--format json` prints.
#[derive(Debug, Serialize)]
struct Record {
    archive: String,
    partial: bool,
}

impl Export {
    pub(super) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let to_stdout = new_file::is_stdout(&self.output);
        if to_stdout && ui.writes_to_terminal() {
            return Err(CliError::usage("no archive is written to a terminal")
                .hint("name a file with `--output`, or pipe the archive on"));
        }
        prerequisite::check(&[new_file::json_needs_a_file(ui, to_stdout)])?;
        let bytes = receipt_file::bytes(&self.receipt)?;
        let receipt = receipt_file::parse(&self.receipt, &bytes)?;
        let (events, damaged) = read_events(&receipt, &self.ledger()?.join("events"));
        for (id, reason) in damaged.iter().take(TOLD) {
            let (id, reason) = (visible(id), visible(reason));
            ui.warn(format!("event {id} is not believed: {reason}"));
        }
        let parts = Parts {
            bytes: &bytes,
            receipt: &receipt,
            events: &events,
        };
        let missing = parts.missing();
        if !missing.is_empty() {
            let told = told(&missing);
            if !self.allow_partial {
                return Err(CliError::no(format!(
                    "the ledger has no event that can be believed for: {told}"
                ))
                .because("the causal chain of the receipt is not complete")
                .hint("`--allow-partial` exports what there is"));
            }
            ui.warn(format!("the archive is partial, without {told}"));
        }
        let archive = archive::write(&parts).map_err(CliError::operation)?;
        self.judge(&archive, &receipt)?;
        if to_stdout {
            ui.raw(&archive)?;
            return Ok(exit::ok());
        }
        new_file::write(&self.output, &archive, "archive", &self.place.guard())?;
        let record = Record {
            archive: self.output.display().to_string(),
            partial: !missing.is_empty(),
        };
        ui.record(&record, |record| visible(&record.archive))?;
        Ok(exit::ok())
    }

    /// The ledger that was named, else the one beside the receipt's folder, else the workspace's.
    fn ledger(&self) -> Result<PathBuf, CliError> {
        let state = self.receipt.parent().map(|folder| folder.join(".."));
        let beside = state.map(|state| state.join("causal_ledger"));
        match beside.filter(|ledger| !self.place.is_named() && ledger.is_dir()) {
            Some(ledger) => Ok(ledger),
            None => self.place.ledger(),
        }
    }

    /// What no reader would accept is not handed on.
    fn judge(&self, archive: &[u8], receipt: &Receipt) -> Result<(), CliError> {
        let read = archive::read(archive, &Limits::default()).map_err(CliError::operation)?;
        let check = read.linkage(receipt);
        if check.status != Status::Fail {
            return Ok(());
        }
        let name = visible(&self.receipt.display().to_string());
        Err(CliError::no(check.detail).because(format!("refusing to export `{name}`")))
    }
}

type Events = BTreeMap<String, Vec<u8>>;

/// Reads the events that the receipt names; those that are not believed come with the reason.
fn read_events(receipt: &Receipt, folder: &Path) -> (Events, BTreeMap<String, String>) {
    let (mut events, mut damaged) = (Events::new(), BTreeMap::new());
    for id in &receipt.causal_events {
        // A receipt is somebody else's: what it names must not lead out of the folder.
        if !attest_receipt::is_lower_hex_64(id) {
            continue;
        }
        let path = folder.join(format!("{id}.json"));
        if path.symlink_metadata().is_err() {
            continue;
        }
        match believed(id, &path) {
            Ok(bytes) => drop(events.insert(id.clone(), bytes)),
            Err(reason) => drop(damaged.insert(id.clone(), reason)),
        }
    }
    (events, damaged)
}

fn believed(id: &str, path: &Path) -> Result<Vec<u8>, String> {
    let bytes = files::read(path)?;
    let event = Event::read(&bytes).map_err(|error| error.to_string())?;
    match chain::event_problem(id, &event) {
        Some(problem) => Err(problem.to_owned()),
        None => Ok(bytes),
    }
}

fn told(ids: &[&str]) -> String {
    let mut text: Vec<String> = ids.iter().take(TOLD).map(|id| visible(id)).collect();
    if let Some(more) = ids.len().checked_sub(TOLD).filter(|more| *more > 0) {
        text.push(format!("{more} more"));
    }
    text.join(", ")
}
