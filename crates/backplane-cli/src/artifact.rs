//! What is published: the artifact of a directory, or one that lies there already.

use std::path::Path;

use agent_plugin::{Options, Package};
use cli_shell::{CliError, Ui};
use digest_text::Sha256Text;

use crate::commands::pack::Packing;
use crate::{package, words};

/// An artifact that a registry would take.
pub(crate) struct Artifact {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Sha256Text,
    pub(crate) package: Package,
}

/// Packs a directory, or takes an artifact as it is after its package was loaded.
pub(crate) fn of_path(path: &Path, packing: &Packing, ui: &Ui) -> Result<Artifact, CliError> {
    let (bytes, package) = match package::is_directory(path)? {
        true => packing.pack(path, ui)?,
        false => taken(path, packing, ui)?,
    };
    let digest = plugin_archive::digest(&bytes);
    Ok(Artifact {
        bytes,
        digest,
        package,
    })
}

fn taken(path: &Path, packing: &Packing, ui: &Ui) -> Result<(Vec<u8>, Package), CliError> {
    if packing.changes_something() {
        let error = CliError::usage(format!("`{}` is packed already", path.display()));
        return Err(error.hint(
            "`--follow-links` and `--normalize-modes` are for a directory; an artifact is published as it is",
        ));
    }
    let bytes = package::archive_bytes(path)?;
    let snapshot = package::snapshot_of(&bytes, path)?;
    let package = agent_plugin::load(snapshot.files, &Options::default()).map_err(|found| {
        words::say(&found, ui);
        CliError::no(format!("`{}` holds no valid package", path.display()))
            .hint("`backplane inspect` shows everything that was found")
    })?;
    words::say(&package.diagnostics, ui);
    Ok((bytes, package))
}
