//! What no option may write to: private keys, who is trusted, and who is asked. A name given by
//! mistake would replace a key that is nowhere else, or what was reviewed.

use std::path::{Component, Path, PathBuf};

use cli_shell::{CliError, visible};
use keys::TrustDir;

use crate::places::key_dir;

const KEYS: &str = "the private keys";
const TRUST: &str = "the trust store";
const PLUGINS: &str = "the declarations of plugins";
/// The usual place of the policy of `attest-policy`.
const POLICY: &str = "the rules of attest-policy";

/// The folders of a workspace that are guarded, each without links.
#[derive(Debug)]
pub(crate) struct Guard {
    folders: Vec<(PathBuf, &'static str)>,
}

impl Guard {
    /// Guards what a command with this workspace could sign with, and whom it would trust.
    pub(crate) fn of(workspace: &Path) -> Self {
        let guard = Self {
            folders: Vec::new(),
        };
        guard
            .and(key_dir(workspace).path(), KEYS)
            .and_store(TrustDir::of_workspace(workspace).path())
    }

    /// Guards a trust store that was named, too.
    pub(crate) fn and_store(self, folder: &Path) -> Self {
        self.and(folder, TRUST).and(&folder.join("tsa"), TRUST)
    }

    fn and(mut self, folder: &Path, what: &'static str) -> Self {
        if let Ok(folder) = fs_err::canonicalize(folder) {
            self.folders.push((folder, what));
        }
        self
    }

    /// Refuses a file in one of the folders, or in a folder of that kind of any workspace, by
    /// whatever way its path leads there.
    pub(crate) fn check(&self, file: &Path) -> Result<(), CliError> {
        let place = resolved(file);
        let named = |(folder, _): &&(PathBuf, _)| {
            place == *folder || place.parent() == Some(folder.as_path())
        };
        let found = self.folders.iter().find(named).map(|(_, what)| *what);
        let Some(what) = found.or_else(|| kind(&place)) else {
            return Ok(());
        };
        let name = visible(&file.to_string_lossy());
        Err(CliError::usage(format!(
            "`{name}` lies among {what}, where no option writes"
        ))
        .hint("name a file elsewhere"))
    }

    /// Refuses to keep state there. A folder that the environment names may hold keys beside it.
    pub(crate) fn check_state(folder: &Path) -> Result<(), CliError> {
        let Some(what) = kind(&resolved(folder)) else {
            return Ok(());
        };
        let name = visible(&folder.to_string_lossy());
        Err(CliError::usage(format!(
            "the state folder `{name}` lies among {what}, where nothing else is written"
        ))
        .hint("name a folder elsewhere"))
    }
}

/// The folders of any workspace, however deep below them.
fn kind(place: &Path) -> Option<&'static str> {
    let names: Vec<_> = place.components().map(Component::as_os_str).collect();
    names.windows(2).find_map(|pair| match pair {
        [attest, keys] if *attest == ".attest" && *keys == "keys" => Some(KEYS),
        [attest, trust] if *attest == ".attest" && *trust == "trust" => Some(TRUST),
        [attest, file] if *attest == ".attest" && *file == "plugins.toml" => Some(PLUGINS),
        [attest, file] if *attest == ".attest" && *file == "policy.toml" => Some(POLICY),
        _ => None,
    })
}

/// The path without links and dots, as far as there is something.
fn resolved(file: &Path) -> PathBuf {
    for above in file.ancestors() {
        let above = if above.as_os_str().is_empty() {
            Path::new(".")
        } else {
            above
        };
        if let Ok(found) = fs_err::canonicalize(above) {
            let rest = file.strip_prefix(above).unwrap_or(file);
            return if rest.as_os_str().is_empty() {
                found
            } else {
                found.join(rest)
            };
        }
    }
    file.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(guard: &Guard, file: &Path) -> Option<String> {
        guard.check(file).err().map(|error| error.to_string())
    }

    #[test]
    fn keys_and_trust_are_guarded_by_whatever_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in [
            ".attest/keys",
            ".attest/trust/tsa",
            "other/.attest/keys",
            "store/tsa",
        ] {
            fs_err::create_dir_all(path(name)).unwrap();
        }
        std::os::unix::fs::symlink(path(".attest/keys"), path("link")).unwrap();
        let guard = Guard::of(folder.path()).and_store(&path("store"));
        for (name, what) in [
            (".attest/keys/a.key", KEYS),
            (".attest/keys", KEYS),
            (".attest/keys/deep/a", KEYS),
            (".attest/trust/../keys/a", KEYS),
            ("link/a", KEYS),
            ("link", KEYS),
            ("other/.attest/keys/a", KEYS),
            (".attest/trust/trust.toml", TRUST),
            (".attest/plugins.toml", PLUGINS),
            ("link/../plugins.toml", PLUGINS),
            (".attest/policy.toml", POLICY),
            ("other/.attest/policy.toml", POLICY),
            (".attest/trust/tsa/a.crt", TRUST),
            ("gone/.attest/trust/a", TRUST),
            ("store/a", TRUST),
            ("store/tsa/a", TRUST),
        ] {
            let text = refused(&guard, &path(name)).unwrap_or_default();
            assert!(text.contains(what), "{name}: {text}");
        }
        for name in [
            "a",
            ".attest/a",
            ".attest/receipts/a",
            "keys/a",
            "plugins.toml",
            "policy.toml",
            "store/deep/a",
            "gone/a",
        ] {
            assert_eq!(refused(&guard, &path(name)), None, "{name}");
        }
    }
}
