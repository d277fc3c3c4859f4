//! Names that some file systems take for one another.

use agent_plugin::{Code, Files, MAX_DIAGNOSTICS, Severity, collisions};

fn found(paths: &[&str]) -> Vec<String> {
    let files: Files = paths
        .iter()
        .map(|path| ((*path).to_owned(), Vec::new()))
        .collect();
    let found = collisions(&files);
    assert!(
        found.iter().all(|found| {
            found.code == Code::PathCollision && found.severity == Severity::Warning
        })
    );
    found
        .into_iter()
        .map(|found| format!("{}: {}", found.path, found.message))
        .collect()
}

#[test]
fn m29_m30_names_that_differ_by_case_or_normalisation_are_reported_once() {
    let tail = "where neither case nor normalisation counts";
    assert_eq!(
        found(&["README", "ReadMe", "readme"]),
        [
            format!("ReadMe: is the same name as `README` {tail}"),
            format!("readme: is the same name as `README` {tail}"),
        ]
    );
    assert_eq!(
        found(&["e\u{301}", "\u{c9}"]),
        [format!("\u{c9}: is the same name as `e\\u{{301}}` {tail}")]
    );
}

#[test]
fn a_directory_collides_as_a_whole() {
    let tail = "where neither case nor normalisation counts";
    assert_eq!(
        found(&["A/x", "a/x", "a/y", "b/C/d", "b/c"]),
        [
            format!("a: is the same name as `A` {tail}"),
            format!("b/c: is the same name as `b/C` {tail}"),
        ]
    );
}

#[test]
fn names_that_every_file_system_tells_apart_are_not_reported() {
    assert!(found(&["a", "b/a", "b/b", "ab", "a-b", "\u{e4}", "\u{fc}"]).is_empty());
}

#[test]
fn letters_with_more_than_one_small_or_great_form_collide() {
    for [one, other] in [
        ["stra\u{df}e", "strasse"],
        ["STRASSE", "stra\u{1e9e}e"],
        ["\u{3c3}", "\u{3c2}"],
        ["s", "\u{17f}"],
        ["K", "\u{212a}"],
        ["\u{c5}", "\u{212b}"],
        ["fi", "\u{fb01}"],
    ] {
        assert_eq!(found(&[one, other]).len(), 1, "{one} {other}");
    }
}

#[test]
fn the_list_is_bounded() {
    let paths: Vec<String> = (0..2_048_u32)
        .map(|bits| {
            let letter = |at: u32| if bits >> at & 1 == 0 { 'a' } else { 'A' };
            (0..11).map(letter).collect()
        })
        .collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let files: Files = paths
        .iter()
        .map(|path| ((*path).to_owned(), Vec::new()))
        .collect();
    let found = collisions(&files);
    assert_eq!(found.len(), MAX_DIAGNOSTICS);
    assert_eq!(
        found.last().map(|found| found.code),
        Some(Code::LimitExceeded)
    );
}
