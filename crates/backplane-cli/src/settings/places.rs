//! Where the files of a user and of the machine are.

use std::path::{Path, PathBuf};

use cli_shell::{CliError, env};

/// The file of the machine.
pub(crate) const SYSTEM_FILE: &str = "/etc/backplane/config.toml";

/// The files that settings and tokens come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The user's settings, if there is a home.
    pub(crate) user: Option<PathBuf>,
    /// The machine's settings.
    pub(crate) system: PathBuf,
    /// The user's tokens, if there is a home.
    pub(crate) credentials: Option<PathBuf>,
}

impl Places {
    /// Asks the environment for the user's home.
    pub(crate) fn find() -> Result<Self, CliError> {
        let read = |name: &str| env::var(name).map_err(CliError::config);
        Ok(Self::of(read("XDG_CONFIG_HOME")?, read("HOME")?))
    }

    /// The base directory rules say that a path which is not absolute is to be ignored.
    fn of(config: Option<String>, home: Option<String>) -> Self {
        let absolute = |path: String| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let folder = config
            .and_then(absolute)
            .or_else(|| Some(home.and_then(absolute)?.join(".config")))
            .map(|base| base.join("backplane"));
        Self {
            user: folder.as_ref().map(|folder| folder.join("config.toml")),
            system: PathBuf::from(SYSTEM_FILE),
            credentials: folder.map(|folder| folder.join("credentials.toml")),
        }
    }

    /// Returns the files with settings, the strongest first.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.user.as_deref().into_iter().chain([&*self.system])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_files_are_below_the_base_directory_or_the_home() {
        let text = |path: &str| Some(path.to_owned());
        let places = Places::of(text("/x"), text("/home/u"));
        assert_eq!(places.user, Some("/x/backplane/config.toml".into()));
        let places = Places::of(text("relative"), text("/home/u"));
        assert_eq!(
            places.credentials,
            Some("/home/u/.config/backplane/credentials.toml".into())
        );
        let places = Places::of(None, None);
        assert_eq!((&places.user, &places.credentials), (&None, &None));
        let files: Vec<_> = places.files().collect();
        assert_eq!(files, [Path::new(SYSTEM_FILE)]);
    }
}
