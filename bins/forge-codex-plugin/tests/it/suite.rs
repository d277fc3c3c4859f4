//! The conformance suite, as anybody runs it.

use std::path::Path;
use std::process::Command;

use crate::fake::e2e;

#[test]
fn the_script_runs_the_suite_against_every_reference_plugin() {
    let programs = Path::new(crate::PROGRAM).parent().unwrap();
    for name in [
        "forge-plugin-conformance",
        "forge-ref-plugin",
        "forge-exec-plugin",
    ] {
        assert!(
            programs.join(name).is_file(),
            "`{name}` is not built; run `cargo build -p {name}`"
        );
    }
    let output = Command::new("sh")
        .arg(e2e("plugin-conformance.sh"))
        // The strict runs measure times; CI has a stage for them, with nothing beside it.
        .arg("--usual")
        .env("FORGE_BIN_DIR", programs)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    for label in [
        "== forge-ref-plugin (text)",
        "== forge-plugin-v1.py (text)",
        "== forge-codex-plugin (workspace_edit)",
    ] {
        assert!(said.contains(label), "{said}");
    }
    assert!(said.trim_end().ends_with(", 0 failed"), "{said}");
}
