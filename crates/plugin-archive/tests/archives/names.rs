//! M01 to M32: paths.

use crate::build::{accepted, folder, header, named, read, refused, tar, with};

/// As an only file, and as a folder where that is another name.
#[track_caller]
fn refused_name(name: &str, code: &str) {
    let error = refused(&named(&[b"first", name.as_bytes()]), code);
    let entry = error.entry.unwrap();
    assert_eq!(entry.number, 2);
    assert_eq!(entry.name, name.replace('\\', "\\\\"));
}

#[test]
fn m01_a_component_above_the_root() {
    refused_paths("../x", "path_traversal");
}

#[test]
fn m02_a_component_above_inside() {
    refused_paths("a/../../x", "path_traversal");
}

#[test]
fn m03_an_absolute_path() {
    refused_paths("/abs", "path_absolute");
}

#[test]
fn m04_two_slashes_at_the_beginning() {
    refused_paths("//abs", "path_absolute");
}

#[test]
fn m05_a_dot_at_the_beginning() {
    refused_paths("./a", "path_component");
}

#[test]
fn m06_an_empty_component() {
    refused_paths("a//b", "path_component");
}

#[test]
fn m07_a_dot_inside() {
    refused_paths("a/./b", "path_component");
}

#[test]
fn m10_a_dot_alone() {
    refused_paths(".", "path_component");
}

#[test]
fn m11_two_dots_alone() {
    refused_paths("..", "path_traversal");
}

#[test]
fn m12_a_backslash() {
    refused_paths("a\\b", "path_backslash");
}

#[test]
fn m13_a_drive() {
    refused_paths("C:x", "path_drive");
}

#[test]
fn m13_a_drive_and_a_slash() {
    refused_paths("C:/x", "path_drive");
}

#[test]
fn m13_a_drive_below_the_root() {
    refused_paths("a/c:x", "path_drive");
}

#[test]
fn m14_a_path_of_windows_devices() {
    refused_paths("\\\\?\\x", "path_backslash");
}

#[track_caller]
fn refused_paths(name: &str, code: &str) {
    refused_name(name, code);
    let as_folder = folder(name.as_bytes());
    refused(&tar(&[(as_folder, b"")]), code);
}

#[test]
fn m05_a_dot_as_a_folder_is_refused() {
    refused(&named(&[b"./"]), "path_component");
    refused(&named(&[b"a//"]), "path_component");
    refused(&named(&[b"../"]), "path_traversal");
}

#[test]
fn m08_a_regular_file_whose_name_ends_with_a_slash_is_refused() {
    refused(
        &tar(&[(with(folder(b"a/"), 156, b"0"), b"")]),
        "path_component",
    );
}

#[test]
fn m09_an_empty_name_is_refused() {
    refused(&named(&[b""]), "path_empty");
    refused(&tar(&[(folder(b""), b"")]), "path_empty");
    refused(&named(&[b"/"]), "path_absolute");
}

#[test]
fn m15_bytes_after_the_nul_of_a_name_are_refused() {
    let error = refused(&named(&[b"plugin.json\0/../x"]), "header_text");
    assert_eq!(error.entry.unwrap().name, "plugin.json");
    refused(
        &tar(&[(with(header(b"a", 0), 345, b"p\0q"), b"")]),
        "header_text",
    );
}

#[test]
fn m16_a_name_of_exactly_100_bytes_without_nul_is_read() {
    let name = "n".repeat(100);
    assert_eq!(accepted(&named(&[name.as_bytes()])), [name]);
}

#[test]
fn m17_a_prefix_of_155_bytes_and_a_name_of_100_are_read() {
    let (prefix, name) = ("p".repeat(155), "n".repeat(100));
    let block = with(header(name.as_bytes(), 0), 345, prefix.as_bytes());
    assert_eq!(
        accepted(&tar(&[(block, b"")])),
        [format!("{prefix}/{name}")]
    );
}

#[test]
fn m18_a_prefix_that_ends_with_a_slash() {
    refused_prefixes(b"p/", "path_component");
}

#[test]
fn m20_a_prefix_above_the_root() {
    refused_prefixes(b"..", "path_traversal");
}

#[test]
fn m20_an_absolute_prefix() {
    refused_prefixes(b"/p", "path_absolute");
}

#[track_caller]
fn refused_prefixes(prefix: &[u8], code: &str) {
    refused(&tar(&[(with(header(b"a", 0), 345, prefix), b"")]), code);
}

#[test]
fn m19_a_prefix_under_the_magic_of_gnu() {
    refused_prefix_of_another_format(b"ustar  \0");
}

#[test]
fn m19_a_prefix_under_no_magic() {
    refused_prefix_of_another_format(b"\0\0\0\0\0\0\0\0");
}

#[track_caller]
fn refused_prefix_of_another_format(magic: &[u8]) {
    let block = with(with(header(b"a", 0), 345, b"p"), 257, magic);
    refused(&tar(&[(block, b"")]), "header_magic");
}

#[test]
fn m21_a_line_end() {
    control_characters_are_refused_and_shown("a\nb", "a\\nb");
}

#[test]
fn m21_an_escape() {
    control_characters_are_refused_and_shown("a\u{1b}[31mb", "a\\u{1b}[31mb");
}

#[test]
fn m21_a_delete() {
    control_characters_are_refused_and_shown("a\u{7f}", "a\\u{7f}");
}

#[test]
fn m21_a_control_of_the_second_row() {
    control_characters_are_refused_and_shown("a\u{85}", "a\\u{85}");
}

#[test]
fn m21_text_turned_around() {
    control_characters_are_refused_and_shown("a\u{202e}b", "a\\u{202e}b");
}

#[test]
fn m21_text_isolated() {
    control_characters_are_refused_and_shown("a\u{2066}b", "a\\u{2066}b");
}

#[test]
fn m21_each_character_that_turns_or_ends_text_and_none_beside_them() {
    let turning = ['\u{61c}', '\u{200e}', '\u{200f}'];
    let turning = turning.into_iter().chain('\u{2028}'..='\u{202e}');
    for c in turning.chain('\u{2066}'..='\u{2069}') {
        let shown = format!("a\\u{{{:x}}}", u32::from(c));
        control_characters_are_refused_and_shown(&format!("a{c}"), &shown);
    }
    for c in [
        '\u{61b}', '\u{200d}', '\u{2010}', '\u{2027}', '\u{202f}', '\u{2065}', '\u{206a}',
    ] {
        let name = format!("a{c}");
        assert_eq!(accepted(&named(&[name.as_bytes()])), [name]);
    }
}

#[track_caller]
fn control_characters_are_refused_and_shown(name: &str, shown: &str) {
    let error = refused(&named(&[name.as_bytes()]), "path_control");
    assert_eq!(error.entry.unwrap().name, shown);
}

#[test]
fn m22_a_name_that_is_not_utf8_is_refused_and_shown() {
    let error = refused(&named(&[b"a\xff\xc0\xafb`"]), "path_utf8");
    assert_eq!(error.entry.unwrap().name, "a\\xff\\xc0\\xafb\\u{60}");
}

#[test]
fn m23_a_component_of_256_bytes_fits_no_header() {
    let files = plugin_archive::Files::from([("x".repeat(256), Vec::new())]);
    let error = plugin_archive::pack(&files, &Default::default(), &Default::default()).unwrap_err();
    assert_eq!(error.code(), "path_too_long");
}

#[test]
fn m24_a_path_of_64_levels_passes_and_one_of_65_does_not() {
    let path = |levels: usize| vec!["d"; levels].join("/");
    assert_eq!(accepted(&deep(&path(64))), [path(64)]);
    let error = refused(&deep(&path(65)), "limit_exceeded");
    assert!(
        error.to_string().contains("max_depth allows, which is 64"),
        "{error}"
    );
}

fn deep(path: &str) -> Vec<u8> {
    let (prefix, name) = path.split_at(path.len() - 50);
    let block = with(
        header(name.trim_start_matches('/').as_bytes(), 0),
        345,
        prefix.trim_end_matches('/').as_bytes(),
    );
    tar(&[(block, b"")])
}

#[test]
fn m25_names_that_only_windows_cannot_hold_are_read() {
    let names = ["CON", "a ", "a.", "aux.txt"];
    assert_eq!(accepted(&named(&names.map(str::as_bytes))), names);
}

#[test]
fn m26_a_file_and_a_file_below_it() {
    a_path_is_a_file_or_a_folder(&[b"a", b"a/b"]);
}

#[test]
fn m26_a_file_and_a_file_far_below_it() {
    a_path_is_a_file_or_a_folder(&[b"a", b"a/b/c/d"]);
}

#[test]
fn m26_a_file_and_a_folder() {
    a_path_is_a_file_or_a_folder(&[b"a", b"a/"]);
}

#[test]
fn m26_a_file_and_a_folder_below_it() {
    a_path_is_a_file_or_a_folder(&[b"a", b"a/b/"]);
}

#[test]
fn m27_a_file_below_and_then_the_file() {
    a_path_is_a_file_or_a_folder(&[b"a/b", b"a"]);
}

#[test]
fn m27_a_folder_and_then_a_file() {
    a_path_is_a_file_or_a_folder(&[b"a/", b"a"]);
}

#[test]
fn m27_a_folder_below_and_then_the_file() {
    a_path_is_a_file_or_a_folder(&[b"a/b/", b"a"]);
}

#[track_caller]
fn a_path_is_a_file_or_a_folder(names: &[&[u8]]) {
    let error = refused(&named(names), "conflict");
    assert_eq!(error.entry.unwrap().number, 2);
}

#[test]
fn m26_names_that_only_begin_alike_are_no_conflict() {
    assert_eq!(
        accepted(&named(&[b"a", b"a-b", b"a.d/x", b"ab/"])),
        ["a", "a-b", "a.d/x"]
    );
    assert_eq!(accepted(&named(&[b"a/b", b"a/"])), ["a/b"]);
}

#[test]
fn m28_a_path_that_stands_twice_is_refused_with_the_same_bytes_too() {
    let twice = tar(&[(header(b"a", 1), b"x"), (header(b"a", 1), b"x")]);
    assert_eq!(refused(&twice, "duplicate").entry.unwrap().number, 2);
    refused(&named(&[b"d/", b"d/"]), "duplicate");
    refused(
        &tar(&[(folder(b"d/"), b""), (folder(b"d"), b"")]),
        "duplicate",
    );
}

#[test]
fn m29_names_that_differ_by_case_are_read() {
    assert_eq!(accepted(&named(&[b"A", b"a"])), ["A", "a"]);
}

#[test]
fn m30_names_that_differ_by_normalisation_are_read() {
    assert_eq!(
        accepted(&named(&["\u{e9}".as_bytes(), "e\u{301}".as_bytes()])),
        ["e\u{301}", "\u{e9}"]
    );
}

#[test]
fn m31_the_same_path_by_way_of_a_prefix_is_a_duplicate() {
    let by_prefix = with(header(b"plugin.json", 0), 345, b"p");
    refused(
        &tar(&[(header(b"p/plugin.json", 0), b""), (by_prefix, b"")]),
        "duplicate",
    );
}

#[test]
fn m32_a_manifest_in_capitals_is_another_file() {
    assert_eq!(read(&named(&[b"PLUGIN.JSON"])).unwrap().files.len(), 1);
    assert_eq!(
        accepted(&named(&[b"PLUGIN.JSON", b"plugin.json"])),
        ["PLUGIN.JSON", "plugin.json"]
    );
}
