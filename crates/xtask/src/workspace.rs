//! Reads the workspace: its root, its members, `cargo metadata`, its tracked files.
#![expect(
    clippy::indexing_slicing,
    reason = "reading a JSON value by name yields null where it is absent, never a panic"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The folder of the root manifest.
pub(crate) fn root() -> Result<PathBuf> {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").context("run it as `cargo xtask`")?;
    let root = Path::new(&manifest)
        .ancestors()
        .nth(2)
        .context("xtask lies two folders below the root")?;
    Ok(root.to_path_buf())
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// One member of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The package's name.
    pub(crate) name: String,
    /// `crates` or `bins`.
    pub(crate) family: String,
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
    /// `package.metadata.floor.level`, if it is there.
    pub(crate) floor: Option<u64>,
    /// Names of members that it depends on, without those of its tests.
    pub(crate) edges: Vec<String>,
    /// Whether a registry may take it.
    pub(crate) publishable: bool,
}

/// What `cargo metadata` says, in the parts that the checks need.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// The members by name.
    pub(crate) members: BTreeMap<String, Member>,
    /// Every package of the graph: id to (name, version, licence, source).
    pub(crate) packages: BTreeMap<String, Package>,
    /// Package id to the ids that it reaches in one step, tests left out.
    pub(crate) links: BTreeMap<String, Vec<String>>,
}

/// A package of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its licence expression, if it states one.
    pub(crate) licence: Option<String>,
    /// Where it comes from; a member has no source.
    pub(crate) source: Option<String>,
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
}

/// Runs `cargo metadata` on the locked graph.
pub(crate) fn metadata(root: &Path) -> Result<Metadata> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let value: Value = serde_json::from_slice(&output.stdout)?;
    let mut found = Metadata {
        members: BTreeMap::new(),
        packages: BTreeMap::new(),
        links: BTreeMap::new(),
    };
    let ours: Vec<&str> = texts(&value["workspace_members"]);
    let names: Vec<String> = list(&value["packages"])
        .iter()
        .filter(|package| ours.contains(&text(&package["id"])))
        .map(|package| text(&package["name"]).to_owned())
        .collect();
    for package in list(&value["packages"]) {
        let id = text(&package["id"]).to_owned();
        if ours.contains(&id.as_str()) {
            let member = member(root, package, &names)?;
            found.members.insert(member.name.clone(), member);
        }
        found.packages.insert(
            id,
            Package {
                name: text(&package["name"]).to_owned(),
                version: text(&package["version"]).to_owned(),
                licence: package["license"].as_str().map(str::to_owned),
                source: package["source"].as_str().map(str::to_owned),
                folder: Path::new(text(&package["manifest_path"]))
                    .parent()
                    .map(Path::to_path_buf)
                    .unwrap_or_default(),
            },
        );
    }
    for node in list(&value["resolve"]["nodes"]) {
        let reached = list(&node["deps"])
            .iter()
            .filter(|dep| {
                list(&dep["dep_kinds"])
                    .iter()
                    .any(|kind| kind["kind"] != "dev")
            })
            .map(|dep| text(&dep["pkg"]).to_owned())
            .collect();
        found.links.insert(text(&node["id"]).to_owned(), reached);
    }
    Ok(found)
}

fn member(root: &Path, package: &Value, names: &[String]) -> Result<Member> {
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    let folder = manifest.parent().context("a manifest has a folder")?;
    let family = folder
        .strip_prefix(root)?
        .components()
        .next()
        .map(|first| first.as_os_str().to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut edges: Vec<String> = list(&package["dependencies"])
        .iter()
        .filter(|dependency| dependency["kind"] != "dev")
        .map(|dependency| text(&dependency["name"]).to_owned())
        .filter(|name| names.contains(name))
        .collect();
    edges.sort();
    edges.dedup();
    Ok(Member {
        name: text(&package["name"]).to_owned(),
        family,
        folder: folder.to_path_buf(),
        floor: package["metadata"]["floor"]["level"].as_u64(),
        edges,
        publishable: package["publish"].is_null(),
    })
}

/// The files that git tracks or would track, relative to the root.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .context("cannot start git ls-files")?;
    if !output.status.success() {
        bail!(
            "git ls-files failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| root.join(path).is_file())
        .collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().map(text).collect()
}
