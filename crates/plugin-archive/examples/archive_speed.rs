//! Packs and unpacks a package nearly as large as the limits allow, next to `tar` and `gzip` on
//! the same files: `cargo run --release -p plugin-archive --example archive_speed`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it measures programs of the system and prints that"
)]

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use plugin_archive::{Files, Limits, Modes, pack, unpack_with_metadata};

const ROUNDS: usize = 7;
const BYTES: usize = 48 << 20;
const FILE_BYTES: usize = 96 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let files = match env::args_os().nth(1) {
        Some(source) => text_of(Path::new(&source))?,
        None => text_of(Path::new(env!("CARGO_MANIFEST_DIR")))?,
    };
    let bytes: usize = files.values().map(Vec::len).sum();
    println!(
        "{} files, {:.1} MiB",
        files.len(),
        bytes as f64 / (1 << 20) as f64
    );
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("tree");
    for (path, contents) in &files {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().ok_or("a path below the tree")?)?;
        fs::write(path, contents)?;
    }
    let limits = Limits::default();
    let archive = pack(&files, &Modes::new(), &limits)?;
    let ours = folder.path().join("ours.tar.gz");
    fs::write(&ours, &archive)?;

    let packed = best(|| {
        pack(&files, &Modes::new(), &limits)
            .map(drop)
            .map_err(Into::into)
    })?;
    let unpacked = best(|| {
        unpack_with_metadata(&archive, &limits)
            .map(drop)
            .map_err(Into::into)
    })?;
    let theirs = folder.path().join("theirs.tar.gz");
    let tar_packed = best(|| {
        shell(
            "tar --format=ustar -cf - -C \"$1\" . | gzip -6 > \"$2\"",
            &[&tree, &theirs],
        )
    })?;
    let out = folder.path().join("out");
    let tar_unpacked = best(|| {
        shell(
            "rm -rf \"$2\"; mkdir \"$2\"; gzip -dc \"$1\" | tar -xf - -C \"$2\"",
            &[&ours, &out],
        )
    })?;
    println!("pack    {packed:>10.1?}  {:>9} bytes", archive.len());
    println!(
        "gzip -6 {tar_packed:>10.1?}  {:>9} bytes",
        fs::metadata(&theirs)?.len()
    );
    println!("unpack  {unpacked:>10.1?}");
    println!("tar x   {tar_unpacked:>10.1?}");
    println!(
        "pack is {:.2} times as fast, unpack {:.2} times",
        ratio(tar_packed, packed),
        ratio(tar_unpacked, unpacked)
    );
    Ok(())
}

fn ratio(theirs: Duration, ours: Duration) -> f64 {
    theirs.as_secs_f64() / ours.as_secs_f64()
}

fn best(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn shell(script: &str, arguments: &[&Path]) -> Result<(), Box<dyn Error>> {
    let status = Command::new("sh")
        .args(["-c", script, "sh"])
        .args(arguments)
        .stdin(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{script}: {status}").into())
    }
}

/// The text below a folder, cut into files and taken as often as it takes to have enough.
fn text_of(folder: &Path) -> Result<Files, Box<dyn Error>> {
    let mut text = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "rs" || extension == "md")
            {
                text.extend(fs::read(path)?);
            }
        }
    }
    let mut files = Files::new();
    for number in 0..BYTES / FILE_BYTES {
        let start = number * FILE_BYTES;
        let contents: Vec<u8> = text
            .iter()
            .cycle()
            .skip(start % text.len())
            .take(FILE_BYTES)
            .copied()
            .collect();
        files.insert(
            format!("skills/s{:02}/references/{number}.md", number % 40),
            contents,
        );
    }
    Ok(files)
}
