//! Next to other readers and writers of the same format.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use plugin_archive::{Files, Limits, Modes, pack, unpack_with_metadata};

use crate::build::gzip;

fn files() -> (Files, Modes) {
    let long = format!("skills/{}/references/{}", "s".repeat(60), "r".repeat(80));
    let files = [
        ("plugin.json", b"{}".to_vec()),
        (&long, vec![b'x'; 70_000]),
        ("bin/run", vec![0; 512]),
        ("e", Vec::new()),
    ];
    let files = files.map(|(path, bytes)| (path.to_owned(), bytes));
    (
        Files::from(files),
        Modes::from([("bin/run".to_owned(), 0o755)]),
    )
}

#[test]
fn the_tar_crate_reads_what_is_packed() {
    let (files, modes) = files();
    let archive = pack(&files, &modes, &Limits::default()).unwrap();
    let tar = miniz_oxide::inflate::decompress_to_vec(&archive[10..]).unwrap();
    let mut read = Files::new();
    for entry in tar::Archive::new(&tar[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        read.insert(entry.path().unwrap().to_str().unwrap().to_owned(), bytes);
    }
    assert_eq!(read, files);
}

#[test]
fn what_the_tar_crate_packs_as_ustar_is_read() {
    let (files, modes) = files();
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in &files {
        let mut header = tar::Header::new_ustar();
        header.set_path(path).unwrap();
        header.set_mode(modes.get(path).copied().unwrap_or(0o644));
        header.set_size(bytes.len() as u64);
        header.set_uid(1000);
        header.set_mtime(1_700_000_000);
        header.set_cksum();
        builder.append(&header, &bytes[..]).unwrap();
    }
    let snapshot =
        unpack_with_metadata(&gzip(&builder.into_inner().unwrap()), &Limits::default()).unwrap();
    assert_eq!(snapshot.files, files);
    assert_eq!(snapshot.modes["bin/run"], 0o755);
}

/// `tar` and `gzip` are wherever the checks of the project run; where they are missing this fails.
#[test]
fn the_system_reads_what_is_packed_and_is_read() {
    let (files, modes) = files();
    let archive = pack(&files, &modes, &Limits::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs, tree) = (
        folder.path().join("a.gz"),
        folder.path().join("b"),
        folder.path().join("tree"),
    );
    fs::write(&ours, &archive).unwrap();
    fs::create_dir(&tree).unwrap();
    run(&["gzip", "-t"], &ours);
    run(&["tar", "-C", tree.to_str().unwrap(), "-xzf"], &ours);
    for (path, bytes) in &files {
        assert_eq!(&fs::read(tree.join(path)).unwrap(), bytes, "{path}");
    }
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let arguments = [
        "tar",
        "--format=ustar",
        "-C",
        tree.to_str().unwrap(),
        "-cf",
        theirs.to_str().unwrap(),
    ];
    run(&[&arguments[..], &names[1..]].concat(), Path::new(names[0]));
    run(&["gzip", "-6"], &theirs);
    let read = fs::read(theirs.with_extension("gz")).unwrap();
    let snapshot = unpack_with_metadata(&read, &Limits::default()).unwrap();
    assert_eq!(snapshot.files, files);
    assert_eq!(snapshot.modes["bin/run"] & 0o700, 0o700);
}

fn run(words: &[&str], last: &Path) {
    let status = Command::new(words[0]).args(&words[1..]).arg(last).status();
    let succeeded = status.as_ref().is_ok_and(ExitStatus::success);
    assert!(succeeded, "{words:?}: {status:?}");
}
