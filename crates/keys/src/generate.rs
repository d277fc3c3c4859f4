//! Makes a key: its public half, its private half, and last its entry, which makes it count.

use std::io::Write as _;

use attest_verify::trust::{KeyId, KeyName};

use crate::error::KeysError;
use crate::key_dir::KeyDir;
use crate::signer::Signer;
use crate::trust_dir::TrustDir;
use crate::undo::Undo;

impl KeyDir {
    /// Makes a new key, and trusts it in `trust`.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written, or the folder of private keys not be written. No file
    /// of the new key is left then.
    pub fn generate(&self, trust: &TrustDir, name: &KeyName) -> Result<KeyId, KeysError> {
        let change = trust.change()?;
        let signer = Signer::generate()?;
        let id = signer.key_id();
        let pem = signer.to_pem()?;
        let mut undo = Undo::default();
        change.place_public(signer.public(), &mut undo)?;

        let file = self.prepare()?.join(format!("{id}.key"));
        let failed = || KeysError::io("write the private key");
        let mut private = safe_fs::create_private_file(&file)
            .map_err(KeysError::files("create the private key"))?;
        undo.made(file);
        private.write_all(pem.as_bytes()).map_err(failed())?;
        private.sync_all().map_err(failed())?;
        self.synchronise()?;

        change.trust(id, name, &mut undo)?;
        Ok(id)
    }
}
