//! The store.

mod artifacts;
mod receipts;

use std::path::Path;
use std::sync::Arc;

use digest_text::Sha256Text;
use jiff::Timestamp;
use tokio::sync::{Mutex, RwLock, Semaphore};

use crate::place::{Kept, Key, Place};
use crate::sqlite::{self, Database, Move, Search};
use crate::{
    Admission, ArtifactPlace, CatalogEntry, ChannelName, Installation, InstallationFilter, Limits,
    Listed, MAX_ACTOR, MAX_HOST, MAX_PAGE, MAX_REASON, MAX_REPORTED_ERROR, Page, PluginId,
    Published, Release, ReleaseId, Report, StoreError, Wanted,
};

/// The memory of one registry; clones are the same one.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    place: Place,
    limits: Limits,
    uploads: Arc<Semaphore>,
    /// Whoever writes bytes shares it; whoever removes them has it alone.
    bytes: Arc<RwLock<()>>,
    /// One receipt is written at a time, so that two for one artifact cannot mix.
    receipts: Arc<Mutex<()>>,
}

impl Store {
    /// Opens the registry in a folder, or makes one there. Blocks.
    ///
    /// # Errors
    /// Nothing that is found wrong is repaired.
    pub fn open(root: &Path, place: ArtifactPlace, limits: Limits) -> Result<Self, StoreError> {
        let (database, interrupted) = Database::open(root)?;
        let place = Place::open(root, place)?;
        // This process owns the root, so whoever wrote these is gone.
        for digest in interrupted {
            place.sweep(Key::Artifact(digest));
        }
        let uploads = usize::try_from(limits.uploads).unwrap_or(usize::MAX);
        Ok(Self {
            inner: Arc::new(Inner {
                database,
                place,
                limits,
                uploads: Arc::new(Semaphore::new(uploads.clamp(1, Semaphore::MAX_PERMITS))),
                bytes: Arc::default(),
                receipts: Arc::default(),
            }),
        })
    }

    /// Waits until there is memory for one more package.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub async fn admit(&self) -> Result<Admission, StoreError> {
        let permit = Arc::clone(&self.inner.uploads).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        Ok(Admission::new(permit, self.inner.limits.archive))
    }

    /// Publishes an upload: release, channel and catalog in one step. Bytes that were published
    /// before give the same release; a channel that meanwhile points elsewhere is not moved back.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] without an upload, [`StoreError::Yanked`],
    /// [`StoreError::ChannelTaken`], [`StoreError::TooMany`] channels.
    pub async fn publish(
        &self,
        artifact: Sha256Text,
        channel: Option<ChannelName>,
        publisher: String,
        now: Timestamp,
    ) -> Result<Published, StoreError> {
        check_actor("publisher", &publisher)?;
        let known = self.known(artifact).await?;
        let known = known
            .filter(|known| known.kept)
            .ok_or(StoreError::NotFound { what: "upload" })?;
        let kept = Kept {
            key: Key::Artifact(artifact),
            bytes: known.artifact.bytes,
        };
        match self.inner.place.length(kept.key).await? {
            Some(length) => kept.check_length(length)?,
            None => return Err(kept.damaged("it is missing".to_owned())),
        }
        let limits = self.inner.limits;
        self.inner
            .database
            .write("publish a release", move |connection| {
                let channel = channel.as_ref();
                sqlite::publish(connection, artifact, channel, &publisher, now, &limits)
            })
            .await
    }

    /// Lists plugins by id, those alone that have a release which is not yanked.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::InvalidCursor`].
    pub async fn catalog(
        &self,
        query: Option<String>,
        page: Page,
    ) -> Result<Listed<CatalogEntry>, StoreError> {
        check_page(&page)?;
        let search = query.map(Search::new).transpose()?;
        self.inner
            .database
            .read("read the catalog", move |connection| {
                sqlite::catalog_page(connection, search.as_ref(), &page)
            })
            .await
    }

    /// Finds one release.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it is not said which one, [`StoreError::NotFound`],
    /// [`StoreError::Yanked`] where a channel points at a yanked one.
    pub async fn resolve(&self, wanted: Wanted) -> Result<Release, StoreError> {
        self.inner
            .database
            .read("find a release", move |connection| {
                sqlite::resolve(connection, &wanted)
            })
            .await
    }

    /// Lists the releases of a plugin, the newest first, without their manifests.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Invalid`], [`StoreError::InvalidCursor`].
    pub async fn releases(
        &self,
        plugin: PluginId,
        page: Page,
    ) -> Result<Listed<Release>, StoreError> {
        check_page(&page)?;
        self.inner
            .database
            .read("list releases", move |connection| {
                sqlite::releases(connection, &plugin, &page)
            })
            .await
    }

    /// Lets a channel point at a release.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Yanked`], [`StoreError::ChannelMoved`],
    /// [`StoreError::TooMany`] channels.
    pub async fn promote(
        &self,
        plugin: PluginId,
        channel: ChannelName,
        release: ReleaseId,
        expected: Option<ReleaseId>,
        now: Timestamp,
    ) -> Result<Release, StoreError> {
        let limits = self.inner.limits;
        let wanted = Move {
            plugin,
            channel,
            release,
            expected,
        };
        self.inner
            .database
            .write("move a channel", move |connection| {
                sqlite::promote(connection, &wanted, now, &limits)
            })
            .await
    }

    /// Takes a release out of use; a reason replaces the one before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Invalid`] reason.
    pub async fn yank(
        &self,
        release: ReleaseId,
        reason: Option<String>,
        now: Timestamp,
    ) -> Result<Release, StoreError> {
        let rule = "must be 1 to 1024 bytes without control characters";
        if let Some(reason) = &reason {
            check_text("reason", reason, MAX_REASON, rule)?;
        }
        self.inner
            .database
            .write("yank a release", move |connection| {
                sqlite::set_yanked(connection, release, true, reason.as_deref(), now)
            })
            .await
    }

    /// Takes a release into use again.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn unyank(&self, release: ReleaseId, now: Timestamp) -> Result<Release, StoreError> {
        self.inner
            .database
            .write("take a release into use again", move |connection| {
                sqlite::set_yanked(connection, release, false, None, now)
            })
            .await
    }

    /// Remembers what a host says of an installation, in place of what it said before.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::NotFound`] release,
    /// [`StoreError::InstallationTaken`], [`StoreError::TooMany`].
    pub async fn report(
        &self,
        report: Report,
        by: String,
        now: Timestamp,
    ) -> Result<Installation, StoreError> {
        check_actor("reported_by", &by)?;
        check_host(&report.host)?;
        if report
            .error
            .as_ref()
            .is_some_and(|error| error.len() > MAX_REPORTED_ERROR)
        {
            return Err(StoreError::Invalid {
                what: "error",
                rule: "must be at most 4096 bytes",
            });
        }
        let limits = self.inner.limits;
        self.inner
            .database
            .write("remember an installation", move |connection| {
                sqlite::report(connection, &report, &by, now, &limits)
            })
            .await
    }

    /// Lists installations by id.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::InvalidCursor`].
    pub async fn installations(
        &self,
        filter: InstallationFilter,
        page: Page,
    ) -> Result<Listed<Installation>, StoreError> {
        check_page(&page)?;
        if let Some(host) = &filter.host {
            check_host(host)?;
        }
        self.inner
            .database
            .read("list installations", move |connection| {
                sqlite::installations(connection, &filter, &page)
            })
            .await
    }

    /// Tells whether the database answers.
    ///
    /// # Errors
    /// It does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.inner.database.ping().await
    }
}

fn check_page(page: &Page) -> Result<(), StoreError> {
    if (1..=MAX_PAGE).contains(&page.limit) {
        return Ok(());
    }
    Err(StoreError::Invalid {
        what: "limit",
        rule: "must be 1 to 100",
    })
}

fn check_actor(what: &'static str, name: &str) -> Result<(), StoreError> {
    let rule = "must be 1 to 255 bytes without control characters";
    check_text(what, name, MAX_ACTOR, rule)
}

fn check_host(host: &str) -> Result<(), StoreError> {
    let rule = "must be 1 to 255 bytes without control characters";
    check_text("host", host, MAX_HOST, rule)
}

fn check_text(
    what: &'static str,
    text: &str,
    most: usize,
    rule: &'static str,
) -> Result<(), StoreError> {
    if text.is_empty() || text.len() > most || bounded::text::has_control_or_format(text) {
        return Err(StoreError::Invalid { what, rule });
    }
    Ok(())
}
