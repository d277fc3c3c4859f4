//! The files that options name: whatever is no regular file stays what it is, and is found before
//! the work.

use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;

use test_case::test_case;

use crate::authority::nobody;
use crate::bed::{Bed, Ran, snapshot};

const PIPELINE: &str = "\
version: '1'
steps:
  make: {run: echo ran >> runs, cache: false}
";

/// A workspace with a key, a signed receipt `r.yaml` and its ledger.
struct Named {
    bed: Bed,
    key: String,
    tsa: String,
}

impl Named {
    fn new() -> Self {
        let bed = Bed::new();
        bed.attest(&["init"]).expect(0);
        bed.write("attest.yaml", PIPELINE);
        let made = bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
        bed.attest(&["run", "--receipt", "unsigned.yaml"]).expect(0);
        bed.attest(&["run", "--sign", "--receipt", "r.yaml"])
            .expect(0);
        std::fs::remove_file(bed.path("runs")).unwrap();
        Self {
            bed,
            key: made.out.trim_end().to_owned(),
            tsa: nobody(),
        }
    }

    /// Writes to a file by one of the commands.
    fn write(&self, command: &str, file: &str) -> Ran {
        let mut words: Vec<&str> = command.split(' ').collect();
        for word in &mut words {
            match *word {
                "KEY" => *word = &self.key,
                "TSA" => *word = &self.tsa,
                "FILE" => *word = file,
                _ => {}
            }
        }
        self.bed.attest(&words)
    }
}

#[test_case("run --output FILE"; "run output")]
#[test_case("run --receipt FILE"; "run receipt")]
#[test_case("run --check-reproducibility --receipt FILE"; "reproducibility")]
#[test_case("run --wrap --name s --receipt FILE -- touch runs"; "wrap receipt")]
#[test_case("run --wrap --name s --report FILE -- touch runs"; "wrap report")]
#[test_case("sign unsigned.yaml --output FILE"; "sign")]
#[test_case("timestamp r.yaml --tsa TSA --output FILE"; "timestamp")]
#[test_case("keys export KEY -o FILE"; "keys export")]
#[test_case("causal export --receipt r.yaml -o FILE"; "causal export")]
#[test_case("export --receipt r.yaml --format in-toto -o FILE"; "export")]
fn what_is_no_file_is_refused_and_a_link_leads_to_one(command: &str) {
    let named = Named::new();
    let bed = &named.bed;
    let _socket = UnixListener::bind(bed.path("socket")).unwrap();
    symlink("socket", bed.path("to-socket")).unwrap();
    symlink("gone", bed.path("dangling")).unwrap();
    bed.write("file", "");
    std::fs::create_dir(bed.path("folder")).unwrap();
    let before = snapshot(bed.folder());
    for (file, what) in [
        ("socket", "`socket` is a socket, and only a regular file"),
        ("to-socket", "`to-socket` is a socket, and only a regular"),
        (
            "dangling",
            "`dangling` is a symbolic link that leads nowhere",
        ),
        ("folder", "`folder` is a folder, and only a regular file"),
        ("absent/file", "there is no such folder"),
        ("file/file", "Not a directory"),
    ] {
        let ran = named.write(command, file).expect(2).says(what);
        assert_eq!(ran.out, "");
        assert_eq!(snapshot(bed.folder()), before, "{file}");
    }
    let kind = std::fs::symlink_metadata(bed.path("socket")).unwrap();
    assert!(kind.file_type().is_socket());
    // Only now is there anybody to ask for a stamp, and nobody answers.
    if command.starts_with("timestamp") {
        return;
    }
    std::fs::remove_file(bed.path("socket")).unwrap();
    symlink("file", bed.path("to-file")).unwrap();
    named.write(command, "to-file").expect(0);
    assert!(bed.path("to-file").is_symlink());
    assert!(std::fs::metadata(bed.path("file")).unwrap().len() > 100);
}
