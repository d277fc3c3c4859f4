//! The folder of private keys: which keys are in it, and which of them signs.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use attest_verify::trust::{KeyId, KeyStatus, PublicKey};
use safe_fs::SafeFsError;

use crate::error::KeysError;
use crate::folder::{self, Holds};
use crate::ignored;
use crate::signer::Signer;
use crate::trust_dir::{TrustDir, parse_id};

/// The pair of the old layout, 32 raw bytes each.
const LOOSE_PRIVATE: &str = "private.key";
const LOOSE_PUBLIC: &str = "public.key";
/// With more files than this nobody looks which of them counts.
const MAX_KEYS: usize = 4096;
/// Keys that an error names one by one.
const TOLD: usize = 4;

/// Where private keys lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDir {
    path: PathBuf,
    /// The workspace, if the folder is the usual one in it.
    workspace: Option<PathBuf>,
}

impl KeyDir {
    /// Names the folder: `.attest/keys` in the workspace, or what `ATTEST_KEYS_DIR` says, relative
    /// to the workspace. An empty value says nothing. Nothing is looked at yet.
    #[must_use]
    pub fn open(workspace: &Path, chosen: Option<&OsStr>) -> Self {
        match chosen.filter(|chosen| !chosen.is_empty()) {
            Some(chosen) => Self {
                path: workspace.join(chosen),
                workspace: None,
            },
            None => Self {
                path: workspace.join(".attest").join("keys"),
                workspace: Some(workspace.to_owned()),
            },
        }
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether the private half of a key lies here.
    #[must_use]
    pub fn holds(&self, id: &KeyId) -> bool {
        fs_err::symlink_metadata(self.path.join(file_name(id))).is_ok_and(|found| found.is_file())
    }

    /// Finds out whatever can be known of the key to sign with before its file is opened; see
    /// [`Self::signer`].
    ///
    /// # Errors
    ///
    /// As [`Self::signer`], except what only the bytes of the file tell.
    pub fn check_signer(&self, trust: &TrustDir, choice: Option<&str>) -> Result<(), KeysError> {
        let file = match self.choose(trust, choice)? {
            Chosen::Managed { file, id, .. } => {
                must_be_trusted(&id, trust)?;
                file
            }
            Chosen::Loose { folder } => {
                let store = trust.load()?;
                if let Some(public) = self.loose_public()? {
                    let id = public.key_id();
                    let entry = store.policy().entry(&id);
                    if let Some(KeyStatus::Revoked { since }) = entry.map(|entry| entry.status) {
                        return Err(KeysError::Revoked { id, since });
                    }
                }
                folder.join(LOOSE_PRIVATE)
            }
        };
        safe_fs::check_private_file(&file).map_err(KeysError::files("read the private key"))
    }

    /// Chooses the key to sign with: the one asked for, else the only one or the only one of several
    /// that is trusted, else the pair of the old layout. A key with an id has to be trusted by the
    /// policy of `trust` now.
    ///
    /// # Errors
    ///
    /// There is none, there are several, the policy does not list it or has it as revoked, or its
    /// file is open to others, a link, somebody else's, no key or another key; or others can write
    /// into the folder.
    pub fn signer(&self, trust: &TrustDir, choice: Option<&str>) -> Result<Signer, KeysError> {
        match self.choose(trust, choice)? {
            Chosen::Managed { file, id, others } => {
                Ok(managed(&file, id, trust)?.chosen_before(others))
            }
            Chosen::Loose { folder } => loose(&folder, trust),
        }
    }

    fn choose(&self, trust: &TrustDir, choice: Option<&str>) -> Result<Chosen, KeysError> {
        let choice = choice.map(parse_id).transpose()?;
        let folder = self.resolve()?;
        if let Some(id) = choice {
            let absent = || KeysError::NoPrivateKey {
                id,
                folder: self.path.clone(),
            };
            let file = folder.ok_or_else(absent)?.join(file_name(&id));
            return if exists(&file)? {
                Ok(Chosen::Managed {
                    file,
                    id,
                    others: 0,
                })
            } else {
                Err(absent())
            };
        }
        let absent = || KeysError::NoKeys {
            folder: self.path.clone(),
        };
        let folder = folder.ok_or_else(absent)?;
        match key_files(&folder)?.as_slice() {
            [] if exists(&folder.join(LOOSE_PRIVATE))? => Ok(Chosen::Loose { folder }),
            [] => Err(absent()),
            [name] => {
                let file = folder.join(name);
                let id = id_in(name).ok_or_else(|| KeysError::PrivateKey {
                    file: file.clone(),
                    problem: "is not named by the id of a key".to_owned(),
                })?;
                Ok(Chosen::Managed {
                    file,
                    id,
                    others: 0,
                })
            }
            names => self.only_trusted(&folder, names, trust),
        }
    }

    /// Of several keys, those that cannot sign leave the choice to the others: a process that was
    /// killed leaves keys without an entry, and what is revoked stays.
    fn only_trusted(
        &self,
        folder: &Path,
        names: &[OsString],
        trust: &TrustDir,
    ) -> Result<Chosen, KeysError> {
        let store = trust.load()?;
        let entry = |id: &KeyId| store.policy().entry(id).map(|entry| entry.status);
        let ids = names.iter().filter_map(|name| id_in(name));
        let mut trusted: Vec<KeyId> = ids
            .filter(|id| entry(id) == Some(KeyStatus::Trusted))
            .collect();
        match trusted.as_slice() {
            [id] if names.len() <= MAX_KEYS => Ok(Chosen::Managed {
                file: folder.join(file_name(id)),
                id: *id,
                others: names.len() - 1,
            }),
            [] if names.len() <= MAX_KEYS => Err(KeysError::NoneTrusted {
                count: names.len(),
                folder: self.path.clone(),
                policy: trust.policy_path(),
            }),
            _ => {
                trusted.sort_unstable();
                let more = trusted.len().saturating_sub(TOLD);
                trusted.truncate(TOLD);
                Err(KeysError::SeveralKeys { ids: trusted, more })
            }
        }
    }

    /// Refuses a link in the place of the folder, or of one above it in the workspace.
    pub(crate) fn refuse_links(&self) -> Result<(), KeysError> {
        match &self.workspace {
            Some(workspace) => folder::refuse_links(&self.path, workspace, Holds::PrivateKeys),
            None => Ok(()),
        }
    }

    /// Returns the git work tree that would take the keys into a commit, if there is one around the
    /// folder and no ignore file of it says otherwise.
    #[must_use]
    pub fn exposed_in(&self) -> Option<PathBuf> {
        let folder = fs_err::canonicalize(&self.path).ok()?;
        ignored::exposed_in(&folder)
    }

    /// Returns where the public half of the old layout's pair would be.
    pub(crate) fn loose_file(&self) -> PathBuf {
        self.path.join(LOOSE_PUBLIC)
    }

    /// Returns the public half of the old layout's pair, if there is one.
    pub(crate) fn loose_public(&self) -> Result<Option<PublicKey>, KeysError> {
        let file = self.loose_file();
        // Bytes of another length are no key, and nobody is trusted by them.
        let bytes = read_loose_public(&file)?.unwrap_or_default();
        let Ok(raw) = bytes.try_into() else {
            return Ok(None);
        };
        PublicKey::from_raw(raw)
            .map(Some)
            .map_err(|source| KeysError::Key {
                what: bounded::text::visible(&file.to_string_lossy()),
                source,
            })
    }

    /// Makes sure that the folder is there, and returns where it is without links.
    pub(crate) fn prepare(&self) -> Result<PathBuf, KeysError> {
        self.refuse_links()?;
        let made = folder::ensure(&self.path, 0o700)?;
        folder::refuse_loose(&self.path)?;
        safe_fs::sweep_left_over(&self.path);
        // An empty one may be what a process made before it was killed.
        if made || folder::is_empty(&self.path) {
            // A repository that was never prepared for attest must not take the keys in.
            safe_fs::write_atomic(&self.path.join(ignored::FILE), b"*\n", 0o644)
                .map_err(KeysError::files("write the folder of private keys"))?;
        }
        fs_err::canonicalize(&self.path).map_err(KeysError::io("find the folder of private keys"))
    }

    /// Makes what was created in the folder outlast a crash.
    pub(crate) fn synchronise(&self) -> Result<(), KeysError> {
        fs_err::File::open(&self.path)
            .and_then(|folder| folder.sync_all())
            .map_err(KeysError::io("synchronise the folder of private keys"))
    }

    /// Returns where the folder is without links: whoever names a folder may name a link, but a
    /// checkout may not lead to the keys of another project. `None` if there is none.
    fn resolve(&self) -> Result<Option<PathBuf>, KeysError> {
        self.refuse_links()?;
        match fs_err::canonicalize(&self.path) {
            Ok(path) => {
                folder::refuse_loose(&path)?;
                Ok(Some(path))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(KeysError::io("find the folder of private keys")(error)),
        }
    }
}

/// Which key is to sign, while its file is closed.
enum Chosen {
    /// A key with an id, and how many others were passed over for it.
    Managed {
        file: PathBuf,
        id: KeyId,
        others: usize,
    },
    /// The pair of the old layout.
    Loose { folder: PathBuf },
}

/// A key with an id: the policy is asked before its file is opened.
fn managed(file: &Path, id: KeyId, trust: &TrustDir) -> Result<Signer, KeysError> {
    must_be_trusted(&id, trust)?;
    let signer = Signer::read_pem(file)?;
    let found = signer.key_id();
    if found != id {
        return Err(KeysError::PrivateKey {
            file: file.to_owned(),
            problem: format!("holds key {found}, not the key its name claims"),
        });
    }
    Ok(signer)
}

/// The pair of the old layout, which no policy lists; one that revokes it is heeded.
fn loose(folder: &Path, trust: &TrustDir) -> Result<Signer, KeysError> {
    let file = folder.join(LOOSE_PRIVATE);
    let signer = Signer::read_raw(&file)?;
    let public = read_loose_public(&folder.join(LOOSE_PUBLIC))?;
    if public.is_some_and(|public| public != signer.public().raw()) {
        return Err(KeysError::PrivateKey {
            file,
            problem: format!("is not the private half of `{LOOSE_PUBLIC}` beside it"),
        });
    }
    let id = signer.key_id();
    match status(trust, &id)? {
        Some(KeyStatus::Revoked { since }) => Err(KeysError::Revoked { id, since }),
        Some(KeyStatus::Trusted) | None => Ok(signer),
    }
}

fn must_be_trusted(id: &KeyId, trust: &TrustDir) -> Result<(), KeysError> {
    match status(trust, id)? {
        Some(KeyStatus::Trusted) => Ok(()),
        Some(KeyStatus::Revoked { since }) => Err(KeysError::Revoked { id: *id, since }),
        None => {
            let policy = trust.policy_path();
            Err(KeysError::Unlisted { id: *id, policy })
        }
    }
}

fn status(trust: &TrustDir, id: &KeyId) -> Result<Option<KeyStatus>, KeysError> {
    let store = trust.load()?;
    Ok(store.policy().entry(id).map(|entry| entry.status))
}

fn read_loose_public(file: &Path) -> Result<Option<Vec<u8>>, KeysError> {
    match safe_fs::read_bounded(file, 32) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(SafeFsError::TooLarge { .. }) => Ok(Some(Vec::new())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(source) => Err(KeysError::files("read the public key")(source)),
    }
}

/// Names of private keys, one more than is looked at at most. A link counts, so that it is refused
/// by name and does not seem to be absent.
fn key_files(folder: &Path) -> Result<Vec<OsString>, KeysError> {
    let failed = || KeysError::io("list the folder of private keys");
    let mut names = Vec::new();
    for entry in fs_err::read_dir(folder).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name();
        let is_key = Path::new(&name).extension().is_some_and(|end| end == "key");
        if is_key && name != LOOSE_PRIVATE && name != LOOSE_PUBLIC {
            names.push(name);
        }
        if names.len() > MAX_KEYS {
            break;
        }
    }
    Ok(names)
}

fn id_in(name: &OsStr) -> Option<KeyId> {
    let stem = name.to_str()?.strip_suffix(".key")?;
    KeyId::new(stem).ok()
}

fn file_name(id: &KeyId) -> String {
    format!("{id}.key")
}

fn exists(file: &Path) -> Result<bool, KeysError> {
    match fs_err::symlink_metadata(file) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(KeysError::io("examine the private key")(error)),
    }
}
