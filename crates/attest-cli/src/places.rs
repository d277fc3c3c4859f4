//! Where things are: the workspace, and the keys and the trust in it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use attest_verify::trust::{KeyError, Trust};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use cli_shell::{CliError, Ui, env, visible};
use keys::{KeyDir, KeysError, Signer, TrustDir, load_trust};

use crate::guard::Guard;

/// The variable that names another folder of private keys.
const KEYS_VARIABLE: &str = "ATTEST_KEYS_DIR";

/// Which folder is the workspace.
#[derive(Debug, Clone, Args)]
pub(crate) struct Workspace {
    /// The workspace [default: the current folder]
    #[arg(long, value_name = "DIR", value_parser = folder())]
    workspace: Option<PathBuf>,
}

impl Workspace {
    /// Returns the folder, whether or not it is there.
    pub(crate) fn path(&self) -> &Path {
        self.workspace.as_deref().unwrap_or(Path::new("."))
    }

    /// Tells whether it was named.
    pub(crate) fn is_named(&self) -> bool {
        self.workspace.is_some()
    }

    /// Returns the folder of the private keys.
    pub(crate) fn keys(&self) -> KeyDir {
        key_dir(self.path())
    }

    /// Returns the trust store.
    pub(crate) fn trust(&self) -> TrustDir {
        TrustDir::of_workspace(self.path())
    }

    /// Reads the trust store.
    pub(crate) fn load_trust(&self) -> Trust {
        load_trust(self.trust().path(), Some(&self.keys()))
    }

    /// Returns what no option may write to.
    pub(crate) fn guard(&self) -> Guard {
        Guard::of(self.path())
    }

    /// Chooses the key to sign with and loads it.
    pub(crate) fn signer(&self, key: Option<&str>, ui: &Ui) -> Result<Signer, CliError> {
        let signer = self.keys().signer(&self.trust(), key);
        let signer = signer.map_err(|error| keys_error(error).because("cannot sign"))?;
        told_of_others(&signer, ui);
        Ok(signer)
    }
}

/// Says that there were keys to choose from, of which but one could be meant.
pub(crate) fn told_of_others(signer: &Signer, ui: &Ui) {
    let others = match signer.passed_over() {
        0 => return,
        1 => "one private key".to_owned(),
        others => format!("{others} private keys"),
    };
    ui.status(format_args!(
        "signed with {}; {others} that the policy does not trust passed over",
        signer.key_id()
    ));
}

/// Reads the name of a folder that has to be there: a name mistyped is no empty place.
pub(crate) fn folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|folder| check_folder(&folder).map(|()| folder))
}

/// Says in half a sentence why something is no folder.
pub(crate) fn check_folder(folder: &Path) -> Result<(), String> {
    match fs_err::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err("it is not a folder".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err("there is no such folder".to_owned())
        }
        Err(error) => Err(visible(&error.to_string())),
    }
}

/// Returns the folder of the private keys of a workspace, as the environment has it.
pub(crate) fn key_dir(workspace: &Path) -> KeyDir {
    KeyDir::open(workspace, env::var_os(KEYS_VARIABLE).as_deref())
}

/// Says what to do about an error with keys.
pub(crate) fn keys_hint(error: &KeysError) -> Option<&'static str> {
    match error {
        KeysError::SeveralKeys { .. } => Some("`attest keys list` shows whose they are"),
        KeysError::Key {
            source: KeyError::Id,
            ..
        } => Some("`attest keys list` shows the ids that there are"),
        KeysError::UnknownKey(_) | KeysError::NoPrivateKey { .. } => {
            Some("`attest keys list` shows what there is")
        }
        KeysError::Revoked { .. } => Some("choose another with `--key`, or make one"),
        KeysError::NoneTrusted { .. } => Some(
            "`attest keys import` puts a public half into the policy, `attest keys generate` makes a key",
        ),
        KeysError::Unlisted { .. } => {
            Some("`attest keys import` puts its public half into the policy")
        }
        _ => None,
    }
}

/// Says what went wrong with keys, and what to do.
pub(crate) fn keys_error(error: KeysError) -> CliError {
    let hint = keys_hint(&error);
    let error = CliError::operation(error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
