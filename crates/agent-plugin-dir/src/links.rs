//! Where a path leads once every link in it is followed, judged without opening anything.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use agent_plugin::Containment;
use rustix::fs::{AtFlags, CWD, FileType, readlinkat, statat};
use rustix::io::Errno;

use crate::tree::{Root, file_type};

/// As many links as the system follows for one path.
const LINKS: usize = 40;

/// More components than an honest path has; bounds the work for one link.
const STEPS: usize = 512;

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// To something below the root, by its real path relative to it.
    Inside(PathBuf),
    /// Out of the package.
    Outside {
        /// A directory is there.
        directory: bool,
    },
    /// To nothing, at a place inside.
    Nowhere,
    /// Back to itself, or through more than is followed.
    Round,
}

enum Part {
    Top,
    Up,
    Name(OsString),
}

/// A path on its way; `at` has no link in it.
struct Way<'a> {
    root: &'a Path,
    at: PathBuf,
    at_directory: bool,
    /// What is still to go, the next part last.
    parts: Vec<Part>,
}

impl Root {
    /// Follows a path from a real directory below the root.
    pub(crate) fn resolve(&self, from: &Path, path: &OsStr) -> io::Result<Leads> {
        let mut way = Way {
            root: &self.path,
            at: self.path.join(from),
            at_directory: true,
            parts: Vec::new(),
        };
        way.push(Path::new(path));
        way.go()
    }
}

impl Containment for Root {
    fn is_inside(&self, path: &str) -> bool {
        let led = self.resolve(Path::new(""), OsStr::new(path));
        matches!(led, Ok(Leads::Inside(_) | Leads::Nowhere))
    }
}

impl Way<'_> {
    fn push(&mut self, path: &Path) {
        let parts = path
            .components()
            .rev()
            .filter_map(|component| match component {
                Component::RootDir | Component::Prefix(_) => Some(Part::Top),
                Component::ParentDir => Some(Part::Up),
                Component::Normal(name) => Some(Part::Name(name.to_owned())),
                Component::CurDir => None,
            });
        self.parts.extend(parts);
    }

    fn go(mut self) -> io::Result<Leads> {
        let mut links = 0;
        for _ in 0..STEPS {
            let Some(part) = self.parts.pop() else {
                return Ok(self.arrived());
            };
            let name = match part {
                Part::Top => {
                    self.at = PathBuf::from("/");
                    self.at_directory = true;
                    continue;
                }
                _ if !self.at_directory => return Ok(self.lost(part)),
                Part::Up => {
                    self.at.pop();
                    continue;
                }
                Part::Name(name) => name,
            };
            let next = self.at.join(&name);
            match statat(CWD, &next, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if file_type(&stat) == FileType::Symlink => {
                    links += 1;
                    if links > LINKS {
                        return Ok(Leads::Round);
                    }
                    if self.is_of_a_process() {
                        return Ok(Leads::Outside { directory: false });
                    }
                    let target = readlinkat(CWD, &next, Vec::new())?;
                    self.push(Path::new(&OsString::from_vec(target.into_bytes())));
                }
                Ok(stat) => {
                    self.at = next;
                    self.at_directory = file_type(&stat) == FileType::Directory;
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => {
                    return Ok(self.lost(Part::Name(name)));
                }
                // what is beyond a closed door outside is outside
                Err(errno) => match self.lost(Part::Name(name)) {
                    outside @ Leads::Outside { .. } => return Ok(outside),
                    Leads::Inside(_) | Leads::Nowhere | Leads::Round => return Err(errno.into()),
                },
            }
        }
        Ok(Leads::Round)
    }

    /// Links that the system makes up for each process lead elsewhere for everybody who looks.
    fn is_of_a_process(&self) -> bool {
        self.at.starts_with("/proc") && !self.root.starts_with("/proc")
    }

    fn arrived(self) -> Leads {
        match self.at.strip_prefix(self.root) {
            Ok(below) => Leads::Inside(below.to_owned()),
            Err(_) => Leads::Outside {
                directory: self.at_directory,
            },
        }
    }

    /// What does not exist is judged by what exists of it, and by its text from there.
    fn lost(&mut self, part: Part) -> Leads {
        self.parts.push(part);
        while let Some(part) = self.parts.pop() {
            match part {
                Part::Top => self.at = PathBuf::from("/"),
                Part::Up => {
                    self.at.pop();
                }
                Part::Name(name) => self.at.push(name),
            }
        }
        if self.at.starts_with(self.root) {
            Leads::Nowhere
        } else {
            Leads::Outside { directory: false }
        }
    }
}
