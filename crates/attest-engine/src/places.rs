//! What a run is asked to write must not be what it hashes, nor its own pipeline file.
//!
//! A receipt in a declared output would replace what a step made; state in a declared folder is
//! hashed with it and changes while steps run, and no later look finds the same hash.

use std::path::{Component, Path, PathBuf};

use crate::layout::{State, WRITTEN};

/// Says which two things would be one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// Two options name one file, or one of them a file in which the other lies.
    #[error("{one} and {other} name the same place: `{}`", path.display())]
    Same {
        /// The first option.
        one: &'static str,
        /// The second.
        other: &'static str,
        /// What the second names.
        path: PathBuf,
    },
    /// The pipeline file would be replaced.
    #[error("{option} names the pipeline file: `{}`", path.display())]
    Pipeline {
        /// The option.
        option: &'static str,
        /// What it names.
        path: PathBuf,
    },
    /// What is written would be among what a step reads or makes.
    #[error(
        "{option} names `{}`, which clashes with the declared {role} `{declared}` of step '{step}'",
        path.display()
    )]
    Declared {
        /// The option.
        option: &'static str,
        /// What it names.
        path: PathBuf,
        /// Input or output.
        role: &'static str,
        /// As it was declared.
        declared: String,
        /// The step.
        step: String,
    },
    /// State would be hashed with what a step reads or makes.
    #[error(
        "the state folder `{}` lies in the declared {role} `{declared}` of step '{step}', which \
         would be hashed with what attest itself writes there",
        folder.display()
    )]
    State {
        /// The folder.
        folder: PathBuf,
        /// Input or output.
        role: &'static str,
        /// As it was declared.
        declared: String,
        /// The step.
        step: String,
    },
}

/// A path that a step declares.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'a> {
    /// The step.
    pub step: &'a str,
    /// Input or output.
    pub role: &'static str,
    /// The path, below the workspace.
    pub path: &'a str,
}

/// What a run is asked to write, and what it must not write to.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    /// The workspace, and where its state is kept.
    pub state: &'a State,
    /// Files that are written, by the names of their options.
    pub files: Vec<(&'static str, &'a Path)>,
    /// The pipeline file.
    pub pipeline: Option<&'a Path>,
    /// What all steps declare.
    pub declared: Vec<Declared<'a>>,
}

impl Places<'_> {
    /// Refuses what would be written over or into something else of the run. Links and `..` are
    /// seen through; nothing has to exist.
    ///
    /// # Errors
    /// The first two things that are one.
    pub fn check(&self) -> Result<(), PlaceError> {
        let files: Vec<_> = self.files.iter().map(|(_, path)| resolved(path)).collect();
        self.check_options(&files)?;
        let workspace = resolved(self.state.workspace());
        let state = Written::of(self.state);
        for declared in &self.declared {
            let Some(plain) = plain(declared.path) else {
                continue;
            };
            let literal = workspace.join(plain);
            if let Some(folder) = state.inside(&literal) {
                return Err(PlaceError::State {
                    folder: folder.to_owned(),
                    role: declared.role,
                    declared: bounded::text::visible(declared.path),
                    step: bounded::text::visible(declared.step),
                });
            }
            if files.is_empty() {
                continue;
            }
            // A step may write through a link in its place.
            let through = resolved(&literal);
            for (file, (option, path)) in files.iter().zip(&self.files) {
                if overlap(file, &literal) || overlap(file, &through) {
                    return Err(PlaceError::Declared {
                        option,
                        path: (*path).to_owned(),
                        role: declared.role,
                        declared: bounded::text::visible(declared.path),
                        step: bounded::text::visible(declared.step),
                    });
                }
            }
        }
        Ok(())
    }

    fn check_options(&self, files: &[PathBuf]) -> Result<(), PlaceError> {
        let state = resolved(self.state.folder());
        let pipeline = self.pipeline.map(resolved);
        for (place, (file, (option, path))) in files.iter().zip(&self.files).enumerate() {
            let path = || (*path).to_owned();
            if pipeline.as_ref() == Some(file) {
                return Err(PlaceError::Pipeline {
                    option,
                    path: path(),
                });
            }
            let others = files.iter().zip(&self.files).take(place);
            let same = others
                .filter(|(other, _)| overlap(other, file))
                .map(|(_, (option, _))| *option)
                .chain(state.starts_with(file).then_some("the state folder"))
                .next();
            if let Some(other) = same {
                return Err(PlaceError::Same {
                    one: option,
                    other,
                    path: path(),
                });
            }
        }
        Ok(())
    }
}

/// Returns the folder that attest writes to in a declared path, if one is there.
#[must_use]
pub fn state_in(state: &State, declared: &str) -> Option<PathBuf> {
    let literal = resolved(state.workspace()).join(plain(declared)?);
    Written::of(state).inside(&literal).map(Path::to_owned)
}

/// The folders that runs write to, as they are named and as they are found.
struct Written(Vec<(PathBuf, PathBuf)>);

impl Written {
    fn of(state: &State) -> Self {
        let named = state.folder();
        let found = resolved(named);
        let parts = WRITTEN.map(|name| (named.join(name), found.join(name)));
        let whole = (named.to_owned(), found);
        Self([whole].into_iter().chain(parts).collect())
    }

    fn inside(&self, folder: &Path) -> Option<&Path> {
        let mut parts = self.0.iter();
        let inside = parts.find(|(_, found)| found.starts_with(folder))?;
        Some(&inside.0)
    }
}

/// Tells whether one of two paths is the other or lies in it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The declared path below the workspace; none if it is one that is refused anyway.
fn plain(declared: &str) -> Option<PathBuf> {
    if declared.is_empty() {
        return None;
    }
    let mut plain = PathBuf::new();
    for part in Path::new(declared).components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(plain)
}

/// The path without links and dots, as far as it exists; the rest of it as it is written.
fn resolved(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    if let Ok(found) = fs_err::canonicalize(path) {
        return found;
    }
    let Some(parent) = path.parent() else {
        return path.to_owned();
    };
    let mut found = resolved(parent);
    match path.file_name() {
        Some(name) => found.push(name),
        None => {
            found.pop();
        }
    }
    found
}

#[cfg(test)]
mod tests;
