//! Help, version and generated texts.

use test_case::test_case;

use crate::core::Workspace;

#[test]
fn help_shows_how_to_declare_it() {
    let ran = Workspace::new().typed(&["--help"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for text in ["[[plugin]]", "POLICY_FILE", "check", "Exit codes:"] {
        assert!(ran.out.contains(text), "{text} in {}", ran.out);
    }
    let long: Vec<&str> = ran.out.lines().filter(|line| line.len() > 80).collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn the_declaration_in_the_help_is_the_one_of_the_page() {
    let help = Workspace::new().typed(&["--help"]).out;
    let page = include_str!("../../../../docs/reference/attest-policy.md");
    let lines = help
        .lines()
        .filter(|line| line.starts_with("  ") && line.contains(" = "));
    let mut seen = 0;
    for line in lines
        .map(str::trim)
        .filter(|line| !line.contains("POLICY_FILE"))
    {
        let line = line.split("    #").next().unwrap();
        assert!(page.contains(line), "{line}");
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[test]
fn the_version_has_name_version_and_commit() {
    let ran = Workspace::new().typed(&["--version"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.starts_with("attest-policy "), "{}", ran.out);
}

#[test_case("completion-bash")]
#[test_case("completion-zsh")]
#[test_case("completion-fish")]
#[test_case("man")]
#[test_case("markdown")]
fn texts_are_made_from_the_definition(kind: &str) {
    let ran = Workspace::new().typed(&["--generate", kind]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("attest-policy"), "{}", ran.out);
}

#[test_case(&["check"]; "no file")]
#[test_case(&["judge"]; "no such command")]
#[test_case(&["check", "a", "b"]; "two files")]
#[test_case(&["check", "gone.toml"]; "a file that is not there")]
#[test_case(&["check", ".attest"]; "a folder")]
fn usage_and_files_that_cannot_be_read_are_exit_2(args: &[&str]) {
    let ran = Workspace::new().typed(args);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    assert_ne!(ran.err, "");
}
