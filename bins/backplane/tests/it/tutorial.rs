//! The tutorial, pasted from its first line to its last.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::bed::{Bed, ran};

/// Read when the test runs: where only lints are checked there are no pages.
fn page(name: &str) -> &'static str {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    Box::leak(std::fs::read_to_string(path).unwrap().into_boxed_str())
}

/// A block that is pasted, and what it prints if the page says so.
struct Block {
    script: &'static str,
    prints: Option<&'static str>,
}

fn blocks() -> Vec<Block> {
    let page = page("docs/tutorial-plugin-package.md");
    let mut parts = page.split("```").skip(1).step_by(2).peekable();
    let mut blocks = Vec::new();
    while let Some(part) = parts.next() {
        let script = part.strip_prefix("sh\n").unwrap();
        let prints = parts.next_if(|part| part.starts_with("text\n"));
        blocks.push(Block {
            script,
            prints: prints.map(|text| text.strip_prefix("text\n").unwrap()),
        });
    }
    blocks
}

/// Compares line by line; `…` stands for anything within a line.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut open = false;
    for part in parts {
        open = true;
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || (open && pattern.ends_with('…'))
}

#[test]
fn marks_stand_for_anything_and_nothing_else_does() {
    assert!(fits("a…c", "abbc"));
    assert!(fits("a…", "a b"));
    assert!(!fits("a…c", "abbcd"));
    assert!(!fits("a", "ab"));
}

/// An address where nobody listens: the page's own may be in use on this machine.
fn free_address() -> String {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    taken.local_addr().unwrap().to_string()
}

/// One shell for all, as a person has; what each block prints goes to a file of its own.
fn typed(bed: &Bed, blocks: &[Block]) {
    let mut script = "umask 022\n".to_owned();
    let address = free_address();
    for (number, block) in blocks.iter().enumerate() {
        let pasted = block.script.replace("127.0.0.1:8790", &address);
        let note = bed.path(&format!("notes/{number}"));
        let note = note.display();
        let _infallible = writeln!(
            script,
            "{{\n{pasted}}} >'{note}' 2>&1\necho \"$?\" >'{note}.code'"
        );
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_backplane")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .current_dir(bed.path("work"))
        .env("PATH", format!("{}:{path}", programs.display()));
    ran(&mut shell).expect(0);
}

#[test]
fn the_tutorial_can_be_pasted() {
    let bed = Bed::new();
    std::fs::create_dir(bed.path("work")).unwrap();
    std::fs::create_dir(bed.path("notes")).unwrap();
    let blocks = blocks();
    assert!(blocks.len() > 7, "{}", blocks.len());
    typed(&bed, &blocks);
    for (number, block) in blocks.iter().enumerate() {
        let read = |name: String| std::fs::read_to_string(bed.path(&name)).unwrap();
        let printed = read(format!("notes/{number}"));
        let told = format!("block {number}:\n{}printed:\n{printed}", block.script);
        assert_eq!(read(format!("notes/{number}.code")), "0\n", "{told}");
        let Some(prints) = block.prints else { continue };
        let wanted: Vec<&str> = prints.lines().collect();
        let got: Vec<&str> = printed.lines().collect();
        assert_eq!(wanted.len(), got.len(), "{told}");
        for (wanted, got) in wanted.iter().zip(&got) {
            assert!(fits(wanted, got), "wanted: {wanted}\n{told}");
        }
    }
}

#[test]
fn the_readme_can_be_pasted() {
    let page = page("README.md");
    let (_, rest) = page.split_once("## backplane").unwrap();
    let (_, rest) = rest.split_once("```sh\n").unwrap();
    let bed = Bed::new();
    std::fs::create_dir(bed.path("work")).unwrap();
    std::fs::create_dir(bed.path("notes")).unwrap();
    let script = rest.split_once("```").unwrap().0;
    typed(
        &bed,
        &[Block {
            script,
            prints: None,
        }],
    );
    assert_eq!(bed.read("notes/0.code"), b"0\n");
    assert!(bed.path("work/my-plugin.tar.gz").is_file());
}
