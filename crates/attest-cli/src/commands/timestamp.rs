//! `timestamp RECEIPT`: has the signature of a receipt stamped by an authority that no signer
//! controls. Nothing else of the receipt changes.

use std::path::PathBuf;
use std::process::ExitCode;

use attest_receipt::receipt::Receipt;
use attest_verify::timestamp::signature_of;
use clap::Args;
use cli_shell::{CliError, Ui, exit, visible};
use timestamp_http::TsaUrl;

use super::sign::refused;
use crate::in_place;
use crate::places::Workspace;
use crate::receipt_file;
use crate::stamping::Stamping;

/// What is written.
const WHAT: &str = "timestamped receipt";

/// What to stamp, by whom, and where to put it.
#[derive(Debug, Clone, Args)]
pub struct Timestamp {
    /// The signed receipt
    #[arg(value_name = "RECEIPT")]
    receipt: PathBuf,
    /// The RFC 3161 timestamp authority to ask: https, or http on this machine
    #[arg(long, value_name = "URL")]
    tsa: TsaUrl,
    /// Write the receipt here instead of in place; `-` is standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    workspace: Workspace,
}

impl Timestamp {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let bytes = receipt_file::bytes(&self.receipt)?;
        let (mut receipt, signature) = self.judged(&bytes)?;
        let guard = self.workspace.guard();
        let read = in_place::Receipt {
            path: &self.receipt,
            output: self.output.as_deref(),
            bytes: &bytes,
            what: WHAT,
        };
        // An authority is asked for nothing that has no place.
        read.check(&guard, ui)?;
        let stamping = Stamping::new(&self.tsa, ui, || self.workspace.load_trust());
        receipt.timestamp_token = Some(stamping.stamp(&signature)?);
        let text = receipt.to_yaml().map_err(CliError::operation)?;
        // Another process may have stamped it since it was read.
        read.deliver(text.as_bytes(), &guard, ui, |found| {
            self.judged(found).map(drop)
        })?;
        Ok(exit::ok())
    }

    fn judged(&self, bytes: &[u8]) -> Result<(Receipt, [u8; 64]), CliError> {
        let receipt = receipt_file::parse(&self.receipt, bytes).map_err(refused)?;
        let signature = self.signature(&receipt)?;
        Ok((receipt, signature))
    }

    /// Refuses what has no use for a stamp: exit code 1.
    fn signature(&self, receipt: &Receipt) -> Result<[u8; 64], CliError> {
        let no = |why: String| {
            let name = visible(&self.receipt.display().to_string());
            Err(CliError::no(why).because(format!("refusing to timestamp `{name}`")))
        };
        if receipt.timestamp_token.is_some() {
            return no("it already carries a timestamp, which is not replaced".to_owned());
        }
        if let Err(why) = attest_verify::signature_holds(receipt) {
            return no(why);
        }
        let problems = receipt.problems();
        if !problems.is_empty() {
            return no(problems.join("; "));
        }
        match signature_of(receipt) {
            Some(signature) => Ok(signature),
            None => no("its signature is malformed".to_owned()),
        }
    }
}
