//! Programs held in both ways: what runs is what was hashed. The decision between the two ways is
//! put in by the tests, since most users' temporary folders allow one of them only.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use process_tree::{Capture, Spec, capture_direct};
use rustix::fs::{SeekFrom, ftruncate, seek};
use rustix::io::{FdFlags, fcntl_getfd, write};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::declare::Command;
use crate::resolve::{SearchPath, resolve};

const IN_PLACE: Surroundings = surroundings(|_, _, _| Held::InPlace);
const COPY: Surroundings = surroundings(|_, _, _| Held::Copy);

const fn surroundings(look: fn(&OwnedFd, &Path, &Path) -> Held) -> Surroundings {
    Surroundings {
        proc: PathBuf::new(),
        limit: MAX_BYTES,
        look,
        hashed: |_| {},
    }
}

fn around(template: &Surroundings) -> Surroundings {
    Surroundings {
        proc: PathBuf::from("/proc"),
        ..*template
    }
}

struct Bed(tempfile::TempDir);

impl Bed {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs_err::write(&path, bytes).unwrap();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn open(&self, name: &str, template: &Surroundings) -> Result<Executable, ExecutableError> {
        open(&self.path(name), &around(template))
    }
}

const FIRST: &[u8] = b"#!/bin/sh\necho first\n";
const SECOND: &[u8] = b"#!/bin/sh\necho second\n";

/// A compiled program that says `first`, and one that does not.
fn binaries() -> (Vec<u8>, Vec<u8>) {
    let search = SearchPath::new("/bin:/usr/bin:/run/current-system/sw/bin");
    let read = |name: &str| {
        let path = resolve(&Command::Bare(name.to_owned()), &search).unwrap();
        fs_err::read(path).unwrap()
    };
    (read("sh"), read("cat"))
}

async fn says(held: &Executable) -> String {
    let argv = [
        held.program().as_os_str(),
        "-c".as_ref(),
        "echo first".as_ref(),
    ];
    let limits = Capture::new(Duration::from_secs(60), 10_000);
    let ran = capture_direct(Spec::new(argv), limits, &CancellationToken::new()).await;
    let ran = ran.unwrap();
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

#[tokio::test]
async fn a_rename_after_the_hash_loses_in_both_ways() {
    let binaries = binaries();
    for template in [&IN_PLACE, &COPY] {
        for (first, second) in [(FIRST, SECOND), (&*binaries.0, &*binaries.1)] {
            let bed = Bed::new();
            bed.file("plugin", first);
            let held = bed.open("plugin", template).unwrap();
            let other = bed.file("other", second);
            fs_err::rename(other, bed.path("plugin")).unwrap();
            assert_eq!(held.digest(), Digest::of(first));
            assert_eq!(says(&held).await, "first");
            // Held again, and started again, it is the other one.
            assert_eq!(
                bed.open("plugin", template).unwrap().digest(),
                Digest::of(second)
            );
            assert_eq!(says(&held).await, "first");
        }
    }
}

#[tokio::test]
async fn a_link_that_is_turned_round_after_the_hash_loses_in_both_ways() {
    let binaries = binaries();
    for template in [&IN_PLACE, &COPY] {
        for (first, second) in [(FIRST, SECOND), (&*binaries.0, &*binaries.1)] {
            let bed = Bed::new();
            let real = bed.file("first", first);
            bed.file("second", second);
            symlink("first", bed.path("plugin")).unwrap();
            let held = bed.open("plugin", template).unwrap();
            fs_err::remove_file(bed.path("plugin")).unwrap();
            symlink("second", bed.path("plugin")).unwrap();
            assert_eq!(held.path(), real.canonicalize().unwrap());
            assert_eq!(says(&held).await, "first");
        }
    }
}

#[tokio::test]
async fn a_write_into_the_file_loses_to_a_copy() {
    let binaries = binaries();
    for (first, second) in [(FIRST, SECOND), (&*binaries.0, &*binaries.1)] {
        let bed = Bed::new();
        let path = bed.file("plugin", first);
        let held = bed.open("plugin", &COPY).unwrap();
        fs_err::write(&path, second).unwrap();
        assert_eq!(held.digest(), Digest::of(first));
        assert_eq!(says(&held).await, "first");
    }
}

/// Why a file that somebody could write is never left in place.
#[tokio::test]
async fn a_write_into_the_file_would_win_in_place() {
    let bed = Bed::new();
    let path = bed.file("plugin", FIRST);
    let held = bed.open("plugin", &IN_PLACE).unwrap();
    assert_eq!(held.held(), Held::InPlace);
    fs_err::write(&path, SECOND).unwrap();
    assert_eq!(says(&held).await, "second");
}

#[test]
fn a_file_that_changes_while_it_is_hashed_is_copied() {
    let mut template = surroundings(|_, _, _| Held::InPlace);
    template.hashed = |file| {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = openat(CWD, path, OFlags::WRONLY | OFlags::APPEND, Mode::empty()).unwrap();
        assert_eq!(write(file, b"# more\n"), Ok(7));
    };
    let bed = Bed::new();
    bed.file("plugin", FIRST);
    let held = bed.open("plugin", &template).unwrap();
    assert_eq!(held.held(), Held::Copy);
    assert_eq!(held.digest(), Digest::of([FIRST, b"# more\n"].concat()));
}

#[test]
fn a_copy_is_sealed_against_its_own_maker() {
    let bed = Bed::new();
    bed.file("plugin", FIRST);
    let held = bed.open("plugin", &COPY).unwrap();
    // A plain file could be written by anybody who gets hold of the descriptor, as root does here.
    let opened = openat(CWD, held.program(), OFlags::RDWR, Mode::empty());
    if let Ok(copy) = opened {
        assert_eq!(write(&copy, b"x"), Err(Errno::PERM));
        assert_eq!(ftruncate(&copy, 0), Err(Errno::PERM));
        assert_eq!(ftruncate(&copy, 1 << 20), Err(Errno::PERM));
        seek(&copy, SeekFrom::End(0)).unwrap();
        assert_eq!(write(&copy, b"x"), Err(Errno::PERM));
        assert_eq!(
            rustix::fs::fcntl_add_seals(&copy, rustix::fs::SealFlags::FUTURE_WRITE),
            Err(Errno::PERM)
        );
    } else {
        assert_eq!(opened.err(), Some(Errno::ACCESS));
    }
    assert_eq!(fs_err::read(held.program()).unwrap(), FIRST);
}

#[test]
fn no_descriptor_is_inherited() {
    let bed = Bed::new();
    bed.file("plugin", FIRST);
    for template in [&IN_PLACE, &COPY] {
        let held = bed.open("plugin", template).unwrap();
        let flags = fcntl_getfd(&held._descriptor).unwrap();
        assert!(flags.contains(FdFlags::CLOEXEC), "{:?}", held.held());
    }
}

#[test]
fn what_is_no_program_is_refused_and_never_blocks() {
    let bed = Bed::new();
    fs_err::create_dir(bed.path("folder")).unwrap();
    fs_err::write(bed.path("data"), "x").unwrap();
    symlink("nowhere", bed.path("dangling")).unwrap();
    symlink("loop", bed.path("loop")).unwrap();
    symlink("fifo", bed.path("to-fifo")).unwrap();
    let mode = Mode::from_raw_mode(0o755);
    rustix::fs::mknodat(CWD, bed.path("fifo"), FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bed.path("socket")).unwrap();
    symlink("/dev/zero", bed.path("device")).unwrap();
    for (name, reason) in [
        ("gone", "command not found"),
        ("data/x", "command not found"),
        ("dangling", "command not found"),
        ("loop", "command cannot be read"),
        ("folder", "command is a directory"),
        ("data", "command is not executable"),
        ("fifo", "command is not a regular file"),
        ("to-fifo", "command is not a regular file"),
        ("socket", "command is not a regular file"),
        ("device", "command is not a regular file"),
    ] {
        for template in [&IN_PLACE, &COPY] {
            let error = bed.open(name, template).unwrap_err();
            assert_eq!(error.reason(), reason, "{name}: {error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[test]
fn the_limit_holds_for_what_is_there_and_for_what_comes() {
    let bed = Bed::new();
    let path = bed.file("plugin", FIRST);
    let size = u64::try_from(FIRST.len()).unwrap();
    let with = |limit, look| {
        let template = surroundings(look);
        open(&path, &around(&Surroundings { limit, ..template })).map(|held| held.digest())
    };
    assert_eq!(with(size, |_, _, _| Held::Copy).unwrap(), Digest::of(FIRST));
    let large = with(size - 1, |_, _, _| Held::Copy);
    assert!(matches!(large, Err(ExecutableError::TooLarge { .. })));
    // The file grows after it was opened.
    let large = with(size, |_, _, real| {
        fs_err::write(real, [FIRST, b"#"].concat()).unwrap();
        Held::Copy
    });
    assert!(matches!(large, Err(ExecutableError::TooLarge { .. })));
    let huge = fs_err::File::create(bed.path("huge")).unwrap();
    huge.set_len(MAX_BYTES + 1).unwrap();
    let error = bed.open("huge", &COPY).unwrap_err();
    assert_eq!(error.reason(), "command is too large");
}

#[test]
fn without_a_proc_that_shows_this_process_nothing_is_held() {
    let bed = Bed::new();
    let path = bed.file("plugin", FIRST);
    let own = getpid().as_raw_nonzero().to_string();
    let with = |proc: PathBuf| {
        let template = surroundings(|_, _, _| Held::Copy);
        open(&path, &Surroundings { proc, ..template })
    };
    let absent = with(bed.path("nothing")).unwrap_err();
    assert!(matches!(absent, ExecutableError::NoProc { .. }), "{absent}");
    // Another process under our number, as in the `/proc` of another namespace.
    fs_err::create_dir_all(bed.path("proc").join(&own).join("fd")).unwrap();
    for number in 0..100 {
        let entry = bed
            .path("proc")
            .join(&own)
            .join("fd")
            .join(number.to_string());
        symlink("/dev/null", entry).unwrap();
    }
    let foreign = with(bed.path("proc")).unwrap_err();
    assert!(
        matches!(foreign, ExecutableError::NoProc { .. }),
        "{foreign}"
    );
    with(PathBuf::from("/proc")).unwrap();
}

#[test]
fn a_script_says_which_interpreter_would_run() {
    let bed = Bed::new();
    let long = format!("#!/bin/{}", "x".repeat(1000));
    let first = format!("/bin/{}", "x".repeat(249));
    for (text, interpreter) in [
        ("#!/bin/sh\necho", Some("/bin/sh")),
        (
            "#! /usr/bin/env  python3 \r\nx",
            Some("/usr/bin/env  python3"),
        ),
        ("#!/bin/sh", Some("/bin/sh")),
        ("#!", Some("")),
        ("#!\u{1b}[2J\n", Some("\\u{1b}[2J")),
        (&long, Some(&*first)),
        ("\u{7f}ELF", None),
        (" #!/bin/sh\n", None),
        ("#", None),
        ("", None),
    ] {
        bed.file("plugin", text.as_bytes());
        for template in [&IN_PLACE, &COPY] {
            let held = bed.open("plugin", template).unwrap();
            assert_eq!(held.interpreter(), interpreter, "{text}");
            assert_eq!(held.is_script(), interpreter.is_some());
            assert_eq!(held.digest(), Digest::of(text));
        }
    }
}

#[test]
fn more_bytes_than_are_moved_at_once_are_hashed_and_copied_whole() {
    let bed = Bed::new();
    let bytes: Vec<u8> = (0..1_000_003_u32).map(|n| n.to_le_bytes()[1]).collect();
    bed.file("plugin", &bytes);
    for template in [&IN_PLACE, &COPY] {
        let held = bed.open("plugin", template).unwrap();
        assert_eq!(held.digest(), Digest::of(&bytes));
        assert_eq!(fs_err::read(held.program()).unwrap(), bytes);
    }
}
