//! Roots of registries.

use registry_store::{ArtifactPlace, Limits, Store};

/// The root of a registry, which is a folder that does not exist yet.
#[derive(Debug)]
pub(crate) struct Root {
    folder: tempfile::TempDir,
}

impl Root {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("registry")
    }

    pub(crate) fn open(&self, place: ArtifactPlace) -> Store {
        Store::open(&self.path(), place, Limits::default()).unwrap()
    }
}
