//! The walk through a package: one open directory for each level of the current path.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use agent_plugin::{Diagnostic, MCP};
use plugin_archive::{Budget, Limits, Rule, Snapshot, check_path, visible};
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::links::Leads;
use crate::tree::{self, Content, Identity, Root};
use crate::{Followed, ReadError, places};

/// What becomes of links and special files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// They are errors, and so are names that an archive could not hold.
    Refused,
    /// Links are followed inside; what is left out is told.
    Followed,
}

pub(crate) struct Walk<'a> {
    root: &'a Root,
    links: Links,
    budget: Budget,
    levels: Vec<Level>,
    snapshot: Snapshot,
    found: Vec<Diagnostic>,
    directory_at_mcp: bool,
}

/// A directory that is being walked through.
struct Level {
    dir: OwnedFd,
    identity: Identity,
    /// Where it is in the package, links unresolved; empty is the root.
    path: String,
    /// Where it is below the root, links resolved.
    real: PathBuf,
    /// What is still to be visited, the next one last.
    names: Vec<String>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(root: &'a Root, limits: &Limits, links: Links) -> Self {
        Self {
            root,
            links,
            budget: Budget::new(limits),
            levels: Vec::new(),
            snapshot: Snapshot::default(),
            found: Vec::new(),
            directory_at_mcp: false,
        }
    }

    pub(crate) fn run(mut self) -> Result<Followed, ReadError> {
        let root = self.root.directory();
        self.enter(root, String::new(), PathBuf::new())?;
        while let Some(level) = self.levels.last_mut() {
            match level.names.pop() {
                Some(name) => {
                    let path = join(&level.path, &name);
                    self.visit(&name, path)?;
                }
                None => {
                    self.levels.pop();
                }
            }
        }
        // empty directories are no part of a package, so the load would take it for absent
        let holds = |path: &String| Path::new(path).starts_with(MCP);
        if self.directory_at_mcp && !self.snapshot.files.keys().any(holds) {
            self.found.push(places::empty_mcp());
        }
        Ok(Followed {
            snapshot: self.snapshot,
            diagnostics: self.found,
        })
    }

    /// Looks at an entry of the last level.
    fn visit(&mut self, name: &str, path: String) -> Result<(), ReadError> {
        let Some(level) = self.levels.last() else {
            return Ok(());
        };
        let name = Path::new(name);
        let found = tree::look(&level.dir, name);
        match found.map_err(|errno| ReadError::io("examine", &path, errno))? {
            FileType::RegularFile => {
                let content = tree::read_file(&level.dir, name, &path, &mut self.budget)?;
                self.keep(path, content);
                Ok(())
            }
            FileType::Directory => {
                let opened = tree::open_directory(&level.dir, name);
                let real = level.real.join(name);
                self.enter(opened, path, real)
            }
            FileType::Symlink if self.links == Links::Refused => Err(ReadError::Link {
                path: visible(path.as_bytes()),
            }),
            FileType::Symlink => {
                let led = self.root.resolve(&level.real, name.as_os_str());
                let led = led.map_err(|error| ReadError::io("follow", &path, error))?;
                self.follow(led, path)
            }
            other => self.special(&path, tree::kind(other)),
        }
    }

    fn keep(&mut self, path: String, content: Content) {
        self.snapshot.modes.insert(path.clone(), content.mode);
        self.snapshot.files.insert(path, content.bytes);
    }

    fn special(&mut self, path: &str, kind: &'static str) -> Result<(), ReadError> {
        if self.links == Links::Followed {
            self.found.push(places::special(path, kind));
            return Ok(());
        }
        Err(ReadError::Special {
            path: visible(path.as_bytes()),
            kind,
        })
    }

    fn follow(&mut self, led: Leads, path: String) -> Result<(), ReadError> {
        let left_out = match led {
            Leads::Inside(real) => return self.take(&real, path),
            Leads::Outside { directory } => places::escape(&path, directory),
            Leads::Nowhere => places::dangling(&path),
            Leads::Round => places::cycle(&path),
        };
        self.found.push(left_out);
        Ok(())
    }

    /// Takes what lies at a real path as if it lay at another one.
    fn take(&mut self, real: &Path, path: String) -> Result<(), ReadError> {
        let opened = self.root.holder(real);
        let (dir, name) = opened.map_err(|errno| ReadError::io("follow", &path, errno))?;
        let found = tree::look(&dir, name);
        match found.map_err(|errno| ReadError::io("examine", &path, errno))? {
            FileType::RegularFile => {
                let content = tree::read_file(&dir, name, &path, &mut self.budget)?;
                self.keep(path, content);
                Ok(())
            }
            FileType::Directory => {
                let opened = tree::open_directory(&dir, name);
                self.enter(opened, path, real.to_owned())
            }
            // a real path has none
            FileType::Symlink => Err(ReadError::changed(&path)),
            other => self.special(&path, tree::kind(other)),
        }
    }

    /// Begins a level, unless the path leads through the same directory already.
    fn enter(
        &mut self,
        opened: Result<OwnedFd, Errno>,
        path: String,
        real: PathBuf,
    ) -> Result<(), ReadError> {
        let failed = |errno| ReadError::io("open", &path, errno);
        let dir = opened.map_err(failed)?;
        let identity = tree::identity(&dir).map_err(failed)?;
        if self.levels.iter().any(|level| level.identity == identity) {
            if self.links == Links::Refused {
                let path = visible(path.as_bytes());
                return Err(ReadError::Cycle { path });
            }
            self.found.push(places::cycle(&path));
            return Ok(());
        }
        let names = self.list(&dir, &path)?;
        self.directory_at_mcp |= path == MCP;
        self.levels.push(Level {
            dir,
            identity,
            path,
            real,
            names,
        });
        Ok(())
    }

    /// Lists a directory, last name first. Each name is taken from the budget before the next one
    /// is read.
    fn list(&mut self, dir: &OwnedFd, path: &str) -> Result<Vec<String>, ReadError> {
        let failed = |errno| ReadError::io("list", path, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let name = self.checked(path, name)?;
            self.budget.entry(&join(path, &name))?;
            names.push(name);
        }
        names.sort_unstable_by(|a, b| b.cmp(a));
        Ok(names)
    }

    fn checked(&self, path: &str, name: &[u8]) -> Result<String, ReadError> {
        let refused = |rule| {
            let mut whole = OsString::from(path);
            if !path.is_empty() {
                whole.push("/");
            }
            whole.push(OsStr::from_bytes(name));
            ReadError::rule(&whole.into_vec(), rule)
        };
        let name = std::str::from_utf8(name).map_err(|_| refused(Rule::PathUtf8))?;
        if self.links == Links::Refused {
            check_path(name).map_err(refused)?;
        }
        Ok(name.to_owned())
    }
}

fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}
