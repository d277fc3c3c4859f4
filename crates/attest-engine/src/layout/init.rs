//! `attest init`: makes what is absent, and leaves alone what is there.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{FOLDER, LayoutError, check_folder, create_whole, make_folder};

/// The pipeline that a new workspace starts with.
pub const STARTER: &str = "\
# A pipeline of attest: `attest run` runs its steps and writes a receipt.
version: \"1.0\"
name: starter
steps:
  hello:
    run: echo hello from attest
    cache: false
";

/// The folders, in the order in which they are told.
const FOLDERS: [&str; 3] = [".attest/receipts", ".attest/cache", ".attest/objects"];

/// What never belongs into a commit: private keys, and what is made anew by runs.
const IGNORED: [&str; 5] = [
    ".attest/keys/",
    ".attest/receipts/",
    ".attest/cache/",
    ".attest/causal_ledger/",
    ".attest/objects/",
];

const PIPELINE: &str = "attest.yaml";
const IGNORE_FILE: &str = ".gitignore";

/// A longer `.gitignore` is none that a person wrote.
const IGNORE_BYTES: u64 = 4 << 20;

/// What was made and what was there, each in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Init {
    /// What was absent.
    pub created: Vec<String>,
    /// What was left as it is.
    pub present: Vec<String>,
}

impl Init {
    /// Returns the lines that tell it: what was made, then what was there.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let created = self.created.iter().map(|item| format!("created: {item}"));
        let present = self.present.iter();
        created.chain(present.map(|item| format!("already present: {item}")))
    }

    fn note(&mut self, made: bool, what: impl Into<String>) {
        if made {
            self.created.push(what.into());
        } else {
            self.present.push(what.into());
        }
    }
}

/// Makes a workspace ready for attest. What stands in the way is found before anything is made.
///
/// # Errors
/// A link or something else in the place of a folder or file, or the operating system's refusal.
pub fn init(workspace: &Path) -> Result<Init, LayoutError> {
    check_folder(&workspace.join(FOLDER))?;
    for folder in FOLDERS {
        check_folder(&workspace.join(folder))?;
    }
    let pipeline = check_pipeline(&workspace.join(PIPELINE))?;
    let ignored = read_ignored(&workspace.join(IGNORE_FILE))?;

    let mut told = Init::default();
    make_folder(&workspace.join(FOLDER))?;
    for folder in FOLDERS {
        told.note(make_folder(&workspace.join(folder))?, format!("{folder}/"));
    }
    let made = !pipeline && create_whole(&workspace.join(PIPELINE), STARTER.as_bytes())?;
    told.note(made, PIPELINE);
    ignore(&workspace.join(IGNORE_FILE), ignored, &mut told)?;
    Ok(told)
}

/// Tells whether there is a pipeline file. A link to one is the user's affair.
fn check_pipeline(path: &Path) -> Result<bool, LayoutError> {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Err(LayoutError::NotAFile { path: path.into() }),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(LayoutError::Io {
            action: "look for the pipeline",
            source,
        }),
    }
}

/// The bytes and mode of the ignore file; none if it is absent.
fn read_ignored(path: &Path) -> Result<Option<(Vec<u8>, u32)>, LayoutError> {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(Some((
            safe_fs::read_bounded(path, IGNORE_BYTES)?,
            found.permissions().mode(),
        ))),
        Ok(found) if found.is_symlink() => Err(LayoutError::Link { path: path.into() }),
        Ok(_) => Err(LayoutError::NotAFile { path: path.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LayoutError::Io {
            action: "look for the ignore file",
            source,
        }),
    }
}

fn ignore(path: &Path, found: Option<(Vec<u8>, u32)>, told: &mut Init) -> Result<(), LayoutError> {
    let (mut bytes, mode) = found.unwrap_or((Vec::new(), 0o644));
    let mut added = false;
    for entry in IGNORED {
        let there = bytes
            .split(|byte| *byte == b'\n')
            .any(|line| line.trim_ascii() == entry.as_bytes());
        if !there {
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(entry.as_bytes());
            bytes.push(b'\n');
            added = true;
        }
        told.note(!there, format!("{IGNORE_FILE} ({entry} entry)"));
    }
    if added {
        safe_fs::write_atomic(path, &bytes, mode)?;
    }
    Ok(())
}
