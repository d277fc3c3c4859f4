//! Reads what HEAD of the workspace is, byte by byte. Running git there would run whatever its
//! configuration names.

use std::io;
use std::path::{Path, PathBuf};

use bounded::{BranchName, text::visible_bytes};

const REF_BYTES: u64 = 4_096;
const PACKED_BYTES: u64 = 16 << 20;

/// How many symbolic refs may lead from HEAD to a commit, as in git.
const STEPS: usize = 5;

/// Where HEAD is. Two of them are equal only if nobody committed, switched or moved a branch.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Head {
    git_dir: PathBuf,
    names: Vec<u8>,
    /// Absent on a branch without a commit.
    commit: Option<Vec<u8>>,
}

/// Why HEAD is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeadError {
    #[error("cannot find its git directory")]
    GitDir(#[source] io::Error),
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: safe_fs::SafeFsError,
    },
    #[error("`{content}` is neither a commit nor a local branch")]
    Unknown { content: String },
}

impl Head {
    /// Reads HEAD of a clone or of a linked work tree.
    pub(super) fn read(workspace: &Path) -> Result<Self, HeadError> {
        let git_dir = git_dir(workspace)?;
        let common = match read(&git_dir.join("commondir"))? {
            Some(path) => git_dir.join(as_path(&path)),
            None => git_dir.clone(),
        };
        let path = git_dir.join("HEAD");
        let names = read(&path)?.ok_or_else(|| HeadError::Unknown {
            content: String::new(),
        })?;
        Ok(Self {
            commit: resolve(&common, names.clone())?,
            git_dir,
            names,
        })
    }

    /// Tells what HEAD names and where that is, on one line.
    pub(super) fn describe(&self) -> String {
        let names = visible_bytes(&self.names);
        match &self.commit {
            Some(commit) if *commit != self.names => {
                format!("{names} at {}", visible_bytes(commit))
            }
            _ => names,
        }
    }
}

fn git_dir(workspace: &Path) -> Result<PathBuf, HeadError> {
    let dot_git = workspace.join(".git");
    let found = fs_err::metadata(&dot_git).map_err(HeadError::GitDir)?;
    let dir = if found.is_file() {
        let content = read(&dot_git)?.unwrap_or_default();
        let Some(path) = content.strip_prefix(b"gitdir:") else {
            return Err(HeadError::Unknown {
                content: visible_bytes(&content),
            });
        };
        workspace.join(as_path(path.trim_ascii()))
    } else {
        dot_git
    };
    fs_err::canonicalize(dir).map_err(HeadError::GitDir)
}

/// Follows a ref to a commit.
fn resolve(common: &Path, mut content: Vec<u8>) -> Result<Option<Vec<u8>>, HeadError> {
    for _ in 0..STEPS {
        if is_commit(&content) {
            return Ok(Some(content));
        }
        let Some(branch) = branch(&content) else {
            break;
        };
        let Some(next) = read_branch(common, &branch)? else {
            return Ok(None);
        };
        content = next;
    }
    Err(HeadError::Unknown {
        content: visible_bytes(&content),
    })
}

fn is_commit(content: &[u8]) -> bool {
    [40, 64].contains(&content.len()) && content.iter().all(u8::is_ascii_hexdigit)
}

fn branch(content: &[u8]) -> Option<BranchName> {
    let name = content
        .strip_prefix(b"ref:")?
        .trim_ascii()
        .strip_prefix(b"refs/heads/")?;
    BranchName::new(str::from_utf8(name).ok()?).ok()
}

/// Reads a branch from its own file, else from the packed refs.
fn read_branch(common: &Path, branch: &BranchName) -> Result<Option<Vec<u8>>, HeadError> {
    let name = format!("refs/heads/{branch}");
    if let Some(content) = read(&common.join(&name))? {
        return Ok(Some(content));
    }
    let packed = read_up_to(&common.join("packed-refs"), PACKED_BYTES)?.unwrap_or_default();
    Ok(packed.split(|byte| *byte == b'\n').find_map(|line| {
        let commit = line.strip_suffix(name.as_bytes())?.strip_suffix(b" ")?;
        is_commit(commit).then(|| commit.to_vec())
    }))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, HeadError> {
    let content = read_up_to(path, REF_BYTES)?;
    Ok(content.map(|bytes| bytes.trim_ascii().to_vec()))
}

/// Reads a file; one that is not there is `None`.
fn read_up_to(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, HeadError> {
    match safe_fs::read_bounded(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        // A folder of branches has the name of a packed branch until git removes it.
        Err(safe_fs::SafeFsError::NotARegularFile { .. }) if path.is_dir() => Ok(None),
        Err(source) => Err(HeadError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(head: &str) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            tree.write(".git/HEAD", head);
            tree
        }

        fn write(&self, name: &str, content: &str) {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }

        fn head(&self) -> Head {
            Head::read(self.0.path()).unwrap()
        }
    }

    #[test]
    fn a_commit_on_the_branch_changes_it() {
        let tree = Tree::new("ref: refs/heads/main\n");
        let unborn = tree.head();
        assert_eq!(unborn.commit, None);
        tree.write(".git/refs/heads/main", &format!("{ONE}\n"));
        let first = tree.head();
        assert_eq!(first.describe(), format!("ref: refs/heads/main at {ONE}"));
        assert_ne!(first, unborn);
        assert_eq!(first, tree.head());
        tree.write(".git/refs/heads/main", &format!("{TWO}\n"));
        assert_ne!(first, tree.head());
    }

    #[test]
    fn packing_the_refs_changes_nothing() {
        let tree = Tree::new("ref: refs/heads/a/b\n");
        tree.write(".git/refs/heads/a/b", &format!("{ONE}\n"));
        let loose = tree.head();
        std::fs::remove_file(tree.0.path().join(".git/refs/heads/a/b")).unwrap();
        tree.write(
            ".git/packed-refs",
            &format!("# pack-refs with: peeled\n{TWO} refs/heads/x/refs/heads/a/b\n{ONE} refs/heads/a/b\n^{TWO}\n"),
        );
        assert_eq!(tree.head(), loose);
    }

    #[test]
    fn switching_to_another_branch_at_the_same_commit_changes_it() {
        let tree = Tree::new("ref: refs/heads/main\n");
        tree.write(".git/refs/heads/main", ONE);
        tree.write(".git/refs/heads/other", ONE);
        let before = tree.head();
        tree.write(".git/HEAD", "ref: refs/heads/other\n");
        assert_ne!(tree.head(), before);
        tree.write(".git/HEAD", &format!("{ONE}\n"));
        assert_ne!(tree.head(), before);
        assert_eq!(tree.head().describe(), ONE);
    }

    #[test]
    fn a_linked_work_tree_has_its_own_head_and_shared_branches() {
        let tree = Tree::new("ref: refs/heads/main\n");
        tree.write(".git/refs/heads/task", ONE);
        tree.write(".git/worktrees/task/HEAD", "ref: refs/heads/task\n");
        tree.write(".git/worktrees/task/commondir", "../..\n");
        let workspace = tree.0.path().join("task");
        tree.write("task/.git", "gitdir: ../.git/worktrees/task\n");
        let before = Head::read(&workspace).unwrap();
        assert_eq!(before.commit.as_deref(), Some(ONE.as_bytes()));
        tree.write(".git/refs/heads/task", TWO);
        assert_ne!(Head::read(&workspace).unwrap(), before);
    }

    #[test]
    fn what_is_no_repository_is_an_error() {
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(
            Head::read(empty.path()),
            Err(HeadError::GitDir(_))
        ));
        for head in [
            "",
            "ref: refs/heads/../../etc\n",
            "ref: refs/tags/x\n",
            "11\n",
        ] {
            let tree = Tree::new(head);
            assert!(Head::read(tree.0.path()).is_err(), "{head}");
        }
        let turning = Tree::new("ref: refs/heads/a\n");
        turning.write(".git/refs/heads/a", "ref: refs/heads/a\n");
        assert!(Head::read(turning.0.path()).is_err());
    }
}
