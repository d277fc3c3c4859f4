//! The key that signs, found in the workspace's folder of keys when it is needed.

use std::path::Path;
use std::rc::Rc;

use attest_engine::run::{LoadKey, RunError, SigningKey};
use cli_shell::{CliError, Ui};
use keys::{KeyDir, Signer, TrustDir, load_trust};

use crate::places::told_of_others;
use crate::stamping::{Stamping, Wish};

/// Where the key is, and which one is meant.
#[derive(Debug)]
pub(crate) struct KeyChoice<'a> {
    keys: KeyDir,
    trust: TrustDir,
    choice: Option<&'a str>,
    stamping: Option<Rc<Stamping<'a>>>,
    ui: Option<&'a Ui>,
}

impl<'a> KeyChoice<'a> {
    pub(crate) fn new(workspace: &Path, choice: Option<&'a str>) -> Self {
        let chosen = cli_shell::env::var_os("ATTEST_KEYS_DIR");
        Self {
            keys: KeyDir::open(workspace, chosen.as_deref()),
            trust: TrustDir::of_workspace(workspace),
            choice,
            stamping: None,
            ui: None,
        }
    }

    /// Has the signatures of receipts stamped, if that is wished, and people told of the choice.
    pub(crate) fn stamped(mut self, wish: &'a Wish, ui: &'a Ui) -> Self {
        self.ui = Some(ui);
        let (keys, trust) = (self.keys.clone(), self.trust.clone());
        self.stamping = wish.authority().map(|authority| {
            let trust = move || load_trust(trust.path(), Some(&keys));
            Rc::new(Stamping::new(authority, ui, trust))
        });
        self
    }

    /// Returns why a signature was not stamped, if it was to be, once.
    pub(crate) fn unstamped(&self) -> Option<CliError> {
        self.stamping.as_ref().and_then(|it| it.failure())
    }
}

impl LoadKey for KeyChoice<'_> {
    fn check(&self) -> Result<(), RunError> {
        let checked = self.keys.check_signer(&self.trust, self.choice);
        checked.map_err(|error| RunError::Key(error.into()))
    }

    fn load(&self) -> Result<Box<dyn SigningKey + '_>, RunError> {
        let signer = self.keys.signer(&self.trust, self.choice);
        let signer = signer.map_err(|error| RunError::Key(error.into()))?;
        if let Some(ui) = self.ui {
            told_of_others(&signer, ui);
        }
        Ok(Box::new(Loaded {
            signer,
            stamping: self.stamping.clone(),
        }))
    }
}

struct Loaded<'a> {
    signer: Signer,
    stamping: Option<Rc<Stamping<'a>>>,
}

impl SigningKey for Loaded<'_> {
    fn public_hex(&self) -> String {
        self.signer.public().hex()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.signer.sign(message)
    }

    fn stamp(&self, signature: &[u8; 64]) -> Option<String> {
        self.stamping.as_ref()?.try_stamp(signature)
    }
}
