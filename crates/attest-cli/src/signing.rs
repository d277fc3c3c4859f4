//! The key that signs, found in the workspace's folder of keys when it is needed.

use std::path::Path;

use attest_engine::run::{LoadKey, RunError, SigningKey};
use keys::{KeyDir, KeysError, Signer, TrustDir};

/// Where the key is, and which one is meant.
#[derive(Debug)]
pub(crate) struct KeyChoice<'a> {
    keys: KeyDir,
    trust: TrustDir,
    choice: Option<&'a str>,
}

impl<'a> KeyChoice<'a> {
    pub(crate) fn new(workspace: &Path, choice: Option<&'a str>) -> Self {
        let chosen = cli_shell::env::var_os("ATTEST_KEYS_DIR");
        Self {
            keys: KeyDir::open(workspace, chosen.as_deref()),
            trust: TrustDir::of_workspace(workspace),
            choice,
        }
    }
}

impl LoadKey for KeyChoice<'_> {
    fn check(&self) -> Result<(), RunError> {
        let folder = self.keys.path();
        if folder.is_dir() {
            return Ok(());
        }
        let folder = folder.to_owned();
        Err(RunError::Key(KeysError::NoKeys { folder }.into()))
    }

    fn load(&self) -> Result<Box<dyn SigningKey>, RunError> {
        let signer = self.keys.signer(&self.trust, self.choice);
        let signer = signer.map_err(|error| RunError::Key(error.into()))?;
        Ok(Box::new(Loaded(signer)))
    }
}

struct Loaded(Signer);

impl SigningKey for Loaded {
    fn public_hex(&self) -> String {
        self.0.public().hex()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message)
    }
}
