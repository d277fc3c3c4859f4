//! `export --format in-toto`: a receipt as an in-toto statement in a DSSE envelope.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attest_exchange::dsse;
use attest_exchange::import::Delivered;
use attest_exchange::inventory;
use attest_exchange::statement::{self, Carried};
use attest_receipt::receipt::{Artifact, ArtifactKind, Receipt};
use attest_verify::signature_holds;
use attest_verify::trust::PublicKey;
use clap::Args;
use cli_shell::{CliError, Ui, exit, visible};
use keys::{KeysError, Signer};
use serde::Serialize;

use super::format::StatementFormat;
use super::run::version;
use crate::delivered::Folder;
use crate::guard::Guard;
use crate::new_file;
use crate::places::{Workspace, keys_error, told_of_others};
use crate::prerequisite::{self, Rule};
use crate::receipt_file;
use crate::trust_files;

/// Files that are told by name.
const TOLD: usize = 4;

/// What to export, and how it is signed.
#[derive(Debug, Clone, Args)]
pub struct Export {
    /// The receipt
    #[arg(long, value_name = "FILE")]
    receipt: PathBuf,
    #[command(flatten)]
    _format: StatementFormat,
    /// Write the envelope to this file [default: standard output, as `-`]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Make an unsigned envelope if the receipt is unsigned or there is no key to sign with
    #[arg(long)]
    allow_unsigned: bool,
    /// The id of the key for the envelope [default: the receipt's, else the only one there is]
    #[arg(long, value_name = "KEY_ID")]
    key: Option<String>,
    /// The public keys that travel along, as context [default: .attest/trust in the workspace]
    #[arg(long, value_name = "DIR")]
    trust_store: Option<PathBuf>,
    #[command(flatten)]
    workspace: Workspace,
    #[arg(long, hide = true)]
    identity_bundle: Option<OsString>,
    #[arg(long, hide = true)]
    identity_policy: Option<OsString>,
}

/// What `--format json` prints.
#[derive(Debug, Serialize)]
struct Record {
    statement: String,
}

impl Export {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        if self.identity_bundle.is_some() || self.identity_policy.is_some() {
            return Err(CliError::usage(
                "workflow identities are not part of this program",
            ));
        }
        prerequisite::check(&[new_file::json_needs_a_file(ui, self.file().is_none())])?;
        let bytes = receipt_file::bytes(&self.receipt)?;
        let receipt = receipt_file::parse(&self.receipt, &bytes)?;
        let signer = self.signed_by(&receipt)?;
        prerequisite::check(&[Rule {
            option: "--key",
            given: self.key.is_some(),
            requires: "a signed receipt",
            met: signer.is_some(),
            why: "the envelope would claim more than the receipt",
        }])?;
        let folder = match &self.trust_store {
            Some(folder) => folder.clone(),
            None => self.workspace.trust().path().to_owned(),
        };
        let payload = statement::make(&Carried {
            bytes: &bytes,
            receipt: &receipt,
            version: &version(),
            trust: &trust_files::public(&folder)?,
            sha256: &self.sha256(ui, &receipt)?,
        });
        let payload = payload
            .map_err(|error| CliError::no(error).because("this receipt gives no statement"))?;
        let signature = match &signer {
            Some(key) => self.sign(ui, key, &payload)?,
            None => {
                ui.warn("the receipt is unsigned, and so is the envelope");
                None
            }
        };
        let envelope = dsse::write(&payload, signature);
        if envelope.len() > dsse::MAX_BYTES {
            return Err(CliError::operation(format!(
                "the envelope would have more than {} bytes, which no reader takes",
                dsse::MAX_BYTES
            )));
        }
        self.write(ui, &envelope)?;
        Ok(exit::ok())
    }

    /// Returns the key behind a receipt's signature; what does not hold is not passed on.
    fn signed_by(&self, receipt: &Receipt) -> Result<Option<PublicKey>, CliError> {
        let name = visible(&self.receipt.display().to_string());
        if receipt.signature.is_none() && receipt.signer_public_key.is_none() {
            return if self.allow_unsigned {
                Ok(None)
            } else {
                Err(CliError::no(format!("`{name}` is unsigned"))
                    .hint("sign it with `attest sign`, or say `--allow-unsigned`"))
            };
        }
        signature_holds(receipt)
            .map(Some)
            .map_err(|why| CliError::no(why).because(format!("refusing to export `{name}`")))
    }

    /// Hashes the files that are at hand and still those of the receipt.
    fn sha256(&self, ui: &Ui, receipt: &Receipt) -> Result<BTreeMap<String, String>, CliError> {
        let files = inventory::of(receipt)
            .map_err(|error| CliError::no(error).because("this receipt gives no statement"))?;
        let Some(files) = files else {
            ui.warn("the receipt lists no files, so the statement has no subject");
            return Ok(BTreeMap::new());
        };
        let folder = Folder::new(self.workspace.path());
        let regular = |artifact: &&&Artifact| artifact.kind == ArtifactKind::File;
        let (mut sha256, mut without) = (BTreeMap::new(), Vec::new());
        for artifact in files.values().filter(regular) {
            match folder.hashes(artifact) {
                Ok(hashes) if hashes.blake3 == artifact.digest => {
                    sha256.insert(artifact.path.clone(), hashes.sha256);
                }
                Ok(_) => without.push(format!("{} has changed", artifact.path)),
                Err(why) => without.push(format!("{} {why}", artifact.path)),
            }
        }
        if !without.is_empty() {
            let more = match without.len().checked_sub(TOLD) {
                None | Some(0) => String::new(),
                Some(more) => format!(", and {more} more"),
            };
            without.truncate(TOLD);
            let told = visible(&without.join(", "));
            ui.warn(format!("subjects without SHA-256: {told}{more}"));
        }
        Ok(sha256)
    }

    fn sign(
        &self,
        ui: &Ui,
        receipt_key: &PublicKey,
        payload: &[u8],
    ) -> Result<Option<(attest_verify::trust::KeyId, [u8; 64])>, CliError> {
        let signer = match self.signer(receipt_key) {
            Ok(signer) => {
                told_of_others(&signer, ui);
                signer
            }
            Err(KeysError::NoKeys { .. }) if self.allow_unsigned => {
                ui.warn("there is no key to sign with, so the envelope is unsigned");
                return Ok(None);
            }
            Err(error @ (KeysError::NoKeys { .. } | KeysError::NoPrivateKey { .. })) => {
                return Err(CliError::no(error)
                    .because("there is no key to sign the envelope with")
                    .hint("`attest keys generate` makes one, or say `--allow-unsigned`"));
            }
            Err(error) => return Err(keys_error(error).because("cannot sign the envelope")),
        };
        if signer.public() != receipt_key {
            let (ours, theirs) = (signer.key_id(), receipt_key.key_id());
            ui.warn(format!(
                "the envelope is signed by {ours}, the receipt by {theirs}"
            ));
        }
        let message = dsse::pae(dsse::PAYLOAD_TYPE, payload);
        Ok(Some((signer.key_id(), signer.sign(&message))))
    }

    /// Chooses the key that was asked for, else the receipt's own, else the only one there is.
    fn signer(&self, receipt_key: &PublicKey) -> Result<Signer, KeysError> {
        let keys = self.workspace.keys();
        let own = receipt_key.key_id();
        let choice = match &self.key {
            Some(key) => Some(key.clone()),
            None => keys.holds(&own).then(|| own.to_string()),
        };
        keys.signer(&self.workspace.trust(), choice.as_deref())
    }

    fn guard(&self) -> Guard {
        let guard = self.workspace.guard();
        match &self.trust_store {
            Some(store) => guard.and_store(store),
            None => guard,
        }
    }

    fn write(&self, ui: &Ui, envelope: &[u8]) -> Result<(), CliError> {
        let Some(path) = self.file() else {
            return ui.raw(envelope);
        };
        new_file::write(path, envelope, "envelope", &self.guard())?;
        let record = Record {
            statement: path.display().to_string(),
        };
        ui.record(&record, |record| visible(&record.statement))
    }

    /// The file to write, unless it is standard output.
    fn file(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|path| !new_file::is_stdout(path))
    }
}
