//! Hashes a workspace again for `verify --recompute`. Reads only; starts nothing.

use std::path::{Path, PathBuf};

use attest_receipt::manifest::Manifest;
use attest_receipt::pipeline;
use attest_verify::Workspace;

use crate::capsule;
use crate::told::told;

/// The file that holds the pipeline of a workspace.
const PIPELINE: &str = "attest.yaml";

/// A workspace on disk.
#[derive(Debug, Clone)]
pub struct OnDisk {
    workspace: PathBuf,
    options: tree_manifest::Options,
}

impl OnDisk {
    /// Names a workspace; nothing is looked at yet.
    #[must_use]
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            options: tree_manifest::Options::default(),
        }
    }

    /// Returns the folder to which declared paths are relative.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }
}

impl Workspace for OnDisk {
    fn pipeline(&self) -> Result<Option<Vec<u8>>, String> {
        let limit = u64::try_from(pipeline::MAX_BYTES).unwrap_or(u64::MAX);
        match safe_fs::read_bounded(&self.workspace.join(PIPELINE), limit) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(told(&error)),
        }
    }

    fn inputs(&self, command_hash: &str, declared: &[String]) -> Result<Manifest, String> {
        tree_manifest::inputs(&self.workspace, command_hash, declared, &self.options)
            .map_err(|error| told(&error))
    }

    fn outputs(&self, declared: &[String]) -> Result<Manifest, String> {
        tree_manifest::outputs(&self.workspace, declared, &self.options)
            .map_err(|error| told(&error))
    }

    fn capsule_hash(&self, name: &str) -> Result<String, String> {
        let capsule = capsule::load(&self.workspace, name).map_err(|error| told(&error))?;
        capsule.hash().map_err(|error| told(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    #[test]
    fn a_workspace_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = OnDisk::new(folder.path());
        assert_eq!(workspace.pipeline(), Ok(None));
        fs_err::write(folder.path().join(PIPELINE), "text").unwrap();
        assert_eq!(workspace.pipeline(), Ok(Some(b"text".to_vec())));

        let declared = ["out".to_owned()];
        let missing = workspace.outputs(&declared).unwrap_err();
        assert_eq!(missing, "declared output not found: out");
        let missing = workspace.inputs(COMMAND, &declared).unwrap_err();
        assert_eq!(missing, "declared input not found: out");
        fs_err::write(folder.path().join("out"), "x").unwrap();
        assert_eq!(workspace.outputs(&declared).unwrap().len(), 1);

        let missing = workspace.capsule_hash("demo").unwrap_err();
        assert!(missing.starts_with("capsule 'demo' not found"), "{missing}");
        let image = format!("busybox@sha256:{COMMAND}");
        capsule::init(folder.path(), "demo", &image).unwrap();
        assert_eq!(workspace.capsule_hash("demo").unwrap().len(), 64);
    }

    #[test]
    fn a25_what_is_no_file_is_an_error_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = OnDisk::new(folder.path());
        let mode = nix::sys::stat::Mode::S_IRWXU;
        for name in [PIPELINE, "out"] {
            nix::unistd::mkfifo(&folder.path().join(name), mode).unwrap();
        }
        assert!(workspace.pipeline().is_err());
        let error = workspace.outputs(&["out".to_owned()]).unwrap_err();
        assert!(error.contains("FIFO"), "{error}");
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
        assert!(workspace.outputs(&["link".to_owned()]).is_err());
    }
}
