//! Archives as nobody should make them: each refusal names the entry and the rule, and nothing is
//! written anywhere.

use crate::bed::{Bed, MANIFEST, snapshot};
use crate::build::{Block, gzip, header, named, open, tar, with};

/// A link of any kind with a target.
fn link(name: &[u8], kind: &[u8], target: &[u8]) -> Block {
    with(with(header(name, 0), 156, kind), 157, target)
}

/// The archive, and what has to be said of it.
fn cases() -> Vec<(Vec<u8>, &'static str)> {
    let manifest = (header(b"plugin.json", MANIFEST.len()), MANIFEST.as_bytes());
    let after = |entry: Block| gzip(&tar(&[manifest, (entry, &[])]));
    let mut trailing = gzip(&tar(&[manifest]));
    trailing.push(0);
    let mut cut = gzip(&tar(&[manifest]));
    cut.truncate(cut.len() - 9);
    vec![
        (
            gzip(&named(&[b"../x"])),
            "entry 1 `../x`: the path has a component `..` (path_traversal)",
        ),
        (
            gzip(&named(&[b"a", b"b/../../x"])),
            "entry 2 `b/../../x`: the path has a component `..`",
        ),
        (
            gzip(&named(&[b"/etc/x"])),
            "entry 1 `/etc/x`: the path is absolute (path_absolute)",
        ),
        (
            gzip(&named(&[b"a\\b"])),
            r"entry 1 `a\\b`: the path has a backslash (path_backslash)",
        ),
        (
            gzip(&named(&[b"C:/x"])),
            "entry 1 `C:/x`: the path has a drive prefix (path_drive)",
        ),
        (
            gzip(&named(&[b"a\x1b[2J"])),
            r"entry 1 `a\u{1b}[2J`: the path has a control character",
        ),
        (
            gzip(&named(&[b"a", b"a"])),
            "entry 2 `a`: the path is in the archive already (duplicate)",
        ),
        (
            gzip(&named(&[b"a", b"a/b"])),
            "entry 2 `a/b`: the path is a file and a folder (conflict)",
        ),
        (
            after(link(b"l", b"2", b"/etc/passwd")),
            "entry 2 `l`: only regular files and folders",
        ),
        (
            after(link(b"l", b"1", b"plugin.json")),
            "entry 2 `l`: only regular files and folders",
        ),
        (
            after(with(header(b"fifo", 0), 156, b"6")),
            "entry 2 `fifo`: only regular files",
        ),
        (
            after(with(header(b"x", 0), 156, b"x")),
            "entry 2 `x`: only regular files",
        ),
        (
            after(with(header(b"big", 0), 124, b"00100000001\0")),
            "entry 2 `big`: more than max_file_bytes allows, which is 16777216 (limit_exceeded)",
        ),
        (gzip(&open(&[manifest])), "(tar_end)"),
        (trailing, "(gzip_trailing)"),
        (cut, "(gzip_truncated)"),
        (b"PK\x03\x04".to_vec(), "(gzip_header)"),
        (Vec::new(), "(gzip_header)"),
    ]
}

#[test]
fn nothing_of_a_refused_archive_is_written() {
    for (number, (archive, said)) in cases().into_iter().enumerate() {
        let bed = Bed::with_package();
        bed.write("x.tar.gz", archive);
        let before = snapshot(bed.folder());
        for line in ["unpack x.tar.gz -o out", "inspect x.tar.gz"] {
            let ran = bed.line(line).expect(1);
            assert_eq!(ran.out, "", "{number}");
            assert!(
                ran.err.starts_with("error: `x.tar.gz` is refused: "),
                "{number} {}",
                ran.err
            );
            assert!(ran.err.contains(said), "{number} `{said}` in {}", ran.err);
            assert!(!ran.err.contains('\u{1b}'), "{number} {:?}", ran.err);
            assert_eq!(snapshot(bed.folder()), before, "{number} {line}");
        }
        bed.line("diff notes x.tar.gz").expect(2);
    }
}

#[test]
fn a_bomb_is_refused_with_the_limit() {
    let bed = Bed::new();
    let zeros = vec![0; 16 << 20];
    let entries: Vec<(Block, &[u8])> = (0..5_u8)
        .map(|n| (header(&[b'a' + n], zeros.len()), zeros.as_slice()))
        .collect();
    bed.write("bomb.tar.gz", gzip(&tar(&entries)));
    assert!(bed.read("bomb.tar.gz").len() < 1 << 20);
    let ran = bed.line("unpack bomb.tar.gz -o out").expect(1);
    ran.says("entry 5 `e`: more than max_total_bytes allows, which is 67108864 (limit_exceeded)");
    assert_eq!(bed.names("."), ["bomb.tar.gz"]);
}
