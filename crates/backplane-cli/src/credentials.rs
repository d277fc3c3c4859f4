//! The tokens that `login` keeps: one for each registry, in a file that nobody else can read.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use backplane_client::BaseUrl;
use cli_shell::CliError;
use cli_shell::config::parse_toml;
use safe_fs::SafeFsError;
use strict_json::{FieldError, Fields};
use zeroize::Zeroizing;

/// The longest file of credentials.
const LONGEST: u64 = 1024 * 1024;
const MODE: u32 = 0o600;
const HEAD: &str =
    "# Written by `backplane login`: the tokens of registries. Keep it to yourself.\n";

/// The tokens by the URL of their registry.
#[derive(Default)]
pub(crate) struct Credentials {
    tokens: BTreeMap<String, Zeroizing<String>>,
}

impl Credentials {
    /// Reads the file; one that does not exist holds nothing, one that others may read is refused.
    pub(crate) fn load(path: &Path) -> Result<Self, CliError> {
        let Some(path) = resolved(path)? else {
            return Ok(Self::default());
        };
        let bytes = match safe_fs::read_private_bounded(&path, LONGEST) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(error) if error.is_not_found() => return Ok(Self::default()),
            Err(error) => return Err(not_private(error, &path)),
        };
        parse_toml(&path, &bytes, Self::decode).map_err(|error| {
            CliError::config(error)
                .hint("`backplane login` writes this file; move it away and log in again")
        })
    }

    /// Puts a token into the file, which is replaced as a whole, and leaves the others in it.
    pub(crate) fn store(path: &Path, registry: &BaseUrl, token: &str) -> Result<PathBuf, CliError> {
        let failed = |error: CliError| error.because("the token cannot be kept");
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs_err::create_dir_all(folder).map_err(|error| failed(CliError::operation(error)))?;
        let path = resolved(path)?.unwrap_or_else(|| path.to_owned());
        // Two logins at a time must not lose a token of each other.
        let _lock = safe_fs::lock_exclusive(&path.with_extension("lock"))
            .map_err(|error| failed(CliError::operation(error)))?;
        let mut all = Self::load(&path)?;
        let token = Zeroizing::new(token.to_owned());
        all.tokens.insert(registry.to_string(), token);
        safe_fs::write_atomic(&path, all.text().as_bytes(), MODE)
            .map_err(|error| failed(CliError::operation(error)))?;
        Ok(path)
    }

    /// Tells whether there is a token for a registry.
    pub(crate) fn has(&self, registry: &BaseUrl) -> bool {
        self.tokens.contains_key(&registry.to_string())
    }

    /// Returns the token for a registry.
    pub(crate) fn token(&self, registry: &BaseUrl) -> Option<&str> {
        let token = self.tokens.get(&registry.to_string())?;
        Some(token.as_str())
    }

    fn decode(mut fields: Fields) -> Result<Self, FieldError> {
        let mut tokens = BTreeMap::new();
        for element in fields.opt_array("registry")?.unwrap_or_default() {
            let path = element.path().to_owned();
            let mut entry = element.object()?;
            let url: BaseUrl = entry.parse("url")?;
            let token = Zeroizing::new(entry.text("token")?);
            entry.end()?;
            if tokens.insert(url.to_string(), token).is_some() {
                return Err(FieldError::invalid(
                    path,
                    "is a second one of this registry",
                ));
            }
        }
        fields.end()?;
        Ok(Self { tokens })
    }

    fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(HEAD.to_owned());
        for (url, token) in &self.tokens {
            text.push_str("\n[[registry]]\nurl = ");
            quote(&mut text, url);
            text.push_str("\ntoken = ");
            quote(&mut text, token);
            text.push('\n');
        }
        text
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tokens.keys()).finish()
    }
}

/// Returns the path with the links of its folder followed: a home is often one, and the folder that it
/// leads to is judged. Without the folder there is nothing.
fn resolved(path: &Path) -> Result<Option<PathBuf>, CliError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    match fs_err::canonicalize(folder) {
        Ok(folder) => Ok(Some(folder.join(name))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::config(error)),
    }
}

fn not_private(error: SafeFsError, path: &Path) -> CliError {
    let word = safe_fs::shell_word(path);
    CliError::config(error)
        .because("the credentials are not used")
        .hint(format!(
            "if nobody else could read it: chmod 600 {word}; otherwise ask for a new token and log in again"
        ))
}

/// Writes a basic string of TOML.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _infallible = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn url(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn tokens_come_back_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/credentials.toml");
        let odd = "a\"b\\c#'=[]";
        Credentials::store(&path, &url("https://a"), odd).unwrap();
        Credentials::store(&path, &url("https://b/x'y\""), "second").unwrap();
        Credentials::store(&path, &url("https://c"), "old").unwrap();
        Credentials::store(&path, &url("https://c/"), "new").unwrap();
        let all = Credentials::load(&path).unwrap();
        assert_eq!(all.token(&url("https://A")), Some(odd));
        assert_eq!(all.token(&url("https://b/x'y\"")), Some("second"));
        assert_eq!(all.token(&url("https://c")), Some("new"));
        assert!(!all.has(&url("http://c")) && !all.has(&url("https://c:8443")));
        assert!(!format!("{all:?}").contains("second"));
        let mode = fs_err::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.toml");
        Credentials::store(&path, &url("https://a"), "secret-7").unwrap();
        for mode in [0o640, 0o604, 0o660, 0o644] {
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let error = Credentials::load(&path).unwrap_err();
            assert!(error.hints()[0].contains("chmod 600"), "{error}");
            let error = Credentials::store(&path, &url("https://b"), "x").unwrap_err();
            assert!(!format!("{error:?}").contains("secret-7"));
        }
        let other = folder.path().join("elsewhere");
        fs_err::rename(&path, &other).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(Credentials::load(&path).is_err(), "a link");
    }

    #[test]
    fn a_file_of_another_form_is_refused_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.toml");
        for text in [
            "token = \"secret-7\"\n",
            "[[registry]]\nurl = \"https://a\"\ntoken = 7\n",
            "[[registry]]\nurl = \"secret-7\"\ntoken = \"t\"\n",
            "[[registry]]\nurl = \"https://a\"\ntoken = \"secret-7\"\nmore = 1\n",
            "[[registry]]\nurl = \"https://a\"\ntoken = \"t\"\n[[registry]]\nurl = \"https://a/\"\ntoken = \"secret-7\"\n",
            "[[registry]]\nurl = \"https://a\"\ntoken = \"secret-7\n",
        ] {
            drop(safe_fs::create_private_file(&path).unwrap());
            fs_err::write(&path, text).unwrap();
            let error = Credentials::load(&path).unwrap_err();
            let shown = format!("{:?} {error:?}", error.messages());
            assert!(!shown.contains("secret-7"), "{text}: {shown}");
            fs_err::remove_file(&path).unwrap();
        }
    }
}
