//! An artifact whose digest was checked, and what is in it.

use std::fmt;

use agent_plugin::{Options, Package, load};
use digest_text::Sha256Text;
use plugin_archive::{Files, Limits, Modes, unpack_with_metadata};

use crate::call::go_on;
use crate::error::ClientError;
use crate::transport::Cancel;

/// A verified artifact, unpacked and loaded in memory.
#[non_exhaustive]
pub struct Download {
    /// The exact bytes that have the digest.
    pub artifact: Vec<u8>,
    /// The digest that was asked for.
    pub artifact_digest: Sha256Text,
    /// The permission bits of each file.
    pub modes: Modes,
    /// The package; it holds the files, and errors of components may be among its diagnostics.
    pub package: Package,
}

impl Download {
    /// Returns the files of the artifact, all of them.
    pub fn files(&self) -> &Files {
        &self.package.files
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("artifact_digest", &self.artifact_digest)
            .field("artifact_bytes", &self.artifact.len())
            .field("files", &self.files().len())
            .field("package", &self.package.name())
            .finish_non_exhaustive()
    }
}

/// Unpacks and loads bytes whose digest was checked.
pub(crate) fn open(
    artifact: Vec<u8>,
    artifact_digest: Sha256Text,
    limits: &Limits,
    options: &Options,
    cancel: &dyn Cancel,
) -> Result<Download, ClientError> {
    go_on(cancel)?;
    let snapshot = unpack_with_metadata(&artifact, limits)?;
    go_on(cancel)?;
    let package = load(snapshot.files, options).map_err(|found| ClientError::Rejected { found })?;
    Ok(Download {
        artifact,
        artifact_digest,
        modes: snapshot.modes,
        package,
    })
}
