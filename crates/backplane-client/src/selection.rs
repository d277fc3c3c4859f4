//! The queries: which release to resolve, which page of the catalog to get.

use url::form_urlencoded::Serializer;

use crate::address::{LONGEST_URL, RequestPath};
use crate::error::{ClientError, SelectionError};

/// What to resolve: at least one of plugin, release and channel. Ids are opaque: any text survives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    plugin_id: Option<String>,
    release_id: Option<String>,
    channel: Option<String>,
}

impl Selection {
    /// Selects a plugin by its id.
    pub fn plugin(id: impl Into<String>) -> Self {
        Self::default().with_plugin(id)
    }

    /// Selects a release by its id.
    pub fn release(id: impl Into<String>) -> Self {
        Self::default().with_release(id)
    }

    /// Selects a channel by its name, for instance `stable`.
    pub fn channel(name: impl Into<String>) -> Self {
        Self::default().with_channel(name)
    }

    /// Names the plugin.
    #[must_use]
    pub fn with_plugin(self, id: impl Into<String>) -> Self {
        Self {
            plugin_id: Some(id.into()),
            ..self
        }
    }

    /// Names the release.
    #[must_use]
    pub fn with_release(self, id: impl Into<String>) -> Self {
        Self {
            release_id: Some(id.into()),
            ..self
        }
    }

    /// Names the channel.
    #[must_use]
    pub fn with_channel(self, name: impl Into<String>) -> Self {
        Self {
            channel: Some(name.into()),
            ..self
        }
    }

    /// Returns the endpoint with its query.
    pub(crate) fn endpoint(&self) -> Result<String, SelectionError> {
        let pairs = [
            ("plugin_id", self.plugin_id.as_deref()),
            ("release_id", self.release_id.as_deref()),
            ("channel", self.channel.as_deref()),
        ];
        query("/resolve", &pairs)?.ok_or(SelectionError::Nothing)
    }
}

/// Which page of the catalog to get. The seed knows no pages: names and meaning are ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogPage {
    /// What a page before gave as `next_cursor`.
    pub cursor: Option<String>,
    /// How many entries at most.
    pub limit: Option<u32>,
    /// A text to search for.
    pub search: Option<String>,
}

impl CatalogPage {
    /// Returns the endpoint with its query.
    pub(crate) fn endpoint(&self) -> Result<String, SelectionError> {
        let limit = self.limit.map(|limit| limit.to_string());
        let pairs = [
            ("cursor", self.cursor.as_deref()),
            ("limit", limit.as_deref()),
            ("q", self.search.as_deref()),
        ];
        Ok(query("/catalog", &pairs)?.unwrap_or_else(|| "/catalog".to_owned()))
    }
}

/// Which page of a plugin's releases to get (*ours*).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleasesPage {
    /// What a page before gave as `next_cursor`.
    pub cursor: Option<String>,
    /// How many entries at most.
    pub limit: Option<u32>,
}

impl ReleasesPage {
    /// Returns the endpoint of a plugin with its query.
    pub(crate) fn endpoint(&self, plugin_id: &str) -> Result<String, ClientError> {
        let path = format!("/plugins/{}/releases", RequestPath::segment(plugin_id)?);
        let path: RequestPath = path.parse()?;
        let path = path.as_str();
        let limit = self.limit.map(|limit| limit.to_string());
        let pairs = [
            ("cursor", self.cursor.as_deref()),
            ("limit", limit.as_deref()),
        ];
        Ok(query(path, &pairs)?.unwrap_or_else(|| path.to_owned()))
    }
}

/// Which page of the installations to get (*ours*).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallationsPage {
    /// What a page before gave as `next_cursor`.
    pub cursor: Option<String>,
    /// How many entries at most.
    pub limit: Option<u32>,
    /// Only those of this plugin.
    pub plugin_id: Option<String>,
    /// Only those of this host.
    pub host: Option<String>,
}

impl InstallationsPage {
    /// Returns the endpoint with its query.
    pub(crate) fn endpoint(&self) -> Result<String, SelectionError> {
        let limit = self.limit.map(|limit| limit.to_string());
        let pairs = [
            ("cursor", self.cursor.as_deref()),
            ("limit", limit.as_deref()),
            ("plugin_id", self.plugin_id.as_deref()),
            ("host", self.host.as_deref()),
        ];
        Ok(query("/installations", &pairs)?.unwrap_or_else(|| "/installations".to_owned()))
    }
}

fn query(
    path: &str,
    pairs: &[(&'static str, Option<&str>)],
) -> Result<Option<String>, SelectionError> {
    let mut out = Serializer::for_suffix(format!("{path}?"), path.len() + 1);
    let mut some = false;
    for (name, value) in pairs {
        let Some(value) = value else { continue };
        if value.is_empty() {
            return Err(SelectionError::Empty { name });
        }
        if value.len() > LONGEST_URL {
            return Err(SelectionError::TooLong { limit: LONGEST_URL });
        }
        out.append_pair(name, value);
        some = true;
    }
    Ok(some.then(|| out.finish()))
}
