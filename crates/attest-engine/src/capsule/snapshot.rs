//! The declared inputs of a step as they were when they were hashed, outside the workspace.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::{CapsuleFault, usable_temporary};
use crate::copy::{Copier, plain};
use crate::scratch::Scratch;
use crate::told::told;

/// A copy of declared inputs that goes away with its owner.
#[derive(Debug)]
pub struct Snapshot {
    folder: Scratch,
    tops: Vec<PathBuf>,
}

impl Snapshot {
    /// Copies the declared inputs below the temporary folder `place`, and checks that the copy has
    /// the hash that was recorded. Blocks.
    ///
    /// # Errors
    /// Something could not be copied, or it is not what was hashed.
    pub fn take(
        workspace: &Path,
        place: &Path,
        declared: &[String],
        command_hash: &str,
        input_hash: &str,
        cancel: &CancellationToken,
    ) -> Result<Self, CapsuleFault> {
        let outside = usable_temporary(place).map_err(CapsuleFault::SnapshotPlace)?;
        let workspace = fs_err::canonicalize(workspace).map_err(|error| no_place(&error))?;
        if outside.starts_with(&workspace) {
            return Err(CapsuleFault::SnapshotPlace(
                "the temporary folder lies in the workspace; set TMPDIR to another place".into(),
            ));
        }
        let folder =
            Scratch::new_in(&outside, "attest-inputs-").map_err(|error| no_place(&error))?;
        let mut paths: Vec<PathBuf> = declared.iter().map(|path| plain(path)).collect();
        let unusable = paths
            .iter()
            .zip(declared)
            .find(|(path, _)| top(path).is_none());
        if let Some((_, declared)) = unusable {
            let path = bounded::text::visible(declared);
            return Err(CapsuleFault::Input { path });
        }
        // Each tree once: what lies below a declared folder is copied with it.
        paths.sort_unstable();
        let mut outermost: Vec<&Path> = Vec::new();
        for path in &paths {
            if !outermost.iter().any(|above| path.starts_with(above)) {
                outermost.push(path);
            }
        }
        let mut copier = Copier::new(&[], cancel);
        for path in &outermost {
            copier
                .one(&workspace, folder.path(), path)
                .map_err(CapsuleFault::Snapshot)?;
        }
        let options = tree_manifest::Options::default();
        let copied = tree_manifest::inputs(folder.path(), command_hash, declared, &options)
            .map_err(|error| no_place(&error))?
            .hash();
        if copied != input_hash {
            return Err(CapsuleFault::InputsChanged {
                hashed: input_hash.to_owned(),
                snapshot: copied,
            });
        }
        let mut tops: Vec<PathBuf> = outermost.iter().filter_map(|path| top(path)).collect();
        tops.dedup();
        Ok(Self { folder, tops })
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The first components of the inputs. They are what is mounted: a mount point cannot be moved
    /// aside from inside, while a folder between it and an input could.
    #[must_use]
    pub fn tops(&self) -> &[PathBuf] {
        &self.tops
    }
}

/// The first component of a plain path.
fn top(path: &Path) -> Option<PathBuf> {
    let first = path.components().next()?;
    matches!(first, std::path::Component::Normal(_)).then(|| PathBuf::from(first.as_os_str()))
}

fn no_place(error: &dyn std::error::Error) -> CapsuleFault {
    CapsuleFault::SnapshotPlace(told(error))
}
