//! Reads where HEAD of a plugin's own `.git` points, byte by byte: running git there would run
//! whatever the plugin configured.

use std::path::Path;

use bounded::{BranchName, GitSha, text::visible_bytes};

use crate::WorkspaceFault;

const REF_BYTES: u64 = 4096;
const PACKED_BYTES: u64 = 16 << 20;
/// How many symbolic refs may lead from HEAD to a commit, as in git.
const STEPS: usize = 5;

/// Proves that `<workspace>/.git` is a folder whose HEAD is at `base`, directly or through a
/// local branch. Blocks.
pub(crate) fn check(workspace: &Path, base: &GitSha) -> Result<(), WorkspaceFault> {
    let dir = workspace.join(".git");
    if !is_real(&dir, |found| found.is_dir())
        || !is_real(&dir.join("HEAD"), |found| found.is_file())
    {
        return Err(WorkspaceFault::GitDirReplaced);
    }
    let Ok(mut content) = safe_fs::read_bounded(&dir.join("HEAD"), REF_BYTES) else {
        return Err(WorkspaceFault::GitDirReplaced);
    };
    for _ in 0..STEPS {
        let text = content.trim_ascii();
        if text == base.as_str().as_bytes() {
            return Ok(());
        }
        let Some(next) = branch(text).and_then(|branch| read_branch(&dir, &branch)) else {
            break;
        };
        content = next;
    }
    Err(WorkspaceFault::HeadMoved {
        base: *base,
        found: visible_bytes(content.trim_ascii()),
    })
}

fn branch(head: &[u8]) -> Option<BranchName> {
    let name = head
        .strip_prefix(b"ref:")?
        .trim_ascii()
        .strip_prefix(b"refs/heads/")?;
    BranchName::new(std::str::from_utf8(name).ok()?).ok()
}

/// Reads a branch from its own file, else from the packed refs.
fn read_branch(dir: &Path, branch: &BranchName) -> Option<Vec<u8>> {
    let name = format!("refs/heads/{branch}");
    if let Ok(content) = safe_fs::read_bounded(&dir.join(&name), REF_BYTES) {
        return Some(content);
    }
    let packed = safe_fs::read_bounded(&dir.join("packed-refs"), PACKED_BYTES).ok()?;
    packed
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split_at_checked(40))
        .find(|(_, rest)| rest.strip_prefix(b" ") == Some(name.as_bytes()))
        .map(|(commit, _)| commit.to_vec())
}

fn is_real(path: &Path, judge: impl FnOnce(&std::fs::Metadata) -> bool) -> bool {
    fs_err::symlink_metadata(path).is_ok_and(|found| judge(&found))
}
