//! The tutorial, pasted from its first line to its last.

use std::fmt::Write as _;

use crate::hosted::Place;

const PAGE: &str = include_str!("../../../../docs/tutorial-policy-plugin.md");

/// A block that is pasted, and what it prints if the page says so.
struct Block {
    script: &'static str,
    prints: Option<&'static str>,
}

fn blocks() -> Vec<Block> {
    let mut parts = PAGE.split("```").skip(1).step_by(2).peekable();
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
    assert!(fits("…", ""));
    assert!(fits("a…", "a b"));
    assert!(!fits("a…c", "abbcd"));
    assert!(!fits("a", "ab"));
}

#[test]
fn the_tutorial_can_be_pasted() {
    let place = Place::new();
    let blocks = blocks();
    assert!(blocks.len() > 8, "{}", blocks.len());
    // One shell for all, as a person has; each block's output goes to a file of its own.
    let mut script = String::new();
    let notes = place.notes();
    for (number, block) in blocks.iter().enumerate() {
        let note = notes.join(format!("{number}"));
        let _infallible = writeln!(
            script,
            "{{\n{}}} >'{}' 2>&1\necho \"$?\" >'{}.code'",
            block.script,
            note.display(),
            note.display()
        );
    }
    place.shell(&script);
    for (number, block) in blocks.iter().enumerate() {
        let read = |name: String| std::fs::read_to_string(notes.join(name)).unwrap();
        let printed = read(number.to_string());
        let told = format!("block {number}:\n{}printed:\n{printed}", block.script);
        assert_eq!(read(format!("{number}.code")), "0\n", "{told}");
        let Some(prints) = block.prints else { continue };
        let wanted: Vec<&str> = prints.lines().collect();
        let got: Vec<&str> = printed.lines().collect();
        assert_eq!(wanted.len(), got.len(), "{told}");
        for (wanted, got) in wanted.iter().zip(&got) {
            assert!(fits(wanted, got), "wanted: {wanted}\n{told}");
        }
    }
}
