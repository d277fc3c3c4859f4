//! `backplane publish`: a package becomes a release.
//!
//! The artifact goes first, then its receipt, and the release last: until then nobody sees anything
//! of it, and whoever was interrupted starts again.

use std::path::PathBuf;
use std::process::ExitCode;

use backplane_client::{Call, Json, MAX_RECEIPT_BYTES, Method, Object, ReleasesPage};
use clap::Args;
use cli_shell::{CliError, ErrorKind, Format, Ui, exit, layout, visible};
use digest_text::Sha256Text;
use serde::Serialize;

use crate::artifact::{self, Artifact};
use crate::commands::pack::Packing;
use crate::name::{self, ChannelName};
use crate::registry::Registry;
use crate::settings::RemoteArgs;
use crate::waiting::Waiting;
use crate::{release, wire};

/// How many pages of releases are looked at for another one of the same version.
const MOST_PAGES: usize = 5;
const PAGE: u32 = 100;

/// Arguments of `backplane publish`.
#[derive(Debug, Clone, Args)]
pub struct PublishArgs {
    /// A folder with a package, or an artifact
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
    /// The channel that is to point at the release, such as `stable`
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// A signed receipt of the artifact, to be kept beside it
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    #[command(flatten)]
    packing: Packing,
    /// Say what would be published and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// The record of `--dry-run --format json`.
#[derive(Debug, Serialize)]
struct Plan<'a> {
    dry_run: bool,
    plugin_id: &'a str,
    version: Option<&'a str>,
    artifact_digest: String,
    artifact_bytes: usize,
    files: usize,
    channel: Option<&'a str>,
    receipt: bool,
}

pub(crate) fn run(args: &PublishArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    let channel = args.channel.as_deref().map(channel).transpose()?;
    let receipt = args.receipt.as_deref();
    let receipt = receipt
        .map(|path| {
            safe_fs::read_bounded(path, u64::try_from(MAX_RECEIPT_BYTES).unwrap_or(u64::MAX))
        })
        .transpose()
        .map_err(|error| {
            CliError::operation(error)
                .because("cannot read the receipt")
                .hint("`attest run` writes receipts; name the file of one")
        })?;
    let artifact = artifact::of_path(&args.path, &args.packing, ui)?;
    let channel = channel.as_ref().map(ChannelName::as_str);
    if args.dry_run {
        return plan(&artifact, channel, receipt.is_some(), ui);
    }
    let registry = Registry::open(&args.remote, ui)?;
    tell_of_same_version(&registry, &artifact, ui);
    let digest = artifact.digest.to_string();
    upload(&registry, artifact, ui)?;
    if let Some(receipt) = receipt {
        let call = registry.client().put_receipt_call(&digest, receipt);
        registry
            .ask(call.map(Call::asking_why))
            .map_err(|error| error.because("the receipt was not taken, and nothing is released"))?;
    }
    let published = release(&registry, &digest, channel)?;
    release::show(&published, ui)?;
    if channel.is_none() && ui.format() == Format::Human {
        let id = wire::shown(&published, "release_id").unwrap_or_default();
        let name = wire::shown(&published, "plugin_id").unwrap_or_default();
        ui.hint(format!(
            "no channel points at it because of this; `backplane promote {name} {id} --channel stable` makes one"
        ));
    }
    Ok(exit::ok())
}

fn channel(text: &str) -> Result<ChannelName, CliError> {
    text.parse().map_err(|error| name::refused(text, error))
}

fn plan(
    artifact: &Artifact,
    channel: Option<&str>,
    receipt: bool,
    ui: &Ui,
) -> Result<ExitCode, CliError> {
    let plan = Plan {
        dry_run: true,
        plugin_id: artifact.package.name(),
        version: artifact.package.version(),
        artifact_digest: artifact.digest.to_string(),
        artifact_bytes: artifact.bytes.len(),
        files: artifact.package.files.len(),
        channel,
        receipt,
    };
    ui.record(&plan, |plan| {
        layout::pairs(&[
            ("plugin", Some(plan.plugin_id.to_owned())),
            ("version", plan.version.map(visible)),
            ("digest", Some(plan.artifact_digest.clone())),
            ("bytes", Some(plan.artifact_bytes.to_string())),
            ("files", Some(plan.files.to_string())),
            ("channel", plan.channel.map(str::to_owned)),
        ])
    })?;
    ui.status("nothing was sent");
    Ok(exit::ok())
}

fn upload(registry: &Registry, artifact: Artifact, ui: &Ui) -> Result<(), CliError> {
    let label = format!("uploading {} bytes", artifact.bytes.len());
    let call = registry.client().upload_call(artifact.bytes);
    let waiting = Waiting::new(ui, label);
    registry
        .ask_while(call.map(Call::asking_why), &waiting)
        .map(drop)
        .map_err(|error| error.because("the artifact was not taken, and nothing is released"))
}

fn release(registry: &Registry, digest: &str, channel: Option<&str>) -> Result<Object, CliError> {
    let text = |text: &str| Json::Text(text.to_owned());
    let mut members = vec![("artifact_digest".to_owned(), text(digest))];
    members.extend(channel.map(|channel| ("channel".to_owned(), text(channel))));
    let body = Object::from_members(members).map_err(CliError::operation)?;
    let client = registry.client();
    let call = client.request_call(Method::Post, "/releases", Some(&Json::Object(body)));
    let released = registry.ask(call.map(Call::asking_why)).map_err(|error| {
        let refused = error.kind() == ErrorKind::No;
        let error = error.because("the artifact is there, but it was not released");
        match refused {
            // It would be refused again.
            true => error,
            false => {
                error.hint("the same command again is safe: what is there already stays as it is")
            }
        }
    })?;
    let of = wire::text(&released, "artifact_digest")?;
    if of == digest {
        return Ok(released);
    }
    Err(CliError::operation(
        "the registry says that it released another artifact",
    ))
}

/// Warns where the same version was published with other bytes: that is a release of its own, and who
/// reads version numbers should know. Who may not read the list is not told.
fn tell_of_same_version(registry: &Registry, artifact: &Artifact, ui: &Ui) {
    let Some(version) = artifact.package.version() else {
        return;
    };
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let page = ReleasesPage {
            cursor: cursor.clone(),
            limit: Some(PAGE),
        };
        let call = registry
            .client()
            .releases_call(artifact.package.name(), &page);
        let Ok(answer) = registry.try_ask(call) else {
            return;
        };
        let found = wire::objects(&answer, "data").unwrap_or_default();
        if let Some(other) = found
            .into_iter()
            .find(|one| is_other(one, version, &artifact.digest))
        {
            let id = wire::shown(other, "release_id").unwrap_or_default();
            let version = visible(version);
            ui.warn(format!("version `{version}` exists with other bytes, as release `{id}`; each of the two is a release of its own"));
            return;
        }
        match wire::shown(&answer, "next_cursor") {
            Some(next) => cursor = Some(next),
            None => return,
        }
    }
}

fn is_other(release: &Object, version: &str, digest: &Sha256Text) -> bool {
    let same =
        |key: &str, text: &str| matches!(release.get(key), Some(Json::Text(it)) if it == text);
    same("version", version) && !same("artifact_digest", &digest.to_string())
}
