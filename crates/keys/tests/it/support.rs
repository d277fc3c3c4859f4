//! A workspace of its own for each test.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use attest_receipt::time::Time;
use keys::{KeyDir, KeyId, KeyName, KeysError, TrustDir};

pub(crate) struct Workspace {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) keys: KeyDir,
    pub(crate) trust: TrustDir,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        Self {
            keys: KeyDir::open(&path, None),
            trust: TrustDir::of_workspace(&path),
            path,
            _folder: folder,
        }
    }

    pub(crate) fn generate(&self) -> KeyId {
        self.keys.generate(&self.trust, &name("test")).unwrap()
    }

    pub(crate) fn with_keys_in(&self, chosen: &str) -> KeyDir {
        KeyDir::open(&self.path, Some(OsStr::new(chosen)))
    }

    pub(crate) fn key_file(&self, id: &KeyId) -> PathBuf {
        self.keys.path().join(format!("{id}.key"))
    }

    pub(crate) fn public_file(&self, id: &KeyId) -> PathBuf {
        self.trust.path().join(format!("{id}.pub"))
    }

    pub(crate) fn policy(&self) -> String {
        fs::read_to_string(self.trust.policy_path()).unwrap()
    }

    pub(crate) fn write_policy(&self, text: &str) {
        fs::create_dir_all(self.trust.path()).unwrap();
        fs::write(self.trust.policy_path(), text).unwrap();
    }

    /// Every file below `.attest`, hidden ones too, and its bytes.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.path.join(".attest")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    found.insert(entry.path(), fs::read(entry.path()).unwrap_or_default());
                }
            }
        }
        found
    }
}

pub(crate) fn name(text: &str) -> KeyName {
    KeyName::new(text).unwrap()
}

pub(crate) fn time(text: &str) -> Time {
    text.parse().unwrap()
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The error with all its causes.
pub(crate) fn words(error: &KeysError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
