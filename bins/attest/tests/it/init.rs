//! `attest init`.

use crate::bed::{Bed, snapshot};
use crate::disk::without_room;

#[test]
fn init_says_what_it_made_and_what_it_found() {
    let bed = Bed::new();
    let first = bed.attest(&["init"]).expect(0);
    assert!(first.out.starts_with("created: .attest/receipts/\n"));
    assert!(!first.out.contains("already present"));
    let before = snapshot(bed.folder());
    let second = bed.attest(&["init"]).expect(0);
    assert_eq!(
        second.out,
        first.out.replace("created: ", "already present: ")
    );
    assert_eq!(snapshot(bed.folder()), before);
    let json = bed.attest(&["--format", "json", "init"]).expect(0).out;
    assert!(json.starts_with(r#"{"created":[],"already_present":[".attest"#));
    // What it made runs.
    let run = bed.attest(&["run", "-q"]).expect(0);
    assert_eq!(run.out.lines().count(), 1);
}

#[test]
fn init_where_something_is_in_the_way_changes_nothing() {
    let bed = Bed::new();
    bed.write(".attest", "a file");
    bed.attest(&["init"])
        .expect(2)
        .says(".attest` is in the way");
    assert_eq!(bed.names("."), [".attest"]);
}

#[test]
fn run_without_init_says_so() {
    let bed = Bed::new();
    bed.attest(&["run"])
        .expect(2)
        .says("not an ATTEST repository (run 'attest init')");
    assert_eq!(bed.names("."), Vec::<String>::new());
}

#[test]
fn init_without_room_writes_no_half_file() {
    let bed = Bed::new();
    without_room(&bed, &["init"]).expect(2).says("attest.yaml");
    assert_eq!(bed.names("."), [".attest"]);
    bed.attest(&["init"]).expect(0);
}
