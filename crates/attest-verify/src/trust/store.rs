//! A trust store made of files in memory, and what it says of a key.

use std::collections::BTreeMap;

use attest_receipt::time::Time;

use super::error::{KeyError, TrustError};
use super::file::{KeyStatus, TrustFile};
use super::public_key::{KeyId, PublicKey};

/// The policy's name in a store.
pub const POLICY_FILE: &str = "trust.toml";
/// Where a store keeps the certificates of timestamp authorities.
pub const AUTHORITIES: &str = "tsa/";

/// Whom to believe, as far as that could be found out.
#[derive(Debug, Clone)]
pub enum Trust {
    /// There is a store.
    Store(Box<TrustStore>),
    /// There is none, so no key is trusted.
    Absent {
        /// The folder that was looked for.
        looked_in: String,
    },
    /// There is one that does not hold together; the text says why.
    Unreadable(String),
}

/// What a store says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing, or only that it exists.
    Unknown,
    /// Its signatures count.
    Trusted {
        /// What people call it.
        name: String,
        /// Its id.
        id: KeyId,
    },
    /// Its signatures count no longer.
    Revoked {
        /// What people call it.
        name: String,
        /// Its id.
        id: KeyId,
        /// Since when; absent, ever.
        since: Option<Time>,
    },
}

/// A certificate file of a timestamp authority, as it lies in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The file's name in `tsa/`.
    pub file: String,
    /// PEM or DER, not judged here.
    pub bytes: Vec<u8>,
}

/// Keys of which a policy speaks, and loose ones of the layout before there was a policy.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    policy: TrustFile,
    /// The key files, with or without an entry, by the key in them.
    known: BTreeMap<KeyId, PublicKey>,
    /// Keys of the old layout, and the file each is from.
    loose: BTreeMap<KeyId, (PublicKey, String)>,
    authorities: Vec<Authority>,
    /// Where it was read, for messages.
    place: Option<String>,
    /// Why its word may be worth less than it seems.
    doubts: Vec<String>,
}

impl TrustStore {
    /// The greatest length of a file that can hold a loose key. Longer ones need not be read.
    pub const LOOSE_BYTES: usize = 128;
    /// The greatest length of a `.pub` file.
    pub const PUBLIC_BYTES: usize = 16 * 1024;
    /// The greatest number of files.
    pub const MAX_FILES: usize = 16 * 1024;

    /// Puts a store together from the names of its files (relative to its folder) and their bytes.
    /// Hidden files and those of other folders than `tsa/` mean nothing.
    ///
    /// # Errors
    ///
    /// The policy is malformed, or names a key whose file is missing, is another's or is refused;
    /// a loose key is weak. No part of the store is used then.
    pub fn from_files(files: Vec<(String, Vec<u8>)>) -> Result<Self, TrustError> {
        if files.len() > Self::MAX_FILES {
            return Err(TrustError::TooMany {
                what: "files",
                limit: Self::MAX_FILES,
            });
        }
        let mut store = Self::default();
        let mut publics = BTreeMap::new();
        let mut loose = Vec::new();
        for (name, bytes) in files {
            if let Some(file) = name.strip_prefix(AUTHORITIES) {
                if !file.starts_with('.') && !file.contains('/') {
                    let file = file.to_owned();
                    store.authorities.push(Authority { file, bytes });
                }
            } else if name == POLICY_FILE {
                let text = String::from_utf8(bytes)
                    .map_err(|_| TrustError::Syntax("it is not UTF-8".to_owned()))?;
                store.policy = TrustFile::parse(&text)?;
            } else if name.starts_with('.') || name.contains('/') {
                // Locks, temporary files, other people's folders.
            } else if let Some(id) = name.strip_suffix(".pub") {
                publics.insert(id.to_owned(), bytes);
            } else {
                loose.push((name, bytes));
            }
        }
        store.authorities.sort_by(|a, b| a.file.cmp(&b.file));
        store.check_policy(&publics)?;
        store.note_others(&publics);
        store.take_loose(loose)?;
        Ok(store)
    }

    /// Makes a store of one key: the public half of the old layout, where there is no store.
    #[must_use]
    pub fn of_loose_key(key: &PublicKey, file: &str) -> Self {
        Self {
            loose: BTreeMap::from([(key.key_id(), (key.clone(), file.to_owned()))]),
            ..Self::default()
        }
    }

    /// Notes where the store was read, for messages.
    #[must_use]
    pub fn at(mut self, place: String) -> Self {
        self.place = Some(place);
        self
    }

    /// Returns where the store was read, if that was noted.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Notes what whoever relies on the store has to be told.
    #[must_use]
    pub fn doubted(mut self, doubts: Vec<String>) -> Self {
        self.doubts = doubts;
        self
    }

    /// Returns what was noted of that kind.
    #[must_use]
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Says what the store knows of a key.
    #[must_use]
    pub fn lookup(&self, key: &PublicKey) -> Standing {
        let id = key.key_id();
        if let Some(entry) = self.policy.entry(&id) {
            let name = entry.name.clone();
            return match entry.status {
                KeyStatus::Trusted => Standing::Trusted { name, id },
                KeyStatus::Revoked { since } => Standing::Revoked { name, id, since },
            };
        }
        // A key file without an entry says that the key exists. It also takes the word from a
        // loose file: who keeps a policy decides there.
        match self.loose.get(&id) {
            Some((_, name)) if !self.known.contains_key(&id) => {
                let name = name.clone();
                Standing::Trusted { name, id }
            }
            _ => Standing::Unknown,
        }
    }

    /// Returns the key with an id, whatever its standing.
    #[must_use]
    pub fn key(&self, id: &KeyId) -> Option<&PublicKey> {
        let loose = || self.loose.get(id).map(|(key, _)| key);
        self.known.get(id).or_else(loose)
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &TrustFile {
        &self.policy
    }

    /// Returns the certificate files of timestamp authorities, by name.
    #[must_use]
    pub fn authorities(&self) -> &[Authority] {
        &self.authorities
    }

    /// Every entry needs its key file, and that has to hold the key that the entry means.
    fn check_policy(&self, publics: &BTreeMap<String, Vec<u8>>) -> Result<(), TrustError> {
        for entry in self.policy.entries() {
            let id = entry.id;
            let bytes = publics
                .get(id.as_str())
                .ok_or(TrustError::MissingPublicKey { id })?;
            let key = read_public(bytes).map_err(|source| TrustError::Key {
                file: format!("{id}.pub"),
                source,
            })?;
            let found = key.key_id();
            if found != id {
                return Err(TrustError::OtherKey { id, found });
            }
        }
        Ok(())
    }

    /// Notes keys that merely exist. Nobody relies on them, so a damaged one harms nobody.
    fn note_others(&mut self, publics: &BTreeMap<String, Vec<u8>>) {
        for bytes in publics.values() {
            if let Ok(key) = read_public(bytes) {
                self.known.insert(key.key_id(), key);
            }
        }
    }

    fn take_loose(&mut self, files: Vec<(String, Vec<u8>)>) -> Result<(), TrustError> {
        for (file, bytes) in files {
            match read_loose(&bytes) {
                Some(Ok(key)) => {
                    self.loose.entry(key.key_id()).or_insert((key, file));
                }
                // No key at all, so another kind of file that happens to have that length.
                None | Some(Err(KeyError::NotAPoint)) => {}
                Some(Err(source)) => return Err(TrustError::Key { file, source }),
            }
        }
        Ok(())
    }
}

fn read_public(bytes: &[u8]) -> Result<PublicKey, KeyError> {
    if bytes.len() > TrustStore::PUBLIC_BYTES {
        return Err(KeyError::Pem("it is longer than a key is"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| KeyError::Pem("it is not text"))?;
    PublicKey::from_spki_pem(text)
}

/// Reads 32 raw bytes or 64 digits; anything else is no key of the old layout.
fn read_loose(bytes: &[u8]) -> Option<Result<PublicKey, KeyError>> {
    if let Ok(raw) = bytes.try_into() {
        return Some(PublicKey::from_raw(raw));
    }
    if bytes.len() > TrustStore::LOOSE_BYTES {
        return None;
    }
    let digits = std::str::from_utf8(bytes).ok()?.trim().to_ascii_lowercase();
    attest_receipt::is_lower_hex_64(&digits).then(|| PublicKey::from_hex(&digits))
}

#[cfg(test)]
mod tests;
