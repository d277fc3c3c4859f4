//! `backplane download`: an artifact whose digest was checked.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backplane_client::{ClientError, Download, Object};
use backplane_http::ResumeFile;
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit};
use digest_text::Sha256Text;
use serde::Serialize;

use crate::name::{self, PluginName};
use crate::registry::Registry;
use crate::settings::RemoteArgs;
use crate::waiting::Waiting;
use crate::{release, wire};

const MODE: u32 = 0o644;
/// How many digits of a digest tell files apart.
const DIGITS: usize = 12;

/// Arguments of `backplane download`.
#[derive(Debug, Clone, Args)]
pub struct DownloadArgs {
    /// A plugin, perhaps at a channel or a release, or the digest of an artifact
    #[arg(value_name = "NAME|DIGEST")]
    what: String,
    /// The file to write, `FILE.part` until it is whole [default: the name and the first digits of the
    /// digest]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the receipt beside the artifact into this file
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// What was asked for.
enum Wanted {
    Plugin(PluginName),
    Artifact(Sha256Text),
}

/// The record of `--format json`; the release is as the registry gave it.
#[derive(Debug, Serialize)]
struct Record<'a> {
    file: &'a Path,
    artifact_digest: String,
    artifact_bytes: usize,
    plugin_id: &'a str,
    release: Option<&'a Object>,
    receipt: Option<&'a Path>,
}

pub(crate) fn run(args: &DownloadArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    let wanted = wanted(&args.what)?;
    let registry = Registry::open(&args.remote, ui)?;
    let (digest, release, usual) = match wanted {
        Wanted::Artifact(digest) => (digest, None, "artifact".to_owned()),
        Wanted::Plugin(name) => {
            let release = release::resolve(&registry, &name)?;
            release::warn_if_yanked(&release, ui);
            let digest = wire::text(&release, "artifact_digest")?.parse();
            let digest = digest.map_err(|error| {
                CliError::operation(error).because("the registry's answer has no usable digest")
            })?;
            (digest, Some(release), name.plugin)
        }
    };
    let file = match &args.output {
        Some(file) => file.clone(),
        None => PathBuf::from(format!("{usual}-{}.tar.gz", short(&digest))),
    };
    for file in [Some(&file), args.receipt.as_ref()].into_iter().flatten() {
        refuse_stdout(file)?;
        safe_fs::writable_target(file).map_err(CliError::operation)?;
    }
    let download = fetch(&registry, &digest, &file, ui)?;
    // The receipt first: where there is none, no artifact stands there without it.
    if let Some(path) = &args.receipt {
        let receipt = receipt(&registry, &digest)?;
        safe_fs::write_target(path, &receipt, MODE).map_err(CliError::operation)?;
    }
    safe_fs::write_target(&file, &download.artifact, MODE).map_err(CliError::operation)?;
    let record = Record {
        file: &file,
        artifact_digest: digest.to_string(),
        artifact_bytes: download.artifact.len(),
        plugin_id: download.package.name(),
        release: release.as_ref(),
        receipt: args.receipt.as_deref(),
    };
    match ui.format() {
        Format::Json => ui.json(&record)?,
        Format::Human => ui.data(format!("{}  {digest}", file.display()))?,
    }
    Ok(exit::ok())
}

/// Elsewhere `-` is standard output. What is downloaded is checked, and kept only then.
fn refuse_stdout(file: &Path) -> Result<(), CliError> {
    if file != Path::new("-") {
        return Ok(());
    }
    Err(
        CliError::usage("a download goes into a file, not to standard output")
            .hint("name a file; one that is called `-` is `./-`"),
    )
}

fn wanted(text: &str) -> Result<Wanted, CliError> {
    if text.starts_with("sha256:") || text.starts_with("blake3:") {
        let digest = text.parse().map_err(|error| {
            CliError::usage(error)
                .because(format!("`{text}` is no digest of an artifact"))
                .hint("a digest is `sha256:` and 64 digits of 0-9 a-f")
        })?;
        return Ok(Wanted::Artifact(digest));
    }
    let name = text.parse().map_err(|error| name::refused(text, error))?;
    Ok(Wanted::Plugin(name))
}

fn fetch(
    registry: &Registry,
    digest: &Sha256Text,
    file: &Path,
    ui: &Ui,
) -> Result<Download, CliError> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = ResumeFile::open(PathBuf::from(part)).map_err(CliError::operation)?;
    let kept = part.path().to_owned();
    let client = registry.client();
    let call = client
        .download_call(&digest.to_string())
        .map_err(|error| registry.explain(error))?;
    let waiting = Waiting::new(ui, format!("downloading {}", short(digest)));
    let outcome = client.transport().download(call, part, &waiting);
    outcome.map_err(|error| match error {
        ClientError::HttpStatus { status: 404 } => {
            let at = &registry.settings().registry;
            CliError::no(format!("`{at}` has no artifact `{digest}`")).hint(
                "only artifacts of releases are given out; `backplane releases NAME` lists those",
            )
        }
        ClientError::DigestMismatch { .. } => CliError::operation(error)
            .hint("nothing was kept; the registry, or something on the way, gives other bytes"),
        ClientError::Rejected { ref found } => {
            for one in found {
                ui.warn(cli_shell::visible(&format!(
                    "{}: {}",
                    one.path, one.message
                )));
            }
            CliError::operation(error)
        }
        error => {
            let explained = registry.explain(error);
            match kept.exists() {
                true => explained.hint(format!(
                    "`{}` keeps what came; the same command goes on from there",
                    kept.display()
                )),
                false => explained,
            }
        }
    })
}

fn receipt(registry: &Registry, digest: &Sha256Text) -> Result<Vec<u8>, CliError> {
    let call = registry.client().receipt_call(&digest.to_string());
    registry.try_ask(call).map_err(|error| match error {
        ClientError::HttpStatus { status: 404 } => {
            CliError::no(format!("there is no receipt beside `{digest}`"))
                .hint("without `--receipt` the artifact alone is downloaded")
        }
        error => registry.explain(error),
    })
}

fn short(digest: &Sha256Text) -> String {
    let text = digest.to_string();
    let hex = text.trim_start_matches("sha256:");
    hex.chars().take(DIGITS).collect()
}
