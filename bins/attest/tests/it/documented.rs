//! What the documents tell people to type, typed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bed::{Bed, Ran, ran};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The first block of shell under a heading.
fn block(page: &str, heading: &str) -> String {
    let (_, rest) = page.split_once(heading).unwrap();
    let (_, rest) = rest.split_once("```sh\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Runs a script as a person would, with the program in `PATH`.
fn typed(bed: &Bed, script: &str) -> Ran {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_attest"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .current_dir(bed.folder())
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .env_remove("ATTEST_KEYS_DIR")
        .env_remove("ATTEST_STATE_DIR");
    ran(&mut shell)
}

#[test]
fn the_first_receipt_in_five_commands() {
    let script = block(&page("docs/attest.md"), "## Five commands");
    assert_eq!(script.lines().count(), 5, "{script}");
    let bed = Bed::new();
    // The last command is to fail, and nothing before it.
    let (good, tampered) = script.trim_end().rsplit_once('\n').unwrap();
    let before = typed(&bed, &format!("set -e\n{good}")).expect(0);
    assert!(before.out.contains(": pass\n"), "{}", before.out);
    let bed = Bed::new();
    let ran = typed(&bed, &format!("set -e\n{good}\nset +e\n{tampered}")).expect(1);
    assert!(ran.out.contains(": fail\n"), "{}", ran.out);
    assert!(ran.out.contains("signature    FAIL"), "{}", ran.out);
}

#[test]
fn the_readme_can_be_pasted() {
    let script = block(&page("README.md"), "## attest");
    let bed = Bed::new();
    let ran = typed(&bed, &format!("set -e\n{script}")).expect(0);
    assert!(ran.out.contains(": pass\n"), "{}", ran.out);
}

#[test]
fn the_pipeline_of_the_page_is_one() {
    let page = page("docs/attest.md");
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write("attest.yaml", rest.split_once("```").unwrap().0);
    let hello = "#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n";
    bed.write("src/hello.c", hello);
    let receipt = bed.attest(&["run", "--jobs", "2"]).expect(0).out;
    let shown = bed.attest(&["show", receipt.trim_end()]).expect(0).out;
    assert!(shown.contains("build: out/hello"), "{shown}");
}
