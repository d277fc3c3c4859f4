//! A workspace for one test, and short ways to ask for its manifests.

use std::{os::unix::fs::symlink, path::Path};

use attest_receipt::manifest::Manifest;
use tempfile::TempDir;
use tree_manifest::{ManifestError, Options};

/// The command hash of every input manifest here.
pub(crate) const COMMAND: &str = "b9e6436bbfb59b739e495357d060aeb479e84128b179897b3b77420f3f1add41";

pub(crate) struct Tree {
    /// Holds the workspace and, beside it, what no manifest may reach.
    outer: TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        fs_err::create_dir(outer.path().join("ws")).unwrap();
        fs_err::write(outer.path().join("secret"), "secret").unwrap();
        Self { outer }
    }

    pub(crate) fn workspace(&self) -> std::path::PathBuf {
        self.outer.path().join("ws")
    }

    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        self.workspace().join(path)
    }

    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        fs_err::create_dir_all(self.path(path)).unwrap();
        self
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) -> &Self {
        symlink(target, self.path(path)).unwrap();
        self
    }

    pub(crate) fn inputs(&self, declared: &[&str]) -> Result<Manifest, ManifestError> {
        self.inputs_with(declared, &Options::default())
    }

    pub(crate) fn inputs_with(
        &self,
        declared: &[&str],
        options: &Options,
    ) -> Result<Manifest, ManifestError> {
        let declared = owned(declared);
        tree_manifest::inputs(&self.workspace(), COMMAND, &declared, options)
    }

    pub(crate) fn outputs(&self, declared: &[&str]) -> Result<Manifest, ManifestError> {
        tree_manifest::outputs(&self.workspace(), &owned(declared), &Options::default())
    }

    /// The lines of the output manifest, without the header.
    pub(crate) fn lines(&self, declared: &[&str]) -> Vec<String> {
        let text = self.outputs(declared).unwrap().text();
        text.lines().skip(1).map(str::to_owned).collect()
    }

    /// The message that refuses the declared outputs.
    pub(crate) fn refusal(&self, declared: &[&str]) -> String {
        self.outputs(declared).unwrap_err().to_string()
    }
}

fn owned(declared: &[&str]) -> Vec<String> {
    declared.iter().map(|path| (*path).to_owned()).collect()
}
