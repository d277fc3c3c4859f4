//! `login`, and who may read what it keeps.

use std::io::Write as _;
use std::process::Stdio;

use super::service::{PUBLISH, Place};
use crate::bed::Ran;

const FILE: &str = "home/.config/backplane/credentials.toml";

fn with_home(place: &Place, args: &[&str], input: &str) -> Ran {
    let mut command = place.bed.program(args);
    command
        .env("HOME", place.bed.path("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end without having read anything.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!ran.out.contains(PUBLISH) && !ran.err.contains(PUBLISH));
    ran
}

#[test]
fn a_token_is_checked_kept_privately_and_used() {
    let place = Place::plain();
    let url = place.url();
    let login = ["login", "--registry", &url, "--token-stdin"];
    let unknown = with_home(&place, &login, "unknown-token-0123456789\n")
        .expect(2)
        .says("does not know the token")
        .says("the token is from standard input")
        .says("nothing was kept");
    assert!(
        !unknown.err.contains("no token was sent"),
        "{}",
        unknown.err
    );
    assert!(!place.bed.path(FILE).exists());
    let known = with_home(&place, &login, &format!("{PUBLISH}\n")).expect(0);
    assert!(known.out.contains("ci"), "{}", known.out);
    assert_eq!(place.bed.mode_of(FILE), 0o600);
    let publish = ["publish", "./notes", "--registry", &url];
    with_home(&place, &publish, "").expect(0);
    // A name of the same machine is another registry, and gets no token.
    let other = url.replace("127.0.0.1", "localhost");
    with_home(&place, &["catalog", "--registry", &other], "")
        .expect(2)
        .says("no token was sent");
    // One that is kept already is not the one that was refused.
    with_home(&place, &login, "unknown-token-0123456789\n")
        .expect(2)
        .says("from standard input");
    for mode in [0o644, 0o640, 0o604] {
        place.bed.mode(FILE, mode);
        with_home(&place, &["catalog", "--registry", &url], "")
            .expect(2)
            .says("chmod 600");
    }
}

#[test]
fn a_token_may_be_kept_unasked_and_files_name_the_registry() {
    let place = Place::plain();
    let config = format!("registry = \"{}\"\n", place.url());
    place
        .bed
        .write("home/.config/backplane/config.toml", config);
    let login = ["login", "--token-stdin", "--no-check"];
    let kept = with_home(&place, &login, PUBLISH).expect(0);
    assert_eq!(kept.out, "");
    with_home(&place, &["publish", "./notes"], "").expect(0);
    let text = "registry = \"https://x\"\ntoken = \"t\"\n";
    place.bed.write("home/.config/backplane/config.toml", text);
    with_home(&place, &["catalog"], "")
        .expect(2)
        .says("token_file");
}
