//! Who is who. Only digests of tokens stay in memory, and they are compared in constant time.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cli_shell::{Secret, SecretError};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::{Pattern, Scope, SecretSource, TokenConfig};

/// The file of the token that is made where the configuration names none.
pub const ADMIN_TOKEN: &str = "admin.token";
/// How that token is called in logs and as a publisher.
const ADMIN: &str = "admin";

/// Whose request it is, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub scopes: BTreeSet<Scope>,
    /// The plugins it may change; without any pattern, all.
    pub plugins: Option<Vec<Pattern>>,
}

impl Identity {
    /// Whether it may change this plugin.
    #[must_use]
    pub fn may_change(&self, plugin_id: &str) -> bool {
        self.plugins
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|one| one.matches(plugin_id)))
    }
}

/// All tokens that the registry accepts; at least one.
#[derive(Debug, Clone)]
pub struct Tokens(Arc<[(TokenDigest, Arc<Identity>)]>);

#[derive(Clone)]
struct TokenDigest([u8; 32]);

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}

/// Why the registry has no usable tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// One cannot be read.
    #[error("failed to read the token `{name}`")]
    Secret {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: SecretError,
    },
    /// Two are the same.
    #[error("the token `{0}` is the same as another one")]
    Reused(String),
    /// The administrator's token cannot be made.
    #[error("failed to make the administrator's token `{}`", path.display())]
    Make {
        /// Its file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Others can read the administrator's token.
    #[error("others than its owner can get at `{}` (mode {mode:04o}); make a new token: remove the file and start again", path.display())]
    Open {
        /// Its file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

impl Tokens {
    /// Takes tokens; no two may be the same.
    ///
    /// # Errors
    /// Two are the same.
    pub fn new(tokens: impl IntoIterator<Item = (Secret, Identity)>) -> Result<Self, TokensError> {
        let mut known: Vec<(TokenDigest, Arc<Identity>)> = Vec::new();
        for (secret, identity) in tokens {
            let digest = digest(secret.expose());
            if known.iter().any(|(used, _)| same(used, &digest)) {
                return Err(TokensError::Reused(identity.name));
            }
            known.push((digest, Arc::new(identity)));
        }
        Ok(Self(known.into()))
    }

    /// Reads the tokens that a configuration names.
    ///
    /// # Errors
    /// One cannot be read, or two are the same.
    pub fn read(configured: &[TokenConfig]) -> Result<Self, TokensError> {
        let read = |token: &TokenConfig| {
            let identity = Identity {
                name: token.name.to_string(),
                scopes: token.scopes.clone(),
                plugins: token.plugins.clone(),
            };
            secret(&token.secret)
                .map(|secret| (secret, identity))
                .map_err(|source| TokensError::Secret {
                    name: token.name.to_string(),
                    source,
                })
        };
        let tokens = configured.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Self::new(tokens)
    }

    /// The token for everything in the registry's folder, made if it is not there yet; also its
    /// file, if it was made.
    ///
    /// # Errors
    /// It cannot be made or read, or others can read it.
    pub fn administrator(root: &Path) -> Result<(Self, Option<PathBuf>), TokensError> {
        let path = root.join(ADMIN_TOKEN);
        let make = |source| TokensError::Make {
            path: path.clone(),
            source,
        };
        let made = match fs_err::symlink_metadata(&path) {
            Ok(_) => false,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                create(&path).map_err(make)?;
                true
            }
            Err(error) => return Err(make(error)),
        };
        let mode = fs_err::metadata(&path).map_err(make)?.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(TokensError::Open { path, mode });
        }
        let secret = Secret::from_file(&path).map_err(|source| TokensError::Secret {
            name: ADMIN.to_owned(),
            source,
        })?;
        let identity = Identity {
            name: ADMIN.to_owned(),
            scopes: Scope::ALL.into(),
            plugins: None,
        };
        Ok((Self::new([(secret, identity)])?, made.then_some(path)))
    }

    /// Whose token this is. All are compared, so that the time tells nothing.
    #[must_use]
    pub fn who(&self, presented: &str) -> Option<Arc<Identity>> {
        let presented = digest(presented);
        let mut found = None;
        for (known, identity) in self.0.iter() {
            if same(known, &presented) {
                found = Some(identity);
            }
        }
        found.cloned()
    }
}

/// Reads a secret from where the configuration says it is.
///
/// # Errors
/// It is not there, or is no usable secret.
pub(crate) fn secret(source: &SecretSource) -> Result<Secret, SecretError> {
    match source {
        SecretSource::Env(name) => Secret::from_env(name.as_ref()),
        SecretSource::File(path) => Secret::from_file(path),
    }
}

/// Writes a new token beside its place and moves it there, so that no half of one is ever read.
fn create(path: &Path) -> std::io::Result<()> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)?;
    let half = path.with_extension("token.new");
    match fs_err::remove_file(&half) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&half)?;
    file.write_all(format!("{}\n", hex::encode(random)).as_bytes())?;
    file.sync_all()?;
    fs_err::rename(&half, path)
}

fn digest(token: &str) -> TokenDigest {
    TokenDigest(Sha256::digest(token.as_bytes()).into())
}

fn same(left: &TokenDigest, right: &TokenDigest) -> bool {
    left.0.ct_eq(&right.0).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn secret(text: &str) -> Secret {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs_err::write(&path, text).unwrap();
        Secret::from_file(&path).unwrap()
    }

    fn named(name: &str) -> Identity {
        Identity {
            name: name.to_owned(),
            scopes: BTreeSet::from([Scope::Read]),
            plugins: None,
        }
    }

    #[test]
    fn a_token_is_one_identity_and_no_two_are_the_same() {
        let two = || {
            [
                (secret("canary1"), named("a")),
                (secret("canary2"), named("b")),
            ]
        };
        let tokens = Tokens::new(two()).unwrap();
        assert_eq!(tokens.who("canary1").unwrap().name, "a");
        assert_eq!(tokens.who("canary2").unwrap().name, "b");
        for wrong in ["", "canary", "CANARY1", "canary1 "] {
            assert!(tokens.who(wrong).is_none(), "{wrong:?}");
        }
        assert!(!format!("{tokens:?}").contains("canary"));
        let three = two().into_iter().chain([(secret("canary1"), named("c"))]);
        assert!(matches!(Tokens::new(three), Err(TokensError::Reused(name)) if name == "c"));
    }

    #[test]
    fn patterns_limit_what_is_changed() {
        let mut identity = named("a");
        assert!(identity.may_change("anything"));
        identity.plugins = Some(vec!["acme-*".parse().unwrap(), "to?l".parse().unwrap()]);
        for (plugin, may) in [
            ("acme-x", true),
            ("acme-", true),
            ("acme", false),
            ("xacme-x", false),
            ("tool", true),
            ("toool", false),
        ] {
            assert_eq!(identity.may_change(plugin), may, "{plugin}");
        }
    }

    #[test]
    fn the_administrators_token_is_made_once_and_private() {
        let root = tempfile::tempdir().unwrap();
        let (_, made) = Tokens::administrator(root.path()).unwrap();
        let path = made.unwrap();
        assert_eq!(
            fs_err::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o600
        );
        let text = fs_err::read_to_string(&path).unwrap();
        assert_eq!(text.len(), 65);
        let (again, made) = Tokens::administrator(root.path()).unwrap();
        assert_eq!(made, None);
        let who = again.who(text.trim_end()).unwrap();
        assert_eq!(who.scopes.len(), Scope::ALL.len());
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(matches!(
            Tokens::administrator(root.path()),
            Err(TokensError::Open { mode: 0o640, .. })
        ));
    }
}
