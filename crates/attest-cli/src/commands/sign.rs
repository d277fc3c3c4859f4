//! `sign RECEIPT`: signs a receipt that was made elsewhere, by a process that runs nothing of the
//! project. Who signs vouches for what is in it, so the receipt is judged first.

use std::path::PathBuf;
use std::process::ExitCode;

use attest_receipt::encode::hex;
use attest_receipt::receipt::Receipt;
use attest_receipt::time::Time;
use attest_verify::trust::Trust;
use attest_verify::{Options, Status};
use clap::Args;
use cli_shell::{CliError, Ui, clock, exit, visible};

use crate::in_place;
use crate::places::Workspace;
use crate::prerequisite;
use crate::receipt_file::{self, FileError};
use crate::stamping::{Stamping, Wish};

/// What is written.
const WHAT: &str = "signed receipt";

/// What to sign, with what, and where to put it.
#[derive(Debug, Clone, Args)]
pub struct Sign {
    /// The unsigned receipt
    #[arg(value_name = "RECEIPT")]
    receipt: PathBuf,
    /// The id of the key to sign with [default: the only one there is]
    #[arg(long, value_name = "KEY_ID")]
    key: Option<String>,
    /// Write the signed receipt here instead of in place; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    workspace: Workspace,
    #[command(flatten)]
    wish: Wish,
}

impl Sign {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        prerequisite::check(&self.wish.rules(true))?;
        let guard = self.workspace.guard();
        let bytes = receipt_file::bytes(&self.receipt)?;
        let mut receipt = self.judged(&bytes)?;
        let read = in_place::Receipt {
            path: &self.receipt,
            output: self.output.as_deref(),
            bytes: &bytes,
            what: WHAT,
        };
        read.check(&guard, ui)?;
        // Last, so that the key is in memory for as short as can be.
        let signer = self.workspace.signer(self.key.as_deref(), ui)?;
        let signature = signer.sign(&receipt.signing_bytes());
        receipt.signature = Some(hex(&signature));
        receipt.signer_public_key = Some(signer.public().hex());
        drop(signer);
        if let Some(authority) = self.wish.authority() {
            let stamping = Stamping::new(authority, ui, || self.workspace.load_trust());
            receipt.timestamp_token = Some(stamping.stamp(&signature)?);
        }
        let text = receipt.to_yaml().map_err(CliError::operation)?;
        // Another process may have signed it since it was read.
        read.deliver(text.as_bytes(), &guard, ui, |found| {
            self.judged(found).map(drop)
        })?;
        Ok(exit::ok())
    }

    /// Takes the receipt apart and refuses what nobody should sign: exit code 1.
    fn judged(&self, bytes: &[u8]) -> Result<Receipt, CliError> {
        let name = visible(&self.receipt.display().to_string());
        let receipt = receipt_file::parse(&self.receipt, bytes).map_err(refused)?;
        if receipt.signature.is_some() || receipt.signer_public_key.is_some() {
            let by = match &receipt.signer_public_key {
                Some(key) => format!(" by {}", visible(key)),
                None => String::new(),
            };
            return Err(CliError::no(format!(
                "`{name}` is already signed{by}; a signature is not made again"
            ))
            .hint(format!("`attest verify {name}` says whether it holds")));
        }
        let options = Options {
            check_signatures: false,
            ..Options::new(Time::from(clock::now()))
        };
        let nobody = Trust::Absent {
            looked_in: String::new(),
        };
        let outcome =
            attest_verify::verify(bytes, &nobody, &options, None).map_err(CliError::operation)?;
        let failed = outcome
            .all_checks()
            .filter(|check| check.status == Status::Fail);
        let failed: Vec<String> = failed
            .map(|check| format!("{}: {}", check.name, visible(&check.detail)))
            .collect();
        if failed.is_empty() {
            Ok(receipt)
        } else {
            Err(CliError::no(failed.join("; ")).because(format!("refusing to sign `{name}`")))
        }
    }
}

/// That bytes are no receipt is the honest no of this command, whatever else they are.
pub(super) fn refused(error: FileError) -> CliError {
    match error {
        FileError::Document { .. } => CliError::no(error),
        other => other.into(),
    }
}
