//! Packages, a clock and stores for tests.

use bytes::Bytes;
use digest_text::Sha256Text;
use futures_util::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use plugin_archive::{Files, Modes};
use registry_store::{
    ByteStream, ChannelName, Page, PluginId, Published, Release, ReleaseId, Store, StoreError,
    Uploaded, Wanted,
};

/// Hours after the beginning of the tests' time.
pub(crate) fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_900_000_000).unwrap() + SignedDuration::from_hours(hours)
}

/// One package, packed.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) id: PluginId,
    pub(crate) bytes: Bytes,
    pub(crate) digest: Sha256Text,
}

impl Package {
    pub(crate) fn new(name: &str, version: &str, description: &str) -> Self {
        Self::with_file(name, version, description, b"text\n")
    }

    pub(crate) fn with_file(name: &str, version: &str, description: &str, file: &[u8]) -> Self {
        let manifest = strict_json::to_line(&std::collections::BTreeMap::from([
            ("$schema", agent_plugin::PLUGIN_SCHEMA),
            ("name", name),
            ("version", version),
            ("description", description),
        ]));
        let files = Files::from([
            ("plugin.json".to_owned(), manifest),
            ("readme.md".to_owned(), file.to_vec()),
        ]);
        Self::packed(name, &files)
    }

    pub(crate) fn packed(name: &str, files: &Files) -> Self {
        let limits = plugin_archive::Limits::default();
        let bytes = plugin_archive::pack(files, &Modes::new(), &limits).unwrap();
        Self {
            id: name.parse().unwrap(),
            digest: Sha256Text::of(&bytes),
            bytes: bytes.into(),
        }
    }

    pub(crate) fn release(&self) -> ReleaseId {
        ReleaseId::of(&self.id, &self.digest)
    }
}

pub(crate) fn channel(name: &str) -> ChannelName {
    name.parse().unwrap()
}

pub(crate) fn page(limit: u32, cursor: Option<String>) -> Page {
    Page { limit, cursor }
}

pub(crate) async fn upload(store: &Store, package: &Package, hours: i64) -> Uploaded {
    let admission = store.admit().await.unwrap();
    let checked = admission.check(package.bytes.clone(), package.digest).await;
    store.upload(checked.unwrap(), at(hours)).await.unwrap()
}

pub(crate) async fn publish(
    store: &Store,
    package: &Package,
    to: Option<&str>,
    hours: i64,
) -> Result<Published, StoreError> {
    let to = to.map(channel);
    let publisher = "publisher".to_owned();
    store
        .publish(package.digest, to, publisher, at(hours))
        .await
}

pub(crate) async fn released(store: &Store, package: &Package, to: &str, hours: i64) -> Release {
    upload(store, package, hours).await;
    publish(store, package, Some(to), hours)
        .await
        .unwrap()
        .release
}

pub(crate) async fn resolve(
    store: &Store,
    plugin: &str,
    to: Option<&str>,
) -> Result<Release, StoreError> {
    let wanted = Wanted {
        plugin_id: Some(plugin.parse().unwrap()),
        release_id: None,
        channel: to.map(channel),
    };
    store.resolve(wanted).await
}

pub(crate) async fn all(stream: Result<ByteStream, StoreError>) -> Result<Vec<u8>, StoreError> {
    let mut stream = stream?;
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(bytes)
}

/// Reads the whole catalog in pages.
pub(crate) async fn catalog(store: &Store, query: Option<&str>, limit: u32) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = None;
    loop {
        let query = query.map(str::to_owned);
        let listed = store.catalog(query, page(limit, cursor)).await.unwrap();
        assert!(listed.data.len() <= usize::try_from(limit).unwrap());
        ids.extend(
            listed
                .data
                .into_iter()
                .map(|entry| entry.plugin_id.to_string()),
        );
        cursor = listed.next_cursor;
        if cursor.is_none() {
            return ids;
        }
    }
}
