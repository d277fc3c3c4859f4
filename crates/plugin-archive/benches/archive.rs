//! How long packing and unpacking takes, in turns with `tar` and `gzip` on the same files.
//!
//! Prints medians: in memory, from files to an archive on disk and back, and on one thread; beside
//! `tar | gzip -6`, `tar | pigz -6` where it is installed, and `gzip -d | tar x`. The package has 512
//! files of 96 KiB, made of the source text below a folder: `cargo bench -p plugin-archive [-- FOLDER]`.
//! `TMPDIR` names the file system.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench starts what it measures and prints what it found"
)]

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use plugin_archive::{Files, Limits, Modes, pack, pack_with_threads, unpack_with_metadata};

const ROUNDS: usize = 15;
const FILES: usize = 512;
const FILE_BYTES: usize = 96 << 10;

type Outcome = Result<(), Box<dyn Error>>;
type Work<'a> = (&'a str, Box<dyn Fn() -> Outcome + 'a>);

fn main() -> Outcome {
    if !env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let source = env::args_os().skip(1).find(|arg| arg != "--bench");
    let source = source.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        PathBuf::from,
    );
    let files = package(&text_of(&source)?);
    let limits = Limits::default();
    let archive = pack(&files, &Modes::new(), &limits)?;
    let bed = Bed::new(&files, &archive)?;

    let mut packing: Vec<Work> = vec![
        (
            "pack in memory",
            Box::new(|| done(pack(&files, &Modes::new(), &limits))),
        ),
        (
            "on one thread",
            Box::new(|| {
                done(pack_with_threads(
                    &files,
                    &Modes::new(),
                    &limits,
                    NonZeroUsize::MIN,
                ))
            }),
        ),
        (
            "pack from files",
            Box::new(|| {
                let files = read_all(&bed.tree, &files)?;
                fs::write(&bed.out, pack(&files, &Modes::new(), &limits)?)?;
                Ok(())
            }),
        ),
        ("tar | gzip -6", Box::new(|| bed.compress("gzip"))),
    ];
    let unpacking: Vec<Work> = vec![
        (
            "unpack in memory",
            Box::new(|| done(unpack_with_metadata(&archive, &limits))),
        ),
        (
            "unpack to files",
            Box::new(|| {
                let snapshot = unpack_with_metadata(&fs::read(&bed.ours)?, &limits)?;
                write_all(&bed.fresh()?, &snapshot.files)
            }),
        ),
        ("gzip -d | tar x", Box::new(|| bed.extract("gzip"))),
    ];
    if there("pigz") {
        packing.push(("tar | pigz -6", Box::new(|| bed.compress("pigz"))));
    }
    println!(
        "{FILES} files, {} bytes, {ROUNDS} rounds, medians",
        FILES * FILE_BYTES
    );
    println!(
        "{} bytes packed, {} by gzip -6",
        archive.len(),
        bed.packed_by_gzip()?
    );
    in_turns(&packing)?;
    in_turns(&unpacking)
}

/// One after the other in every round, so that what else the machine does meets all.
fn in_turns(works: &[Work]) -> Outcome {
    let mut times = vec![Vec::with_capacity(ROUNDS); works.len()];
    for _ in 0..ROUNDS {
        for ((_, work), times) in works.iter().zip(&mut times) {
            let start = Instant::now();
            work()?;
            times.push(start.elapsed());
        }
    }
    for ((name, _), times) in works.iter().zip(&mut times) {
        times.sort_unstable();
        let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
        println!("{name:<16} {:>8.1} ms", milliseconds(median));
    }
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn done<T, E: Error + 'static>(result: Result<T, E>) -> Outcome {
    result.map(drop).map_err(Into::into)
}

/// The same files on disk, for the programs of the system.
struct Bed {
    folder: tempfile::TempDir,
    tree: PathBuf,
    ours: PathBuf,
    out: PathBuf,
}

impl Bed {
    fn new(files: &Files, archive: &[u8]) -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let bed = Self {
            tree: folder.path().join("tree"),
            ours: folder.path().join("ours.tar.gz"),
            out: folder.path().join("out.tar.gz"),
            folder,
        };
        fs::create_dir(&bed.tree)?;
        write_all(&bed.tree, files)?;
        fs::write(&bed.ours, archive)?;
        Ok(bed)
    }

    fn compress(&self, program: &str) -> Outcome {
        let script = format!("tar --format=ustar -cf - -C \"$1\" . | {program} -6 > \"$2\"");
        shell(&script, &self.tree, &self.out)
    }

    fn extract(&self, program: &str) -> Outcome {
        let script = format!("{program} -dc \"$1\" | tar -xf - -C \"$2\"");
        shell(&script, &self.ours, &self.fresh()?)
    }

    fn packed_by_gzip(&self) -> Result<u64, Box<dyn Error>> {
        self.compress("gzip")?;
        Ok(fs::metadata(&self.out)?.len())
    }

    /// An empty folder in place of the last one, for both that write files.
    fn fresh(&self) -> Result<PathBuf, Box<dyn Error>> {
        let folder = self.folder.path().join("fresh");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

fn shell(script: &str, from: &Path, to: &Path) -> Outcome {
    let status = Command::new("sh")
        .args(["-c", script, "sh"])
        .args([from, to])
        .stdin(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{script}: {status}").into()),
    }
}

fn there(program: &str) -> bool {
    let started = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    started.is_ok()
}

fn write_all(folder: &Path, files: &Files) -> Outcome {
    for (path, contents) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().ok_or("a path below the folder")?)?;
        fs::write(path, contents)?;
    }
    Ok(())
}

fn read_all(folder: &Path, files: &Files) -> Result<Files, Box<dyn Error>> {
    let read = |path: &String| Ok((path.clone(), fs::read(folder.join(path))?));
    files.keys().map(read).collect()
}

/// The source text below a folder.
fn text_of(folder: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut text = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_text = |end: &std::ffi::OsStr| end == "rs" || end == "md";
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(is_text) {
                text.extend(fs::read(path)?);
            }
        }
    }
    Ok(text)
}

/// The text cut into files, taken as often as it takes to have enough.
fn package(text: &[u8]) -> Files {
    let file = |number: usize| {
        let start = number * FILE_BYTES % text.len().max(1);
        let contents = text.iter().cycle().skip(start).take(FILE_BYTES);
        let path = format!("skills/s{:02}/references/{number}.md", number % 40);
        (path, contents.copied().collect())
    };
    (0..FILES).map(file).collect()
}
