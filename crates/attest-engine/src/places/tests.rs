//! Places that clash and places that do not, however they are named.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["src/deep", "out", "elsewhere"] {
        fs_err::create_dir_all(folder.path().join(name)).unwrap();
    }
    symlink("src/deep", folder.path().join("link")).unwrap();
    symlink("..", folder.path().join("elsewhere/back")).unwrap();
    folder
}

/// The message about files, the state folder and an input and an output, if there is one.
fn said(folder: &TempDir, files: &[(&'static str, &str)], state: &str) -> Option<String> {
    let at = |name: &str| folder.path().join(name);
    let state = State::new(folder.path(), at(state));
    let paths: Vec<_> = files.iter().map(|(name, file)| (*name, at(file))).collect();
    let declared = |role, path| Declared {
        step: "s",
        role,
        path,
    };
    let checked = Places {
        state: &state,
        files: paths.iter().map(|(name, file)| (*name, &**file)).collect(),
        pipeline: Some(&at("attest.yaml")),
        declared: vec![declared("input", "./src/"), declared("output", "out/app")],
    }
    .check();
    let text = checked.err()?.to_string();
    Some(text.replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn files_beside_what_is_declared_are_fine() {
    let folder = folder();
    for file in [
        "r.yaml",
        "out/r.yaml",
        "out/app.yaml",
        "src.yaml",
        "elsewhere/r.yaml",
        ".attest/receipts/r.yaml",
        "src/../r.yaml",
        "link/../../r.yaml",
    ] {
        assert_eq!(
            said(&folder, &[("--output", file)], ".attest"),
            None,
            "{file}"
        );
    }
    let files = [("--receipt", "r.yaml"), ("--report", "r.json")];
    assert_eq!(said(&folder, &files, "elsewhere/state"), None);
    // What it was given holds the state, and not the other way round.
    assert_eq!(said(&folder, &files, "."), None);
}

#[test]
fn a_file_in_what_is_declared_is_refused_however_it_is_named() {
    let folder = folder();
    for (file, declared) in [
        ("src", "input `./src/`"),
        ("src/r.yaml", "input `./src/`"),
        ("./src/deep/../new/r.yaml", "input `./src/`"),
        ("link/r.yaml", "input `./src/`"),
        ("elsewhere/back/src/r.yaml", "input `./src/`"),
        ("out/app", "output `out/app`"),
        ("out/app/r.yaml", "output `out/app`"),
        ("elsewhere/../out/app", "output `out/app`"),
        // A folder that the step has yet to make would be in the way.
        ("out", "output `out/app`"),
    ] {
        let text = format!(
            "--output names `{file}`, which clashes with the declared {declared} of step 's'"
        );
        let told = said(&folder, &[("--output", file)], ".attest");
        assert_eq!(told, Some(text));
    }
}

#[test]
fn a_file_that_a_declared_link_leads_to_is_refused() {
    let folder = folder();
    symlink("../elsewhere/app", folder.path().join("out/app")).unwrap();
    fs_err::write(folder.path().join("elsewhere/app"), "").unwrap();
    let told = said(&folder, &[("--report", "elsewhere/app")], ".attest");
    assert!(told.unwrap().contains("declared output `out/app`"));
}

#[test]
fn two_options_or_an_option_and_the_pipeline_file_are_two_files() {
    let folder = folder();
    for report in ["r.yaml", "elsewhere/../r.yaml", "r.yaml/x"] {
        let files = [("--receipt", "r.yaml"), ("--report", report)];
        let text = format!("--report and --receipt name the same place: `{report}`");
        assert_eq!(said(&folder, &files, ".attest"), Some(text));
    }
    for file in ["attest.yaml", "elsewhere/back/attest.yaml"] {
        let text = format!("--output names the pipeline file: `{file}`");
        let told = said(&folder, &[("--output", file)], ".attest");
        assert_eq!(told, Some(text));
    }
    for state in ["new", "new/state", "elsewhere/back/new"] {
        let told = said(&folder, &[("--output", "new")], state);
        let text = "--output and the state folder name the same place: `new`";
        assert_eq!(told.as_deref(), Some(text));
    }
}

#[test]
fn state_in_what_is_declared_is_refused() {
    let folder = folder();
    for state in ["src", "src/st", "link/st", "elsewhere/../src/st"] {
        let text = format!(
            "the state folder `{state}` lies in the declared input `./src/` of step 's', which \
             would be hashed with what attest itself writes there"
        );
        assert_eq!(said(&folder, &[], state), Some(text));
    }
}

#[test]
fn the_workspace_holds_its_state_unless_that_is_elsewhere() {
    let folder = folder();
    let elsewhere = tempfile::tempdir().unwrap();
    let own = State::new(folder.path(), folder.path().join(".attest"));
    for declared in [".", "./", ".attest", ".attest/"] {
        assert_eq!(state_in(&own, declared), Some(own.folder().to_owned()));
    }
    assert_eq!(state_in(&own, ".attest/cache"), Some(own.cache()));
    // A receipt of another run may be what a step reads.
    for declared in [
        ".attest/receipts/r.yaml",
        ".attest/capsules",
        "src",
        ".attes",
    ] {
        assert_eq!(state_in(&own, declared), None, "{declared}");
    }
    let other = State::new(folder.path(), elsewhere.path());
    assert_eq!(state_in(&other, "."), None);
}
