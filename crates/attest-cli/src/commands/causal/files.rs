//! The ledger's files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use attest_engine::layout::{State, create_whole};
use attest_exchange::causal::{Chain, Ledger};
use attest_receipt::ledger::MAX_BYTES;
use clap::Args;
use cli_shell::{CliError, env, visible};
use serde::Serialize;

use crate::guard::Guard;
use crate::places::{Workspace, check_folder, folder};

/// The variable that names the state folder.
const VARIABLE: &str = "ATTEST_STATE_DIR";
/// More files are not looked at.
const MAX_EVENTS: usize = 1_000_000;

/// Which ledger is meant.
#[derive(Debug, Clone, Args)]
pub(super) struct Place {
    /// The folder of receipts and ledger [default: .attest in the workspace]
    #[arg(long, value_name = "DIR", value_parser = folder())]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    workspace: Workspace,
}

/// A file that is not what its name says.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Damaged {
    pub(super) file: String,
    pub(super) reason: String,
}

impl Place {
    /// Returns the folder of the ledger. The state folder has to be there if it was named.
    pub(super) fn ledger(&self) -> Result<PathBuf, CliError> {
        let variable = env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let option = self.state_dir.as_deref();
        let state = State::choose(self.workspace.path(), option, variable.as_deref());
        if option.is_none() && variable.is_some() {
            let folder = state.folder();
            check_folder(folder).map_err(|why| {
                let folder = visible(&folder.to_string_lossy());
                CliError::usage(format!("{VARIABLE} names `{folder}`, but {why}"))
            })?;
        }
        Ok(state.ledger())
    }

    /// Returns what no option may write to.
    pub(super) fn guard(&self) -> Guard {
        self.workspace.guard()
    }

    /// Tells whether somebody said which ledger is meant.
    pub(super) fn is_named(&self) -> bool {
        self.state_dir.is_some() || self.workspace.is_named()
    }

    /// Reads the events. Those that are not believed are returned by the name of their file.
    pub(super) fn load(&self) -> Result<(Ledger, Vec<Damaged>), CliError> {
        let folder = self.ledger()?.join("events");
        let failed = |error| CliError::operation(error).because("cannot read the ledger");
        let entries = match fs_err::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok((Ledger::default(), Vec::new()));
            }
            Err(error) => return Err(failed(error)),
        };
        let (mut ledger, mut damaged) = (Ledger::default(), Vec::new());
        for (number, entry) in entries.enumerate() {
            if number >= MAX_EVENTS {
                return Err(CliError::operation(format!(
                    "`{}` has more than {MAX_EVENTS} files",
                    folder.display()
                )));
            }
            let path = entry.map_err(failed)?.path();
            if path.extension().is_none_or(|end| end != "json") {
                // What a writer has not finished, or nobody's event.
                continue;
            }
            if let Err(reason) = add(&mut ledger, &path) {
                let file = path.display().to_string();
                damaged.push(Damaged { file, reason });
            }
        }
        damaged.sort_by(|a, b| a.file.cmp(&b.file));
        Ok((ledger, damaged))
    }

    /// Writes a chain into the ledger. Its name stands for its ends, so one that is there already
    /// may be of other events between them; it is replaced.
    pub(super) fn save(&self, chain: &Chain) -> Result<PathBuf, CliError> {
        let failed = |error: CliError| error.because("cannot save the chain");
        let folder = self.ledger()?.join("chains");
        fs_err::create_dir_all(&folder).map_err(|error| failed(CliError::operation(error)))?;
        let path = folder.join(format!("{}.json", chain.chain_id));
        let bytes =
            serde_json::to_vec_pretty(chain).map_err(|error| failed(CliError::operation(error)))?;
        let created = create_whole(&path, &bytes);
        if !created.map_err(|error| failed(CliError::operation(error)))? {
            safe_fs::write_atomic(&path, &bytes, 0o644)
                .map_err(|error| failed(CliError::operation(error)))?;
        }
        Ok(path)
    }
}

fn add(ledger: &mut Ledger, path: &Path) -> Result<(), String> {
    let id = path.file_stem().and_then(|stem| stem.to_str());
    let id = id
        .filter(|id| attest_receipt::is_lower_hex_64(id))
        .ok_or("its name is no id of an event")?;
    ledger.add(id, &read(path)?)
}

/// Reads the file of an event.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    safe_fs::read_bounded(path, MAX_BYTES as u64).map_err(|error| error.to_string())
}
