//! `causal`: questions to the ledger, and a receipt with its part of it as an archive.

mod export;
mod files;

use std::fmt::Write as _;
use std::process::ExitCode;

use attest_exchange::causal::{Chain, Ledger, LookupError, Stats};
use attest_receipt::ledger::Event;
use attest_receipt::time::Time;
use clap::{Args, Subcommand};
use cli_shell::layout::{cell, pairs};
use cli_shell::{CliError, Format, Ui, clock, exit, visible};
use serde::Serialize;

use self::files::{Damaged, Place};

/// Digits of an id where the whole one has no room; as many are enough to name it.
const SHORT: usize = 12;

/// What to ask the ledger.
#[derive(Debug, Clone, Args)]
pub struct Causal {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Count events, and the groups that hang together
    Stats(StatsOf),
    /// List events, the newest first
    Events(Events),
    /// Show how one event followed from another; exit code 1 if it did not
    Path(Path),
    /// Put events in order and hash them
    Chain(Chained),
    /// Write a receipt and its events as an archive
    Export(export::Export),
}

#[derive(Debug, Clone, Args)]
struct StatsOf {
    /// Also how many events a group has on average
    #[arg(long)]
    detailed: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Args)]
struct Events {
    /// How many
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Only those of this step
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Args)]
struct Path {
    /// The id of the earlier event, or at least the first 8 digits of it
    #[arg(value_name = "FROM")]
    from: String,
    /// The id of the later event
    #[arg(value_name = "TO")]
    to: String,
    /// Also what each event says
    #[arg(long)]
    detailed: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Args)]
struct Chained {
    /// The ids of the events, or at least the first 8 digits of each
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Also write the chain into the ledger
    #[arg(long)]
    save: bool,
    #[command(flatten)]
    place: Place,
}

impl Causal {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Stats(stats) => stats.run(ui),
            Action::Events(events) => events.run(ui),
            Action::Path(path) => path.run(ui),
            Action::Chain(chain) => chain.run(ui),
            Action::Export(export) => export.run(ui),
        }
    }
}

impl StatsOf {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        #[derive(Serialize)]
        struct Record {
            #[serde(flatten)]
            stats: Stats,
            #[serde(skip_serializing_if = "Option::is_none")]
            avg_chain_length: Option<usize>,
            damaged: Vec<Damaged>,
        }
        let (ledger, damaged) = self.place.load()?;
        let stats = ledger.stats();
        let average = stats.total_events.checked_div(stats.total_chains);
        let record = Record {
            stats,
            avg_chain_length: self.detailed.then_some(average.unwrap_or(0)),
            damaged,
        };
        ui.record(&record, |record| {
            let number = |number: usize| Some(number.to_string());
            pairs(&[
                ("events", number(record.stats.total_events)),
                ("chains", number(record.stats.total_chains)),
                ("root events", number(record.stats.root_events)),
                ("leaf events", number(record.stats.leaf_events)),
                (
                    "average chain",
                    record.avg_chain_length.map(|number| number.to_string()),
                ),
            ])
        })?;
        Ok(whole(ui, &record.damaged))
    }
}

impl Events {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let (ledger, damaged) = self.place.load()?;
        let events = ledger.recent(self.step.as_deref());
        for event in events.iter().take(self.limit) {
            if ui.format() == Format::Json {
                ui.json(event)?;
            } else {
                ui.data(line(event))?;
            }
        }
        if ui.format() == Format::Human && events.is_empty() {
            ui.data("no causal events recorded")?;
        } else if events.len() > self.limit {
            let (shown, all) = (self.limit, events.len());
            ui.status(format!(
                "showing {shown} of {all} events; --limit shows more"
            ));
        }
        Ok(whole(ui, &damaged))
    }
}

impl Path {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        #[derive(Serialize)]
        struct Record<'a> {
            from: &'a str,
            to: &'a str,
            path: Option<Vec<&'a Event>>,
        }
        let (ledger, damaged) = self.place.load()?;
        let code = whole(ui, &damaged);
        let (from, to) = (find(&ledger, &self.from)?, find(&ledger, &self.to)?);
        let record = Record {
            from: &from.event_id,
            to: &to.event_id,
            path: ledger.path(from, to),
        };
        ui.record(&record, |record| match &record.path {
            None => "no causal path between the events".to_owned(),
            Some(path) => way(path, self.detailed),
        })?;
        Ok(if record.path.is_some() {
            code
        } else {
            exit::no()
        })
    }
}

impl Chained {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        #[derive(Serialize)]
        struct Record<'a> {
            #[serde(flatten)]
            chain: &'a Chain,
            #[serde(skip_serializing_if = "Option::is_none")]
            saved: Option<String>,
        }
        let (ledger, damaged) = self.place.load()?;
        let code = whole(ui, &damaged);
        let ids = self.ids.iter().map(|id| find(&ledger, id));
        let events = ids.collect::<Result<Vec<_>, _>>()?;
        let chain = ledger.chain(&events, Time::from(clock::now()));
        let saved = match self.save {
            true => Some(self.place.save(&chain)?),
            false => None,
        };
        let record = Record {
            chain: &chain,
            saved: saved.map(|path| path.display().to_string()),
        };
        ui.record(&record, |record| {
            let mut text = pairs(&[
                ("chain", Some(record.chain.chain_id.clone())),
                ("hash", Some(record.chain.chain_hash.clone())),
                ("events", Some(record.chain.events.len().to_string())),
            ]);
            if let Some(path) = &record.saved {
                // In one piece, to be copied.
                let _ = writeln!(text, "saved   {}", visible(path));
            }
            for event in &record.chain.events {
                text.push_str(&format!("{}\n", line(event)));
            }
            text
        })?;
        Ok(code)
    }
}

/// Names the files that are not believed; that there are some is a no.
fn whole(ui: &Ui, damaged: &[Damaged]) -> ExitCode {
    for file in damaged {
        ui.warn(format!(
            "`{}` is not believed: {}",
            visible(&file.file),
            visible(&file.reason)
        ));
    }
    if damaged.is_empty() {
        exit::ok()
    } else {
        exit::no()
    }
}

fn find<'a>(ledger: &'a Ledger, id: &str) -> Result<&'a Event, CliError> {
    ledger.find(id).map_err(|error| match error {
        LookupError::Unknown(_) => CliError::no(error).hint("`attest causal events` lists them"),
        _ => CliError::usage(error),
    })
}

/// One event in 80 columns.
fn line(event: &Event) -> String {
    let time = event.timestamp.to_string();
    let time = time.get(..19).unwrap_or(&time);
    let step = cell(&visible(&event.step_name), 24);
    let id: String = event.event_id.chars().take(SHORT).collect();
    format!("{time}Z  {step}  exit {:<3}  {id}", event.exit_code)
}

fn way(path: &[&Event], detailed: bool) -> String {
    let mut text = String::new();
    for (index, event) in path.iter().enumerate() {
        let place = match index {
            0 => "from",
            last if last + 1 == path.len() => "to",
            _ => "",
        };
        let id = &event.event_id;
        let _ = writeln!(text, "{place:<6}{id}");
        if detailed {
            let _ = writeln!(text, "      {}", line(event));
        }
    }
    text
}
