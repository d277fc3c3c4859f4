//! Brings the objects of a candidate from the attempt's own git directory into the repository.
//!
//! Until there is a candidate, all that git writes for an attempt stays in its private directory:
//! a plugin's gigabytes, what a killed git left half written, the tree of a job whose checks failed.
//! The repository gets whole objects only, on the disk before a ref says that they are there.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

/// How many files are synchronised at once: a file system commits what comes together together.
const AT_ONCE: usize = 8;

/// Gives everything that `from` has to `to`, two folders of objects. `copied` makes files that
/// belong to whom the folder says, for a repository that several users share; otherwise the same
/// file gets a second name where that is possible. Blocks.
pub(crate) fn release(from: &Path, to: &Path, copied: bool) -> io::Result<()> {
    let found = objects(from)?;
    // Git looks for a pack by its index, so that one comes last.
    let (indexes, others): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|path| path.extension() == Some(OsStr::new("idx")));
    let bring = |path: &PathBuf| bring(&from.join(path), &to.join(path), copied);
    let share = others.len().div_ceil(AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = others
            .chunks(share)
            .map(|paths| scope.spawn(|| paths.iter().try_for_each(bring)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread died")))
        })
    })?;
    indexes.iter().try_for_each(bring)
}

/// The paths of all whole objects and packs; what a killed git left half written is none.
fn objects(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in fs_err::read_dir(root)? {
        let folder = folder?.file_name();
        let is_object: fn(&[u8]) -> bool = match folder.as_encoded_bytes() {
            b"pack" => |name| name.starts_with(b"pack-"),
            name if is_hex(name, 2) => |name| is_hex(name, 38),
            _ => continue,
        };
        for file in fs_err::read_dir(root.join(&folder))? {
            let name = file?.file_name();
            if is_object(name.as_encoded_bytes()) {
                found.push(Path::new(&folder).join(name));
            }
        }
    }
    Ok(found)
}

fn is_hex(name: &[u8], digits: usize) -> bool {
    name.len() == digits && name.iter().all(u8::is_ascii_hexdigit)
}

/// Brings one file, which the repository may have already: the name stands for the content.
fn bring(from: &Path, to: &Path, copied: bool) -> io::Result<()> {
    make_folder(from, to)?;
    let linked = if copied {
        Err(io::ErrorKind::Unsupported.into())
    } else {
        fs_err::hard_link(from, to)
    };
    match linked {
        Ok(()) => fs_err::File::open(to)?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Another file system, or one without links.
        Err(_) => copy(from, to),
    }
}

/// Makes the folder of a file as accessible as git has made the one that the file comes from: it
/// knows what a shared repository asks for.
fn make_folder(from: &Path, to: &Path) -> io::Result<()> {
    let (Some(from), Some(to)) = (from.parent(), to.parent()) else {
        return Ok(());
    };
    match fs_err::create_dir(to) {
        Ok(()) => fs_err::set_permissions(to, fs_err::metadata(from)?.permissions()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Copies under a name that git's housekeeping removes, should this end half-way.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if fs_err::symlink_metadata(to).is_ok() {
        return Ok(());
    }
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let part = to.with_file_name(format!("tmp_{name}_{}", std::process::id()));
    let copied = write(from, &part).and_then(|()| fs_err::rename(&part, to));
    if copied.is_err() {
        fs_err::remove_file(&part).ok();
    }
    copied
}

fn write(from: &Path, part: &Path) -> io::Result<()> {
    let mut source = fs_err::File::open(from)?;
    let mut target = fs_err::File::create(part)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(source.metadata()?.permissions())?;
    target.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Two folders of objects, one with a loose object, a pack and what a killed git left.
    fn lab() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for folder in ["from/07", "from/info", "from/pack", "to/pack"] {
            fs_err::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs_err::set_permissions(from.join("07"), PermissionsExt::from_mode(0o2770)).unwrap();
        for name in [
            &format!("07/{}", "07".repeat(19)),
            "07/tmp_obj_Ab3xyz",
            "info/alternates",
            "pack/pack-1.idx",
            "pack/pack-1.pack",
            "pack/tmp_pack_Ab3xyz",
        ] {
            fs_err::write(from.join(name), name).unwrap();
        }
        (dir, from, to)
    }

    #[test]
    fn whole_objects_come_over_and_nothing_else_does() {
        for copied in [false, true] {
            let (_dir, from, to) = lab();
            release(&from, &to, copied).unwrap();
            let mut found = objects(&to).unwrap();
            found.sort();
            let loose = PathBuf::from(format!("07/{}", "07".repeat(19)));
            let packs = ["pack/pack-1.idx", "pack/pack-1.pack"].map(PathBuf::from);
            assert_eq!(found, [&[loose][..], &packs[..]].concat());
            for folder in ["07", "pack"] {
                let count = fs_err::read_dir(to.join(folder)).unwrap().count();
                assert_eq!(count, if folder == "07" { 1 } else { 2 });
            }
            let mode = fs_err::metadata(to.join("07"))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o7777, 0o2770);
            // Once more, as by another attempt with the same content.
            release(&from, &to, copied).unwrap();
        }
    }

    #[test]
    fn an_object_that_is_there_is_left_alone() {
        for copied in [false, true] {
            let (_dir, from, to) = lab();
            let name = format!("07/{}", "07".repeat(19));
            fs_err::create_dir(to.join("07")).unwrap();
            fs_err::write(to.join(&name), "there").unwrap();
            release(&from, &to, copied).unwrap();
            assert_eq!(fs_err::read(to.join(&name)).unwrap(), b"there");
        }
    }

    #[test]
    fn a_repository_that_cannot_be_written_is_an_error() {
        let (_dir, from, to) = lab();
        fs_err::remove_dir_all(&to).unwrap();
        fs_err::write(&to, "a file").unwrap();
        for copied in [false, true] {
            assert!(release(&from, &to, copied).is_err());
        }
    }
}
