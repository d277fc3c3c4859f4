//! The files behind a receipt's outputs, if its list of them is the one that was hashed.

use std::collections::{BTreeMap, BTreeSet};

use attest_receipt::manifest::{Entry, Manifest, PathError};
use attest_receipt::receipt::{Artifact, ArtifactKind, Receipt};
use bounded::text::visible;

/// Why a receipt's list of files is not what its hashes say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InventoryError {
    /// Two steps of one name.
    #[error("two steps are called '{}'", visible(.0))]
    TwoSteps(String),
    /// An entry for a step that is not there.
    #[error("artifact `{}` is of a step that the receipt does not have", visible(.0))]
    NoStep(String),
    /// Another hash than BLAKE3.
    #[error("artifact `{}` has a digest that is not BLAKE3", visible(.0))]
    Algorithm(String),
    /// A path that leaves the workspace or would forge a line.
    #[error("artifact `{}` {reason}", visible(.path))]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        #[source]
        reason: PathError,
    },
    /// Two entries for one path, or different ones in two steps.
    #[error("artifact `{}` is listed twice", visible(.0))]
    Twice(String),
    /// The list is not the one that was hashed.
    #[error("the artifacts of step '{}' do not give its output hash", visible(.0))]
    OtherHash(String),
}

/// Returns the files and links by path; `None` if the receipt lists none.
///
/// # Errors
/// The list is not the one behind the output hashes.
pub fn of(receipt: &Receipt) -> Result<Option<BTreeMap<&str, &Artifact>>, InventoryError> {
    let artifacts = receipt.provenance.as_ref().map(|one| &one.artifacts);
    let Some(artifacts) = artifacts.filter(|artifacts| !artifacts.is_empty()) else {
        return Ok(None);
    };
    let mut manifests: BTreeMap<&str, Manifest> = BTreeMap::new();
    for step in &receipt.steps {
        let before = manifests.insert(&step.name, Manifest::of_outputs());
        if before.is_some() {
            return Err(InventoryError::TwoSteps(step.name.clone()));
        }
    }
    let mut files = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for artifact in artifacts {
        let path = || artifact.path.clone();
        let manifest = manifests.get_mut(artifact.step.as_str());
        let manifest = manifest.ok_or_else(|| InventoryError::NoStep(path()))?;
        add(manifest, artifact)?;
        let again = !seen.insert((&artifact.step, &artifact.path));
        let other = files.insert(artifact.path.as_str(), artifact);
        let differs =
            |before: &Artifact| (before.kind, &before.digest) != (artifact.kind, &artifact.digest);
        if again || other.is_some_and(differs) {
            return Err(InventoryError::Twice(path()));
        }
    }
    for step in &receipt.steps {
        let manifest = manifests.get(step.name.as_str());
        if manifest.is_none_or(|manifest| manifest.hash() != step.output_hash) {
            return Err(InventoryError::OtherHash(step.name.clone()));
        }
    }
    Ok(Some(files))
}

fn add(manifest: &mut Manifest, artifact: &Artifact) -> Result<(), InventoryError> {
    if artifact.algorithm != "blake3" || !attest_receipt::is_lower_hex_64(&artifact.digest) {
        return Err(InventoryError::Algorithm(artifact.path.clone()));
    }
    let entry = Entry {
        kind: artifact.kind,
        digest: artifact.digest.clone(),
    };
    let added = manifest.add(&artifact.path, entry);
    added.map_err(|reason| InventoryError::Path {
        path: artifact.path.clone(),
        reason,
    })
}

/// Returns those that are regular files.
pub(crate) fn regular<'a>(
    files: &BTreeMap<&'a str, &'a Artifact>,
) -> impl Iterator<Item = &'a Artifact> {
    files
        .values()
        .copied()
        .filter(|artifact| artifact.kind == ArtifactKind::File)
}
