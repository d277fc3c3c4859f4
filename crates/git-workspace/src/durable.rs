//! Brings the objects of a candidate to the disk before its ref says that they are there.

use std::{io, path::Path};

use crate::index::ObjectName;

/// How many files are synchronised at once: a file system commits what comes together together.
const AT_ONCE: usize = 8;

/// Synchronises those of the objects that are files of their own. Objects in packs are on the
/// disk already, as git synchronises those itself. Blocks.
pub(crate) fn sync_objects(objects: &Path, names: &[ObjectName]) -> io::Result<()> {
    let share = names.len().div_ceil(AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .chunks(share)
            .map(|names| scope.spawn(|| names.iter().try_for_each(|name| sync(objects, name))))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread died")))
        })
    })
}

fn sync(objects: &Path, name: &ObjectName) -> io::Result<()> {
    let digits: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    let (folder, file) = digits.split_at(2);
    match fs_err::File::open(objects.join(folder).join(file)) {
        Ok(file) => file.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_packs_are_passed_over_and_errors_are_told() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("07")).unwrap();
        let names: Vec<ObjectName> = (0..20).map(|number| [number; 20]).collect();
        let loose = dir.path().join("07").join("07".repeat(19));
        fs_err::write(&loose, "object").unwrap();
        sync_objects(dir.path(), &names).unwrap();
        sync_objects(dir.path(), &[]).unwrap();

        fs_err::remove_file(&loose).unwrap();
        std::os::unix::fs::symlink(&loose, &loose).unwrap();
        assert!(sync_objects(dir.path(), &names).is_err());
    }
}
