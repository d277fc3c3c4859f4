//! New files whose writer was killed before they had their name.
//!
//! The name tells the writer's process, and the writer keeps a lock on the file. What is removed
//! has the name of a dead process and no lock: the number alone may be that of a process in
//! another container, which shares the folder and not the numbers.

use std::ffi::OsStr;
use std::path::Path;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};

/// How many entries of a folder are looked at: this is tidying, and somebody waits for it.
const ENTRIES: usize = 4096;
/// How many files are removed at once.
const FILES: usize = 64;

/// Returns what this process adds to the name of a file that it has not finished.
pub(super) fn ending(number: u64) -> String {
    format!(".{}-{number}.new", std::process::id())
}

/// Removes from a folder what writers that were killed left there. Whatever stands in the way of
/// that is no error, since nothing depends on it.
pub(crate) fn sweep(folder: &Path) {
    // A link would lead the sweep to another place.
    if !fs_err::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
        return;
    }
    let Ok(entries) = fs_err::read_dir(folder) else {
        return;
    };
    entries
        .take(ENTRIES)
        .filter_map(Result::ok)
        .filter(|entry| writer(&entry.file_name()).is_some_and(is_dead))
        .take(FILES)
        .for_each(|entry| remove(&entry.path()).unwrap_or_default());
}

/// Returns the process that a name of exactly our form tells of.
fn writer(name: &OsStr) -> Option<Pid> {
    let (whole, number) = name.to_str()?.strip_suffix(".new")?.rsplit_once('-')?;
    let (base, pid) = whole.rsplit_once('.')?;
    let is_number = |text: &str| text == "0" || !text.starts_with('0') && digits(text);
    let ours = !base.is_empty() && is_number(number) && is_number(pid);
    ours.then(|| pid.parse().ok().and_then(Pid::from_raw))?
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Tells whether there is no process of that number.
pub(crate) fn is_dead(pid: Pid) -> bool {
    test_kill_process(pid) == Err(Errno::SRCH)
}

fn remove(path: &Path) -> Option<()> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty()).ok()?;
    let found = fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !is_file || found.st_uid != geteuid().as_raw() {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    fs_err::remove_file(path).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// No process has it: it is above the highest that the system gives.
    const NOBODY: i32 = i32::MAX - 1;

    #[test]
    fn only_what_the_dead_left_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let own = std::process::id();
        let gone = [
            format!("receipt_x.yaml.{NOBODY}-0.new"),
            format!("ab.json.{NOBODY}-17.new"),
        ];
        let stay = [
            format!("receipt_x.yaml.{own}-0.new"),
            format!("locked.yaml.{NOBODY}-0.new"),
            format!(".{NOBODY}-0.new"),
            format!("x.{NOBODY}-0.new.yaml"),
            format!("x.{NOBODY}-00.new"),
            format!("x.0{NOBODY}-0.new"),
            format!("x.+{NOBODY}-0.new"),
            format!("x.{NOBODY}-.new"),
            "x.0-0.new".to_owned(),
            "x.99999999999999999999-0.new".to_owned(),
            "x.new".to_owned(),
            "receipt.yaml".to_owned(),
        ];
        for name in gone.iter().chain(&stay) {
            fs_err::write(path(name), "part").unwrap();
        }
        let locked = fs_err::File::open(path(&stay[1])).unwrap();
        flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
        symlink("receipt.yaml", path(&format!("link.{NOBODY}-0.new"))).unwrap();
        fs_err::create_dir(path(&format!("folder.{NOBODY}-0.new"))).unwrap();
        sweep(folder.path());
        for name in &gone {
            assert!(!path(name).exists(), "{name}");
        }
        for name in &stay {
            assert!(path(name).exists(), "{name}");
        }
        assert!(path(&format!("link.{NOBODY}-0.new")).is_symlink());
        assert!(path(&format!("folder.{NOBODY}-0.new")).is_dir());
    }

    #[test]
    fn what_is_being_written_is_known_and_spared() {
        let name = format!("a.yaml{}", ending(3));
        let pid = writer(OsStr::new(&name)).unwrap();
        assert_eq!(pid, rustix::process::getpid());
        assert!(!is_dead(pid));
    }

    #[test]
    fn a_folder_that_is_absent_is_no_matter_and_a_link_leads_nowhere() {
        sweep(Path::new("/no/such/folder"));
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        let file = real.join(format!("a.json.{NOBODY}-0.new"));
        fs_err::create_dir(&real).unwrap();
        fs_err::write(&file, "part").unwrap();
        symlink("real", folder.path().join("link")).unwrap();
        sweep(&folder.path().join("link"));
        assert!(file.exists());
        sweep(&real);
        assert!(!file.exists());
    }
}
