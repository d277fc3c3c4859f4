//! `keys`: signing keys and the trust store.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attest_receipt::time::Time;
use attest_verify::trust::{KeyId, KeyStatus};
use clap::{Args, Subcommand};
use cli_shell::layout::cell;
use cli_shell::{CliError, Format, Ui, clock, exit, visible};
use keys::{KeyName, Listing, Revocation};
use serde::Serialize;

use crate::new_file;
use crate::places::{Workspace, keys_error};

/// What to do with keys.
#[derive(Debug, Clone, Args)]
pub struct Keys {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Make a key to sign with, trust it, and print its id
    Generate(Named),
    /// List the keys of the trust store
    List(Of),
    /// Print a public key as PEM
    Export(Export),
    /// Trust a public key from a PEM file, and print its id
    Import(Import),
    /// Revoke a key from now on; what it signed before may still count
    Revoke(Revoke),
    /// Trust the timestamps of an authority, by its certificate
    TrustTsa(TrustTsa),
}

#[derive(Debug, Clone, Args)]
struct Named {
    /// What people are to call the key
    #[arg(long, value_name = "NAME", value_parser = key_name)]
    name: KeyName,
    #[command(flatten)]
    workspace: Workspace,
}

#[derive(Debug, Clone, Args)]
struct Of {
    #[command(flatten)]
    workspace: Workspace,
}

#[derive(Debug, Clone, Args)]
struct Export {
    /// The key's id
    #[arg(value_name = "KEY_ID")]
    id: String,
    /// Write it to this file [default: standard output, as `-`]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    workspace: Workspace,
}

#[derive(Debug, Clone, Args)]
struct Import {
    /// The file with the public key; one with a private key is refused
    #[arg(value_name = "PUBLIC_KEY.pem")]
    file: PathBuf,
    #[command(flatten)]
    named: Named,
}

#[derive(Debug, Clone, Args)]
struct Revoke {
    /// The key's id
    #[arg(value_name = "KEY_ID")]
    id: String,
    #[command(flatten)]
    workspace: Workspace,
}

#[derive(Debug, Clone, Args)]
struct TrustTsa {
    /// The file with the certificate, PEM or DER
    #[arg(value_name = "CERTIFICATE")]
    certificate: PathBuf,
    /// The name of the authority here: 1 to 64 letters, digits, `-` or `_`
    #[arg(long, value_name = "NAME")]
    name: String,
    #[command(flatten)]
    workspace: Workspace,
}

impl Keys {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Generate(named) => named.generate(ui),
            Action::List(of) => of.list(ui),
            Action::Export(export) => export.run(ui),
            Action::Import(import) => import.run(ui),
            Action::Revoke(revoke) => revoke.run(ui),
            Action::TrustTsa(authority) => authority.run(ui),
        }
    }
}

impl Named {
    fn generate(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let (keys, trust) = (self.workspace.keys(), self.workspace.trust());
        let id = keys
            .generate(&trust, &self.name)
            .map_err(|error| keys_error(error).because("cannot make a key"))?;
        if let Some(top) = keys.exposed_in() {
            let place = |path: &Path| visible(&path.to_string_lossy());
            ui.warn(format!(
                "no ignore file keeps `{}` out of the git repository of `{}`: a commit could take the private key in",
                place(keys.path()),
                place(&top)
            ));
            ui.hint("put a `.gitignore` with the one line `*` into that folder");
        }
        said_id(ui, id)?;
        Ok(exit::ok())
    }
}

impl Of {
    fn list(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let (keys, trust) = (self.workspace.keys(), self.workspace.trust());
        let listed = trust.list(&keys).map_err(keys_error)?;
        if listed.is_empty() {
            ui.status("no keys");
        }
        for one in &listed {
            ui.record(one, line)?;
        }
        Ok(exit::ok())
    }
}

/// `ID  NAME  STATUS  private+public`
fn line(listing: &Listing) -> String {
    let halves = if listing.private_key_present {
        "private+public"
    } else {
        "public only"
    };
    let since = listing
        .revoked_at
        .map(|since| format!(" (revoked at {since})"))
        .unwrap_or_default();
    let name = visible(&listing.name);
    // A name is cut only where it would push the rest off the screen.
    format!(
        "{}  {} {} {halves}{since}",
        listing.id,
        cell(&name, 20),
        cell(listing.status, 8),
    )
}

/// Prints the id of a key that is in the store now.
fn said_id(ui: &Ui, id: KeyId) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Record {
        key_id: String,
    }
    let key_id = id.to_string();
    ui.record(&Record { key_id }, |record| record.key_id.clone())
}

impl Export {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        #[derive(Serialize)]
        struct Record<'a> {
            id: &'a str,
            public_key_pem: &'a str,
        }
        let pem = self
            .workspace
            .trust()
            .export(&self.id)
            .map_err(keys_error)?;
        let file = self.output.as_ref();
        match file.filter(|file| !new_file::is_stdout(file)) {
            None if ui.format() == Format::Human => ui.raw(pem.as_bytes())?,
            None => {}
            Some(file) => {
                new_file::write(file, pem.as_bytes(), "public key", &self.workspace.guard())?
            }
        }
        if ui.format() == Format::Json {
            ui.json(&Record {
                id: &self.id,
                public_key_pem: &pem,
            })?;
        }
        Ok(exit::ok())
    }
}

impl Import {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let trust = self.named.workspace.trust();
        let imported = trust
            .import(&self.file, &self.named.name)
            .map_err(|error| keys_error(error).because("cannot import the key"))?;
        if !imported.added {
            match imported.status {
                KeyStatus::Trusted => ui.status("the key was there already"),
                KeyStatus::Revoked { .. } => {
                    ui.warn("the key was there already: it is revoked and stays revoked");
                }
            }
        }
        said_id(ui, imported.id)?;
        Ok(exit::ok())
    }
}

impl Revoke {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let now = Time::from(clock::now());
        let revoked = self.workspace.trust().revoke(&self.id, now);
        match revoked.map_err(keys_error)? {
            Revocation::Unknown => Err(CliError::no(format!(
                "unknown key id: {}",
                visible(&self.id)
            ))
            .hint("`attest keys list` shows what there is")),
            Revocation::Already { since } => {
                let since = since
                    .map(|since| format!(" since {since}"))
                    .unwrap_or_default();
                ui.status(format!("the key was revoked already{since}"));
                self.tell(ui, true)
            }
            Revocation::Done => self.tell(ui, false),
        }
    }

    fn tell(&self, ui: &Ui, already: bool) -> Result<ExitCode, CliError> {
        #[derive(Serialize)]
        struct Record<'a> {
            key_id: &'a str,
            already: bool,
        }
        if ui.format() == Format::Json {
            ui.json(&Record {
                key_id: &self.id,
                already,
            })?;
        }
        Ok(exit::ok())
    }
}

impl TrustTsa {
    fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        #[derive(Serialize)]
        struct Record<'a> {
            name: &'a str,
            subjects: &'a [String],
        }
        let pinned = self
            .workspace
            .trust()
            .pin_authority(&self.certificate, &self.name)
            .map_err(|error| keys_error(error).because("cannot pin the authority"))?;
        if ui.format() == Format::Json {
            ui.json(&Record {
                name: &self.name,
                subjects: &pinned.subjects,
            })?;
            return Ok(exit::ok());
        }
        for subject in &pinned.subjects {
            ui.data(format!(
                "pinned timestamp authority '{}': {subject}",
                self.name
            ))?;
        }
        Ok(exit::ok())
    }
}

fn key_name(text: &str) -> Result<KeyName, String> {
    KeyName::new(text).map_err(|error| error.to_string())
}
