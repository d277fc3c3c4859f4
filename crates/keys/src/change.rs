//! One change of a trust store, under its lock.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use attest_receipt::time::Time;
use attest_verify::trust::{
    AUTHORITIES, KeyId, KeyName, POLICY_FILE, PublicKey, Revocation, TrustError, TrustFile,
};

use crate::error::KeysError;
use crate::ignored;
use crate::load::read_store;
use crate::lock::{StoreLock, lock};
use crate::undo::Undo;

/// The mode of what is committed with the sources.
const PUBLIC_MODE: u32 = 0o644;
/// What a killed writer leaves is swept by the next one, and until then it is in no commit.
const IGNORED: &[u8] = b".safe-fs-*.tmp\n";

/// A store that is locked and whose policy holds together.
#[derive(Debug)]
pub(crate) struct Change {
    folder: PathBuf,
    policy: TrustFile,
    /// Whether the folder is in a workspace and so in its repository.
    committed: bool,
    _lock: StoreLock,
}

impl Change {
    /// Locks a store and reads it.
    pub(crate) fn begin(folder: &Path, committed: bool) -> Result<Self, KeysError> {
        let lock = lock(folder)?;
        for place in [folder, &folder.join(AUTHORITIES)] {
            safe_fs::sweep_left_over(place);
        }
        let store = read_store(folder)?.unwrap_or_default();
        Ok(Self {
            folder: folder.to_owned(),
            policy: store.policy().clone(),
            committed,
            _lock: lock,
        })
    }

    pub(crate) fn policy(&self) -> &TrustFile {
        &self.policy
    }

    /// Has git pass over temporary files, wherever nobody has said something else.
    fn keep_out(&self, undo: &mut Undo) -> Result<(), KeysError> {
        let file = self.folder.join(ignored::FILE);
        if !self.committed || fs_err::symlink_metadata(&file).is_ok() {
            return Ok(());
        }
        undo.made(file.clone());
        self.write(&file, IGNORED)
    }

    /// Writes the file of a public key. It counts for nothing before there is an entry.
    pub(crate) fn place_public(&self, key: &PublicKey, undo: &mut Undo) -> Result<(), KeysError> {
        self.keep_out(undo)?;
        let id = key.key_id();
        let file = self.folder.join(format!("{id}.pub"));
        match safe_fs::read_bounded(&file, crate::trust_dir::PUBLIC_BYTES) {
            Ok(bytes) => {
                let found = crate::trust_dir::parse_public(&bytes, &file)?.key_id();
                if found != id {
                    return Err(self.refused(TrustError::OtherKey { id, found }));
                }
                return Ok(());
            }
            Err(error) if error.is_not_found() => {}
            Err(source) => return Err(KeysError::files("read the public key")(source)),
        }
        // Noted first: an error after the replacement would leave the file.
        undo.made(file.clone());
        self.write(&file, key.to_spki_pem().as_bytes())
    }

    /// Adds the entry of a key and writes the policy.
    pub(crate) fn trust(
        mut self,
        id: KeyId,
        name: &KeyName,
        undo: &mut Undo,
    ) -> Result<(), KeysError> {
        let added = self.policy.trust(id, name);
        added.map_err(|source| self.refused(source))?;
        let written = self.write_policy();
        if written.is_ok() || self.may_name(id) {
            undo.keep();
        }
        written
    }

    /// Marks a key as revoked and writes the policy.
    pub(crate) fn revoke(mut self, id: &KeyId, now: Time) -> Result<Revocation, KeysError> {
        let revocation = self.policy.revoke(id, now);
        if revocation == Revocation::Done {
            let mut undo = Undo::default();
            self.keep_out(&mut undo)?;
            self.write_policy()?;
            undo.keep();
        }
        Ok(revocation)
    }

    /// Writes a file beside the policy that nothing may stand in the way of.
    pub(crate) fn place_new(self, file: &Path, bytes: &[u8]) -> Result<(), KeysError> {
        match fs_err::symlink_metadata(file) {
            Ok(_) => Err(KeysError::Exists {
                path: file.to_owned(),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut undo = Undo::default();
                self.keep_out(&mut undo)?;
                self.write(file, bytes)?;
                undo.keep();
                Ok(())
            }
            Err(error) => Err(KeysError::io("examine the trust store")(error)),
        }
    }

    fn write_policy(&self) -> Result<(), KeysError> {
        let text = self.policy.to_toml();
        // What is written has to be readable for everybody from now on.
        TrustFile::parse(&text).map_err(|source| self.refused(source))?;
        self.write(&self.folder.join(POLICY_FILE), text.as_bytes())
    }

    /// After a failed write: whether the policy on disk may have the new entry nevertheless, as
    /// when only its folder could not be synchronised. An entry without its file spoils the store.
    fn may_name(&self, id: KeyId) -> bool {
        match safe_fs::read_bounded(&self.folder.join(POLICY_FILE), u64::MAX) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).contains(id.as_str()),
            Err(error) => !error.is_not_found(),
        }
    }

    fn write(&self, file: &Path, bytes: &[u8]) -> Result<(), KeysError> {
        safe_fs::write_atomic(file, bytes, PUBLIC_MODE)
            .map_err(KeysError::files("write the trust store"))
    }

    fn refused(&self, source: TrustError) -> KeysError {
        KeysError::Trust {
            folder: self.folder.clone(),
            source,
        }
    }
}
