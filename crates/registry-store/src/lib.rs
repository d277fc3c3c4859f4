//! The memory of a registry of plugins: releases, channels, receipts and installations in one SQLite
//! file, artifacts by digest in a folder, in memory or in a store that speaks S3.
//!
//! [`Store`] is what `backplane serve` programs against. An answer comes only after the change is
//! durable: bytes first, then the one transaction that makes them visible. Bytes that are kept are
//! never handed out with another length than they came with.
//!
//! Nothing here reads a clock, opens a listener or knows a token: `now` and who asks are arguments.

mod checked;
mod error;
mod model;
mod names;
mod place;
mod sqlite;
mod store;

pub use checked::{Admission, Checked};
pub use error::{StoreError, WireCode};
pub use model::{
    Artifact, CatalogChannel, CatalogEntry, Collected, Installation, InstallationFilter,
    InstallationStatus, Limits, Listed, MAX_ACTOR, MAX_HOST, MAX_LISTED_DESCRIPTION, MAX_PAGE,
    MAX_QUERY, MAX_REASON, MAX_REPORTED_ERROR, MAX_VERSION, Page, Published, Receipt, Release,
    ReleaseStatus, Report, Uploaded, Wanted,
};
pub use names::{ChannelName, NameError, PluginId, ReleaseId};
pub use place::{ArtifactPlace, ByteStream, S3};
pub use store::Store;
