//! A directory to fill.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use agent_plugin::Diagnostic;
use agent_plugin_dir::{LoadError, Options, Package, load_directory};
use nix::sys::stat::Mode;
use plugin_archive::Limits;
use tempfile::TempDir;

pub(crate) const MANIFEST: &str =
    r#"{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"example"}"#;

/// The package is a directory of its own, so that there is an outside.
pub(crate) struct Tree {
    folder: TempDir,
}

impl Tree {
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join("package")).unwrap();
        Self { folder }
    }

    /// With a manifest, and a file and a directory outside.
    pub(crate) fn package() -> Self {
        let tree = Self::empty();
        tree.write("plugin.json", MANIFEST);
        tree.write("../outside.txt", "secret");
        tree.write("../outside/SKILL.md", skill("outside"));
        tree
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("package")
    }

    pub(crate) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        fs_err::write(self.at(path), content).unwrap();
    }

    pub(crate) fn folder(&self, path: impl AsRef<Path>) {
        fs_err::create_dir_all(self.at(path)).unwrap();
    }

    pub(crate) fn link(&self, path: impl AsRef<Path>, target: impl AsRef<Path>) {
        symlink(target, self.at(path)).unwrap();
    }

    pub(crate) fn fifo(&self, path: impl AsRef<Path>) {
        nix::unistd::mkfifo(&self.at(path), Mode::S_IRWXU).unwrap();
    }

    pub(crate) fn socket(&self, path: impl AsRef<Path>) {
        drop(UnixListener::bind(self.at(path)).unwrap());
    }

    pub(crate) fn mode(&self, path: impl AsRef<Path>, mode: u32) {
        let permissions = std::fs::Permissions::from_mode(mode);
        fs_err::set_permissions(self.at(path), permissions).unwrap();
    }

    pub(crate) fn load(&self) -> Package {
        self.try_load().unwrap()
    }

    pub(crate) fn try_load(&self) -> Result<Package, LoadError> {
        load_directory(&self.path(), &Options::default(), &Limits::default())
    }

    /// What rejects the package.
    pub(crate) fn rejected(&self) -> Vec<String> {
        match self.try_load() {
            Err(LoadError::Rejected(found)) => lines(&found),
            other => vec![format!("{other:?}")],
        }
    }
}

pub(crate) fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: does something\n---\nbody\n")
}

pub(crate) fn lines(found: &[Diagnostic]) -> Vec<String> {
    found
        .iter()
        .map(|found| format!("{:?} {} {}", found.severity, found.code, found.path))
        .collect()
}

/// Runs something as a user who is not allowed to read everything, also where the tests run as root.
pub(crate) fn without_privileges<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if nix::unistd::geteuid().is_root() {
                // of this thread alone, with the capabilities that pass over permissions
                nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
            }
            run()
        });
        thread.join().unwrap()
    })
}

/// Shows an error with what it is about.
pub(crate) fn told(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
