//! What goes into a registry and what comes out of it. What is said on the wire has its wire form
//! as serde form.

use std::collections::BTreeMap;

use agent_plugin::Diagnostic;
use bounded::Hex32;
use bytes::Bytes;
use digest_text::Sha256Text;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use strict_json::Object;

use crate::{ChannelName, PluginId, ReleaseId};

/// Most entries of one page.
pub const MAX_PAGE: u32 = 100;
/// Longest text that a catalog is searched for, in characters.
pub const MAX_QUERY: usize = 200;
/// Longest description in a catalog, in bytes; what is longer is cut there, and whole in the release.
pub const MAX_LISTED_DESCRIPTION: usize = 4096;
/// Longest version of a package that is taken, in bytes: pages show a hundred of them.
pub const MAX_VERSION: usize = 256;
/// Longest reason for a yank, in bytes.
pub const MAX_REASON: usize = 1024;
/// Longest text of an error that is reported of an installation, in bytes.
pub const MAX_REPORTED_ERROR: usize = 4096;
/// Longest name of a host, in bytes.
pub const MAX_HOST: usize = 255;
/// Longest name of whoever publishes or reports, in bytes.
pub const MAX_ACTOR: usize = 255;

/// What a registry takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What archives may be.
    pub archive: plugin_archive::Limits,
    /// Packages that are in memory at once, to be checked or written.
    pub uploads: u32,
    /// Installations that are remembered.
    pub installations: u64,
    /// Channels of one plugin.
    pub channels: u32,
    /// For how long an upload may wait for its release.
    pub unreleased: SignedDuration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            archive: plugin_archive::Limits::default(),
            uploads: 4,
            installations: 1_000_000,
            channels: 100,
            unreleased: SignedDuration::from_hours(24),
        }
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Most entries, 1 to [`MAX_PAGE`].
    pub limit: u32,
    /// Where the page before it ended.
    pub cursor: Option<String>,
}

/// Entries, and where they go on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed<T> {
    /// The entries.
    pub data: Vec<T>,
    /// Given if there may be more, even if the page is not full.
    pub next_cursor: Option<String>,
}

/// An upload that was accepted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Uploaded {
    /// The digest.
    pub artifact_digest: Sha256Text,
    /// How long the archive is.
    pub artifact_bytes: u64,
    /// How long its files are together.
    pub unpacked_bytes: u64,
    /// How many there are.
    pub files: u64,
    /// The plugin.
    pub plugin_id: PluginId,
    /// Its version.
    pub version: Option<String>,
    /// What was found in it.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the bytes were new.
    #[serde(skip)]
    pub created: bool,
}

/// What is known of the bytes behind a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The digest.
    pub digest: Sha256Text,
    /// How long it is.
    pub bytes: u64,
    /// Whose package it is.
    pub plugin_id: PluginId,
    /// Whether it is released, and so may be served.
    pub released: bool,
    /// When the bytes came.
    pub uploaded_at: Timestamp,
}

/// Whether a release may still be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseStatus {
    /// Yes.
    Published,
    /// Only by its id, so that lock files go on working.
    Yanked,
}

/// A release.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Release {
    /// Its id.
    pub release_id: ReleaseId,
    /// The plugin.
    pub plugin_id: PluginId,
    /// The name in the manifest.
    pub name: String,
    /// The version in the manifest.
    pub version: Option<String>,
    /// The description in the manifest.
    pub description: Option<String>,
    /// The channels that point at it now.
    pub channels: Vec<ChannelName>,
    /// Its bytes.
    pub artifact_digest: Sha256Text,
    /// How many they are.
    pub artifact_bytes: u64,
    /// How long its files are together.
    pub unpacked_bytes: u64,
    /// How many there are.
    pub files: u64,
    /// When it was published.
    pub published_at: Timestamp,
    /// By whom.
    pub publisher: String,
    /// Whether it may be chosen.
    pub status: ReleaseStatus,
    /// Why not.
    pub yanked_reason: Option<String>,
    /// Whether there is a receipt beside it.
    pub receipt: bool,
    /// The manifest as it was published; left out of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Object>,
}

/// The outcome of publishing.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The release.
    pub release: Release,
    /// Whether it is new.
    pub created: bool,
}

/// Which release is wanted: by its id, or where a channel of a plugin points.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The plugin.
    pub plugin_id: Option<PluginId>,
    /// The release.
    pub release_id: Option<ReleaseId>,
    /// The channel; `stable` if neither it nor a release is given.
    pub channel: Option<ChannelName>,
}

/// A plugin in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogEntry {
    /// Its id.
    pub plugin_id: PluginId,
    /// Its name.
    pub name: String,
    /// What it is for, of the release that `stable` points at or else of the newest one.
    pub description: Option<String>,
    /// Who published that release.
    pub publisher: String,
    /// When anything of the plugin changed.
    pub updated_at: Timestamp,
    /// Where its channels point; one that points at a yanked release is not listed.
    pub channels: BTreeMap<ChannelName, CatalogChannel>,
}

/// Where a channel points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CatalogChannel {
    /// The release.
    pub release_id: ReleaseId,
    /// Its version.
    pub version: Option<String>,
    /// Its bytes.
    pub artifact_digest: Sha256Text,
}

/// A receipt that stands beside an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The bytes as they came.
    pub bytes: Bytes,
    /// Their digest.
    pub digest: Sha256Text,
    /// When they came.
    pub stored_at: Timestamp,
    /// From whom.
    pub stored_by: String,
}

/// What became of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallationStatus {
    /// It is there.
    Installed,
    /// It is there in place of another release.
    Updated,
    /// It did not succeed.
    Failed,
    /// It is gone.
    Removed,
}

impl InstallationStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Installed, Self::Updated, Self::Failed, Self::Removed];

    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Updated => "updated",
            Self::Failed => "failed",
            Self::Removed => "removed",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// What a host says of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which one.
    pub installation_id: Hex32,
    /// Where it is, 1 to [`MAX_HOST`] bytes without control characters.
    pub host: String,
    /// The plugin.
    pub plugin_id: PluginId,
    /// The release.
    pub release_id: ReleaseId,
    /// Its bytes.
    pub artifact_digest: Sha256Text,
    /// What became of it.
    pub status: InstallationStatus,
    /// Why, at most [`MAX_REPORTED_ERROR`] bytes.
    pub error: Option<String>,
}

/// An installation as it was reported last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Installation {
    /// Which one.
    pub installation_id: Hex32,
    /// Where it is.
    pub host: String,
    /// The plugin.
    pub plugin_id: PluginId,
    /// The release.
    pub release_id: ReleaseId,
    /// Its bytes.
    pub artifact_digest: Sha256Text,
    /// What became of it.
    pub status: InstallationStatus,
    /// Why.
    pub error: Option<String>,
    /// When that was reported.
    pub reported_at: Timestamp,
    /// By whom.
    pub reported_by: String,
}

/// Which installations are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallationFilter {
    /// Those of one plugin.
    pub plugin_id: Option<PluginId>,
    /// Those of one host.
    pub host: Option<String>,
}

/// What a clean-up has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Uploads that nobody released in time.
    pub uploads: u64,
    /// Bytes of them.
    pub bytes: u64,
}
