//! The folder of the trust store: what is in it, and the changes that it allows.

use std::path::{Path, PathBuf};

use attest_receipt::time::Time;
use attest_timestamp::Authority;
use attest_verify::trust::{
    AUTHORITIES, KeyError, KeyId, KeyName, KeyStatus, POLICY_FILE, PublicKey, Revocation,
    TrustError, TrustStore, certificates,
};

use bounded::text::visible;

use crate::change::Change;
use crate::error::KeysError;
use crate::folder::{self, Holds};
use crate::key_dir::KeyDir;
use crate::listing::Listing;
use crate::load::{CERTIFICATE_BYTES, read_store};
use crate::undo::Undo;

/// The longest accepted file of a public key.
pub(crate) const PUBLIC_BYTES: u64 = 16 * 1024;

/// A trust store on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustDir {
    path: PathBuf,
    /// The workspace, if this is the store in it.
    workspace: Option<PathBuf>,
}

/// What importing a key came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// The key.
    pub id: KeyId,
    /// What the policy says of it now.
    pub status: KeyStatus,
    /// Whether the policy had nothing to say of it before.
    pub added: bool,
}

/// A timestamp authority that is pinned now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// The copy in the store.
    pub path: PathBuf,
    /// Whom the certificates in it name, safe to show.
    pub subjects: Vec<String>,
}

impl TrustDir {
    /// Names a store in any place. Nothing is looked at yet.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            workspace: None,
        }
    }

    /// Names the store of a workspace, `.attest/trust`.
    #[must_use]
    pub fn of_workspace(workspace: &Path) -> Self {
        Self {
            path: workspace.join(".attest").join("trust"),
            workspace: Some(workspace.to_owned()),
        }
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns where the policy is.
    #[must_use]
    pub fn policy_path(&self) -> PathBuf {
        self.path.join(POLICY_FILE)
    }

    /// Reads the store. One that is absent is empty.
    ///
    /// # Errors
    ///
    /// It cannot be read, does not hold together, or a link stands in its place in the workspace.
    pub fn load(&self) -> Result<TrustStore, KeysError> {
        self.refuse_links()?;
        Ok(read_store(&self.path)?.unwrap_or_default())
    }

    /// Lists the keys of the policy in its order.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn list(&self, keys: &KeyDir) -> Result<Vec<Listing>, KeysError> {
        let store = self.load()?;
        keys.refuse_links()?;
        let entries = store.policy().entries().iter();
        Ok(entries
            .map(|entry| Listing::new(entry, keys.holds(&entry.id)))
            .collect())
    }

    /// Returns a public key in PEM. What is returned is written anew from the key, so that nothing
    /// else in its file gets out.
    ///
    /// # Errors
    ///
    /// The text is no id, there is no such key, or its file holds something else.
    pub fn export(&self, id: &str) -> Result<String, KeysError> {
        let id = parse_id(id)?;
        self.refuse_links()?;
        let path = self.public_file(&id);
        let bytes = match safe_fs::read_bounded(&path, PUBLIC_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Err(KeysError::UnknownKey(id)),
            Err(source) => return Err(KeysError::files("read the public key")(source)),
        };
        let key = parse_public(&bytes, &path)?;
        let found = key.key_id();
        if found != id {
            return Err(KeysError::Trust {
                folder: self.path.clone(),
                source: TrustError::OtherKey { id, found },
            });
        }
        Ok(key.to_spki_pem())
    }

    /// Takes a public key from a PEM file into the store and trusts it. What the policy says of
    /// the key already stays: a revoked key stays revoked.
    ///
    /// # Errors
    ///
    /// The file is not one public key, has or seems to have private key material in it, or the
    /// store cannot be read or written.
    pub fn import(&self, file: &Path, name: &KeyName) -> Result<Imported, KeysError> {
        let bytes = safe_fs::read_bounded(file, PUBLIC_BYTES)
            .map_err(KeysError::files("read the key to import"))?;
        let key = parse_public(&bytes, file)?;
        let id = key.key_id();
        let change = self.change()?;
        if let Some(entry) = change.policy().entry(&id) {
            let status = entry.status;
            return Ok(Imported {
                id,
                status,
                added: false,
            });
        }
        let mut undo = Undo::default();
        change.place_public(&key, &mut undo)?;
        change.trust(id, name, &mut undo)?;
        Ok(Imported {
            id,
            status: KeyStatus::Trusted,
            added: true,
        })
    }

    /// Marks a key as revoked at `now`; nothing is deleted. A text that is no id names no key.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written, or does not hold together.
    pub fn revoke(&self, id: &str, now: Time) -> Result<Revocation, KeysError> {
        let Ok(id) = KeyId::new(id) else {
            return Ok(Revocation::Unknown);
        };
        if self.load()?.policy().entry(&id).is_none() {
            return Ok(Revocation::Unknown);
        }
        self.change()?.revoke(&id, now)
    }

    /// Pins a timestamp authority by a copy of its certificate file.
    ///
    /// # Errors
    ///
    /// The name would make another path or is taken, or the file has no certificate, more than
    /// certificates, or one that could not have issued that of an authority.
    pub fn pin_authority(&self, file: &Path, name: &str) -> Result<Pinned, KeysError> {
        if !is_authority_name(name) {
            return Err(KeysError::AuthorityName);
        }
        let bytes = safe_fs::read_bounded(file, CERTIFICATE_BYTES)
            .map_err(KeysError::files("read the certificate"))?;
        let found = certificates(&bytes).map_err(|source| refused(file, source))?;
        let subjects = found.iter().map(|der| {
            let authority = Authority::new(name, der);
            authority.map(|authority| authority.subject())
        });
        let subjects = subjects.collect::<Result<_, _>>();
        let subjects = subjects.map_err(|problem| KeysError::Authority {
            what: visible(&file.to_string_lossy()),
            problem,
        })?;
        let change = self.change()?;
        let folder = self.path.join(AUTHORITIES);
        folder::ensure(&folder, 0o777)?;
        let path = folder.join(format!("{name}.crt"));
        change.place_new(&path, &bytes)?;
        Ok(Pinned { path, subjects })
    }

    /// Begins a change: the folder is there and locked, and what is in it holds together.
    pub(crate) fn change(&self) -> Result<Change, KeysError> {
        self.refuse_links()?;
        folder::ensure(&self.path, 0o777)?;
        Change::begin(&self.path, self.workspace.is_some())
    }

    fn refuse_links(&self) -> Result<(), KeysError> {
        match &self.workspace {
            Some(workspace) => folder::refuse_links(&self.path, workspace, Holds::Trust),
            None => Ok(()),
        }
    }

    fn public_file(&self, id: &KeyId) -> PathBuf {
        self.path.join(format!("{id}.pub"))
    }
}

pub(crate) fn parse_id(text: &str) -> Result<KeyId, KeysError> {
    KeyId::new(text).map_err(|source| KeysError::Key {
        what: visible(&text.chars().take(64).collect::<String>()),
        source,
    })
}

pub(crate) fn parse_public(bytes: &[u8], file: &Path) -> Result<PublicKey, KeysError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| refused(file, KeyError::Pem("it is not text")))?;
    PublicKey::from_spki_pem(text).map_err(|source| refused(file, source))
}

fn refused(file: &Path, source: KeyError) -> KeysError {
    KeysError::Key {
        what: visible(&file.to_string_lossy()),
        source,
    }
}

fn is_authority_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
