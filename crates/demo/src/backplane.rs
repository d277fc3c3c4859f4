//! The part about packages: a registry with tokens serves on loopback, a package is begun, packed,
//! published, found and downloaded, and what must not happen is tried: a publish without the scope for
//! it, an archive that wants out of its folder, a release that was yanked.
//!
//! Every command is run as a user would run it, its own words are shown, and its outcome is
//! checked: one that ends otherwise than it should fails the whole.

mod hostile;
mod sent;

use std::path::{Path, PathBuf};

use cli_shell::layout::pairs;
use cli_shell::{CliError, Ui, clock, visible};
use process_tree::Wrapper;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::command::{self, Ran, Shell};
use crate::error::DemoError;
use crate::place::{Place, random};
use crate::present::quoted;
use crate::server::Server;
use crate::story::{interrupted, step};

const WORK: &str = "work";
const REGISTRY: &str = "registry";
const CONFIG: &str = "registry.toml";
const TOKEN: &str = "BACKPLANE_TOKEN_FILE";
const READER: &str = "../reader.token";
const PUBLISHER: &str = "../publisher.token";
/// Where the hostile archive wants to write: beside the folder that it is unpacked in.
const ESCAPE: &str = "../escaped.txt";

/// What was shown, and proven.
#[derive(Debug)]
struct Shown {
    address: String,
    release: String,
    digest: String,
    forbidden: String,
    hostile: String,
    registry: String,
    yanked: String,
    ran: Vec<Ran>,
}

/// Shows the part, removes what it made, and tells the outcome.
pub(crate) async fn tell(keep: bool, ui: &Ui) -> Result<(), CliError> {
    let wrapper = Wrapper::current_exe().map_err(|source| DemoError::Program { source })?;
    let program = std::env::current_exe().map_err(|source| DemoError::Program { source })?;
    let place = Place::empty(program)?;
    let cancel = CancellationToken::new();
    let told = {
        let mut steps = std::pin::pin!(served(ui, &place, &wrapper, &cancel));
        tokio::select! {
            told = &mut steps => told,
            () = interrupted() => {
                // The command that runs ends with everything that it started, and the registry after it.
                cancel.cancel();
                steps.await.and(Err(DemoError::Interrupted))
            }
        }
    };
    let kept = keep.then(|| place.path(WORK));
    let shown = match &told {
        Ok(shown) => present(shown, kept.as_deref(), ui),
        Err(_) => Ok(()),
    };
    match (kept, &told) {
        (Some(work), told) => {
            let address = told.as_ref().map(|shown| shown.address.as_str());
            say_kept(place, &work, address.unwrap_or("127.0.0.1:0"), ui);
        }
        (None, _) => place.remove()?,
    }
    told?;
    shown
}

fn say_kept(place: Place, work: &Path, address: &str, ui: &Ui) {
    let program = quoted(&place.program);
    let state = quoted(&place.keep());
    ui.status(format!(
        "look further:\n  cd {}\n  alias backplane='{program} __backplane'\n  \
         backplane serve --root {state}/{REGISTRY} --config {state}/{CONFIG} --listen {address} &\n  \
         export BACKPLANE_URL=http://{address} BACKPLANE_TOKEN_FILE={state}/publisher.token\n  \
         backplane releases hello\nremove it all: rm -r {state}",
        quoted(work),
    ));
}

/// The steps, with a registry that runs as long as they do.
async fn served(
    ui: &Ui,
    place: &Place,
    wrapper: &Wrapper,
    cancel: &CancellationToken,
) -> Result<Shown, DemoError> {
    let config = prepare(place)?;
    let argv = vec![
        place.program.clone().into(),
        "__backplane".into(),
        "serve".into(),
        "--root".into(),
        place.path(REGISTRY).into(),
        "--config".into(),
        config.into(),
    ];
    let log = place.path("registry.log");
    let mut server = Server::start(wrapper, REGISTRY, argv, &[], log).await?;
    let told = tokio::select! {
        address = server.event("listening", "address", "listen") => address,
        () = cancel.cancelled() => Err(DemoError::Interrupted),
    };
    let told = match told {
        Ok(address) => {
            let folder = place.path(WORK);
            let shell = Shell::new(ui, place, wrapper, cancel, &folder);
            steps(ui, place, shell, address).await
        }
        Err(error) => Err(error),
    };
    if !matches!(told, Ok(_) | Err(DemoError::Interrupted)) {
        ui.status(server.complaints());
    }
    server.stop().await;
    told
}

/// Makes the folders, two tokens and the registry's configuration.
fn prepare(place: &Place) -> Result<PathBuf, DemoError> {
    for name in [WORK, REGISTRY, "tmp"] {
        place.folder(name)?;
    }
    let mut config = "listen = \"127.0.0.1:0\"\n".to_owned();
    for (name, scopes) in [
        ("reader", "\"read\""),
        ("publisher", "\"read\", \"publish\", \"yank\""),
    ] {
        let file = place.write(&format!("{name}.token"), &format!("{}\n", random()?))?;
        // A text of JSON is one of TOML too.
        let file = json!(file);
        config.push_str(&format!(
            "[[tokens]]\nname = \"{name}\"\nscopes = [{scopes}]\ntoken_file = {file}\n"
        ));
    }
    place.write(CONFIG, &config)
}

async fn steps(
    ui: &Ui,
    place: &Place,
    mut shell: Shell<'_>,
    address: String,
) -> Result<Shown, DemoError> {
    let started = clock::instant();
    step(
        ui,
        "1  ",
        &format!("a registry on {address}, with a token that reads and one that publishes"),
    );
    shell.export("BACKPLANE_URL", &format!("http://{address}"));
    shell.export(TOKEN, READER);
    let digest = package(ui, place, &mut shell).await?;
    let (release, forbidden) = publish(ui, &mut shell, &digest).await?;
    fetch(ui, place, &mut shell, &release, &digest).await?;
    let (hostile, registry) = attack(ui, place, &mut shell, &address).await?;
    let yanked = yank(ui, &mut shell, &release).await?;
    let seconds = started.elapsed().as_secs_f64();
    ui.status(format!("7  all of it in {seconds:.1} s"));
    Ok(Shown {
        address,
        release,
        digest,
        forbidden,
        hostile,
        registry,
        yanked,
        ran: shell.into_ran(),
    })
}

/// Begins a package and packs it twice; the digest.
async fn package(ui: &Ui, place: &Place, shell: &mut Shell<'_>) -> Result<String, DemoError> {
    ui.status("2  a package is begun and packed: the same files are the same bytes");
    shell.backplane(&["init", "hello"]).await?.ends_with(0)?;
    let inspect = shell.backplane(&["inspect", "hello"]).await?;
    inspect.ends_with(0)?.says("no diagnostics")?.show(ui);
    for file in ["hello.tar.gz", "again.tar.gz"] {
        let pack = shell.backplane(&["pack", "hello", "-o", file]).await?;
        pack.ends_with(0)?;
    }
    same_files(place, ["hello.tar.gz", "again.tar.gz"])?;
    let digest = shell.backplane(&["digest", "hello.tar.gz"]).await?;
    digest.ends_with(0)?.show(ui);
    let line = digest.only_line()?;
    let word = line.split_whitespace().find(|it| it.starts_with("sha256:"));
    word.map(str::to_owned)
        .ok_or_else(|| digest.otherwise("a digest", &line))
}

/// Publishes, first with a token that may not; the release, and the words of the refusal.
async fn publish(
    ui: &Ui,
    shell: &mut Shell<'_>,
    digest: &str,
) -> Result<(String, String), DemoError> {
    ui.status("3  it is published, by a token that may not and by one that may");
    let words = ["publish", "hello", "--channel", "stable"];
    let refused = shell.backplane(&words).await?;
    if refused.ends_with(0).is_ok() {
        return Err(refused.otherwise("a refusal", "exit code 0"));
    }
    refused.complains("scope")?.show_error(ui);
    let forbidden = refused.first_error()?;
    shell.export(TOKEN, PUBLISHER);
    let published = shell.backplane(&words).await?;
    let published = published.ends_with(0)?.names(digest)?;
    published.show_between("plugin", "digest", ui);
    Ok((published.value("release")?, forbidden))
}

/// Finds the release, downloads it and insists on the same bytes.
async fn fetch(
    ui: &Ui,
    place: &Place,
    shell: &mut Shell<'_>,
    release: &str,
    digest: &str,
) -> Result<(), DemoError> {
    ui.status("4  anybody who may read finds it, and gets the very same bytes");
    shell.export(TOKEN, READER);
    let catalog = shell.backplane(&["catalog"]).await?;
    catalog.ends_with(0)?.says("hello")?.show(ui);
    let resolved = shell.backplane(&["resolve", "hello@stable"]).await?;
    resolved.ends_with(0)?.says(release)?.names(digest)?;
    let download = ["download", "hello", "-o", "got.tar.gz"];
    let download = shell.backplane(&download).await?;
    download.ends_with(0)?.names(digest)?.show(ui);
    same_files(place, ["hello.tar.gz", "got.tar.gz"])?;
    let unpack = ["unpack", "got.tar.gz", "-o", "got"];
    shell.backplane(&unpack).await?.ends_with(0)?;
    let diff = shell.backplane(&["diff", "hello", "got"]).await?;
    diff.ends_with(0)?.show(ui);
    Ok(())
}

/// Tries an archive that wants out of its folder, on the command and on the registry; both refusals.
async fn attack(
    ui: &Ui,
    place: &Place,
    shell: &mut Shell<'_>,
    address: &str,
) -> Result<(String, String), DemoError> {
    step(
        ui,
        "5  ",
        &format!(
            "an archive with a file `{ESCAPE}`: here nothing is written, there nothing is taken"
        ),
    );
    let bytes = hostile::archive(ESCAPE, b"out of the folder\n");
    let path = place.path(&format!("{WORK}/hostile.tar.gz"));
    fs_err::write(&path, &bytes).map_err(|source| DemoError::Write { path, source })?;
    let before = shell.backplane(&["catalog"]).await?;
    let unpack = ["unpack", "hostile.tar.gz", "-o", "target"];
    let refused = shell.backplane(&unpack).await?;
    refused.ends_with(1)?.complains(ESCAPE)?.show_error(ui);
    for name in ["target", "escaped.txt"] {
        let there = place.path(&format!("{WORK}/{name}"));
        if fs_err::symlink_metadata(&there).is_ok() {
            return Err(refused.otherwise("nothing written", name));
        }
    }
    let digest = shell.backplane(&["digest", "hostile.tar.gz"]).await?;
    let line = digest.ends_with(0)?.only_line()?;
    let word = line.split_whitespace().find(|it| it.starts_with("sha256:"));
    let digest = word.ok_or_else(|| digest.otherwise("a digest", &line))?;
    ui.status("   and sent to the registry as it is, by no client of ours:");
    let file = place.path("publisher.token");
    let token = fs_err::read_to_string(&file).map_err(|source| DemoError::Read {
        path: file.clone(),
        source,
    })?;
    let (status, body) = sent::upload(address, token.trim_end(), digest, &bytes).await?;
    let said = refusal(&status, &body)?;
    step(ui, "   ", &visible(&said));
    let after = shell.backplane(&["catalog"]).await?;
    after.ends_with(0)?.says(before.answer())?;
    Ok((refused.first_error()?, said))
}

/// Yanks the release: its channel no longer leads to it, a lock on it still does.
async fn yank(ui: &Ui, shell: &mut Shell<'_>, release: &str) -> Result<String, DemoError> {
    ui.status("6  the release is yanked: nobody new gets it, who has locked it still does");
    let name = format!("hello@{release}");
    shell.export(TOKEN, PUBLISHER);
    let words = ["yank", &name, "--reason", "superseded"];
    let yank = shell.backplane(&words).await?;
    yank.ends_with(0)?.says("yanked")?;
    let gone = shell.backplane(&["resolve", "hello"]).await?;
    gone.ends_with(1)?.complains("yanked")?.show_error(ui);
    let locked = ["download", &name, "-o", "old.tar.gz"];
    let locked = shell.backplane(&locked).await?;
    locked.ends_with(0)?.complains("superseded")?.show(ui);
    gone.first_error()
}

/// Insists that the registry judged the package and refused it.
fn refusal(status: &str, body: &str) -> Result<String, DemoError> {
    let answer: Value = serde_json::from_str(body).unwrap_or_default();
    let text = |name| answer.pointer(name).and_then(Value::as_str);
    let refused = status.split(' ').nth(1) == Some("422");
    match (refused, text("/error/code"), text("/error/message")) {
        (true, Some("invalid_package"), Some(message)) => {
            Ok(format!("422 invalid_package: {message}"))
        }
        _ => Err(DemoError::Broken {
            what: "the registry's answer to the hostile archive",
            expected: "422 invalid_package".to_owned(),
            found: visible(status),
        }),
    }
}

/// Insists that two files of the work folder are the same, byte by byte.
fn same_files(place: &Place, names: [&str; 2]) -> Result<(), DemoError> {
    let [one, other] = names.map(|name| {
        let path = place.path(&format!("{WORK}/{name}"));
        fs_err::read(&path).map_err(|source| DemoError::Read { path, source })
    });
    if one? == other? {
        return Ok(());
    }
    Err(DemoError::Broken {
        what: "two archives of the same package",
        expected: "the same bytes".to_owned(),
        found: names.join(" differs from "),
    })
}

/// Shows the outcome, as JSON in one record.
fn present(shown: &Shown, kept: Option<&Path>, ui: &Ui) -> Result<(), CliError> {
    let commands: Vec<Value> = shown.ran.iter().map(Ran::record).collect();
    let record = json!({
        "part": "backplane",
        "status": "succeeded",
        "release_id": shown.release,
        "artifact_digest": shown.digest,
        "without_scope": shown.forbidden,
        "hostile_archive": shown.hostile,
        "hostile_upload": shown.registry,
        "yanked": shown.yanked,
        "commands": commands,
        "state": kept,
    });
    ui.record(&record, |_| {
        let short = |text: &str| Some(command::short(&visible(text)));
        let table = pairs(&[
            ("  released", short(&shown.release)),
            (
                "  downloaded",
                short(&format!("the same bytes, {}", shown.digest)),
            ),
            ("  without a scope", Some("refused".to_owned())),
            (
                "  hostile archive",
                Some("refused, nothing written".to_owned()),
            ),
            (
                "  hostile upload",
                Some("refused, nothing published".to_owned()),
            ),
            (
                "  yanked",
                Some("out of its channel, there for locks".to_owned()),
            ),
        ]);
        format!("\n{}\n{table}", ui.heading("a package on its way"))
    })?;
    if kept.is_none() {
        ui.status("the state is gone; `forge demo --part backplane --keep` leaves it");
    }
    Ok(())
}
