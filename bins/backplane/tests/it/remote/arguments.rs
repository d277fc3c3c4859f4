//! What is said of wrong arguments, before anything is sent.

use test_case::test_case;

use crate::bed::{Bed, snapshot};

const NOWHERE: &str = "--registry http://127.0.0.1:1";

#[test_case("catalog", &["", "--registry ftp://x", "--registry http://x --limit 0", "--registry https://x --limit 1 --all", "--registry http://a.example", "a b"])]
#[test_case("resolve", &["", "acme-notes", "./notes", "Acme", "acme-notes@r-1", "acme-notes@Stable", "--release r-1", "notes.tar.gz"])]
#[test_case("releases", &["", "acme-notes", "./notes", "a@stable", "a --limit x"])]
#[test_case("download", &["", "acme-notes", "sha256:00", "blake3:00", "./p.tar.gz", "a -o no/x.tar.gz --registry http://127.0.0.1:1"])]
#[test_case("login", &["", "--registry https://x", "--token-stdin", "--registry https://u:p@x --token-stdin", "--registry https://x --token-stdin --token-file t"])]
#[test_case("publish", &["", "nope", "notes", "notes --channel r-x", "notes --receipt nope", "p.tar.gz --normalize-modes"])]
#[test_case("promote", &["", "a", "a r-1 --channel stable", "a@b r-00000000000000000000000000000000 --channel stable", "a r-00000000000000000000000000000000", "./a r-0 --channel stable"])]
#[test_case("yank", &["", "a", "a@stable", "a@r-1", "./a", "a@r-00000000000000000000000000000000 --undo --reason x"])]
fn wrong_arguments_get_a_clear_line_and_a_hint(command: &str, lines: &[&str]) {
    let bed = Bed::with_package();
    bed.line("pack notes -o p.tar.gz").expect(0);
    let before = snapshot(bed.folder());
    for line in lines {
        let ran = bed.line(&format!("{command} {line}")).expect(2);
        assert_eq!(ran.out, "", "{line}");
        let first = ran.err.lines().next().unwrap();
        assert!(first.starts_with("error: "), "{line}: {}", ran.err);
        let hint = ran.err.contains("\nhint: ") || ran.err.contains("try '--help'");
        assert!(hint, "{line}: {}", ran.err);
        assert_eq!(snapshot(bed.folder()), before, "{line}");
    }
}

#[test]
fn a_text_to_search_for_that_no_registry_takes_is_refused_unsent() {
    let bed = Bed::with_package();
    let long = "a".repeat(201);
    for query in ["", "a\tb", &long] {
        let mut command = bed.program(&["catalog", query, "--registry", "http://127.0.0.1:1"]);
        crate::bed::ran(&mut command).expect(2).says("1 to 200");
    }
    let longest = "é".repeat(200);
    let mut command = bed.program(&["catalog", &longest, "--registry", "http://127.0.0.1:1"]);
    crate::bed::ran(&mut command)
        .expect(2)
        .says("is it running?");
}

#[test]
fn a_download_does_not_go_to_standard_output() {
    let bed = Bed::with_package();
    let digest = format!("sha256:{}", "0".repeat(64));
    for option in ["-o -", "--receipt -"] {
        let line = format!("download {digest} {option} {NOWHERE}");
        bed.line(&line).expect(2).says("`./-`");
    }
    let line = format!("download {digest} -o ./- {NOWHERE}");
    bed.line(&line).expect(2).says("is it running?");
}

#[test]
fn a_channel_and_a_lone_release_get_the_hint_that_is_theirs() {
    let bed = Bed::with_package();
    let release = format!("r-{}", "0".repeat(32));
    for line in [
        "publish notes --channel Stable".to_owned(),
        format!("promote a {release} --channel Stable"),
        "resolve a@Stable".to_owned(),
    ] {
        bed.line(&line).expect(2).says("for instance `stable`");
    }
    bed.line(&format!("yank {release}"))
        .expect(2)
        .says(&format!("resolve --release {release}"));
}

#[test]
fn two_tokens_at_a_time_and_a_registry_that_does_not_answer_are_said() {
    let bed = Bed::with_package();
    let mut command = bed.program(&["catalog"]);
    command
        .env("BACKPLANE_URL", "http://127.0.0.1:1")
        .env("BACKPLANE_TOKEN", "canary-token-77")
        .env("BACKPLANE_TOKEN_FILE", "x");
    let ran = crate::bed::ran(&mut command).expect(2).says("both set");
    assert!(!ran.err.contains("canary-token-77"));
    let line = format!("catalog {NOWHERE}");
    bed.line(&line).expect(2).says("is it running?");
}
