//! The workspace, hashed again: what the original made, and one difference at a time.

use std::collections::BTreeMap;
use std::path::Path;

use attest_receipt::encode::blake3_hex;
use attest_receipt::manifest::{Entry, Manifest};
use attest_receipt::receipt::{self, ArtifactKind, Execution, Receipt};
use attest_verify::{Check, CheckName, Options, Status, Workspace, verify};

use crate::common::{check, options, passes, vector, vector_trust, vectors};

/// A change, and what is said of it.
type Change = (fn(&mut Receipt), &'static str);

/// A workspace in memory.
#[derive(Clone)]
struct Memory {
    pipeline: Option<Vec<u8>>,
    files: BTreeMap<String, Entry>,
    capsules: BTreeMap<String, String>,
    unreadable: Option<String>,
}

impl Memory {
    /// The originals' workspace, with what its steps make.
    fn of_vectors() -> Self {
        let root = vectors().join("workspace");
        let mut files = BTreeMap::new();
        collect(&root, &root.join("src"), &mut files);
        let made = [vector("workspace/src/a.txt"), vector("workspace/src/b.txt")].concat();
        files.insert("out/ab.txt".to_owned(), file(&made));
        Self {
            pipeline: Some(vector("workspace/attest.yaml")),
            files,
            capsules: BTreeMap::new(),
            unreadable: None,
        }
    }

    fn manifest(&self, mut manifest: Manifest, declared: &[String]) -> Result<Manifest, String> {
        if let Some(error) = &self.unreadable {
            return Err(error.clone());
        }
        for path in declared {
            let path = path.trim_end_matches('/');
            let mut found = false;
            for (name, entry) in &self.files {
                let below = name.strip_prefix(path);
                if below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
                    manifest.add(name.clone(), entry.clone()).unwrap();
                    found = true;
                }
            }
            if !found {
                return Err(format!("declared input not found: {path}"));
            }
        }
        Ok(manifest)
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Entry>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            collect(root, &path, files);
            continue;
        }
        let content = std::fs::read(&path).unwrap();
        // A link of that workspace is kept as a file that holds its target.
        let entry = if name == "src/link" {
            link(std::str::from_utf8(&content).unwrap())
        } else {
            file(&content)
        };
        files.insert(name, entry);
    }
}

fn file(content: &[u8]) -> Entry {
    Entry {
        kind: ArtifactKind::File,
        digest: blake3_hex(content),
    }
}

fn link(target: &str) -> Entry {
    Entry {
        kind: ArtifactKind::Symlink,
        digest: blake3_hex(target.as_bytes()),
    }
}

impl Workspace for Memory {
    fn pipeline(&self) -> Result<Option<Vec<u8>>, String> {
        Ok(self.pipeline.clone())
    }

    fn inputs(&self, command_hash: &str, declared: &[String]) -> Result<Manifest, String> {
        self.manifest(Manifest::of_inputs(command_hash), declared)
    }

    fn outputs(&self, declared: &[String]) -> Result<Manifest, String> {
        self.manifest(Manifest::of_outputs(), declared)
    }

    fn capsule_hash(&self, name: &str) -> Result<String, String> {
        let missing = || "there is no such capsule".to_owned();
        self.capsules.get(name).cloned().ok_or_else(missing)
    }
}

fn asking() -> Options {
    Options {
        recompute: true,
        ..options()
    }
}

const NATIVE: (&str, &str) = ("r1_pipeline_signed.yaml", "trust");
const WRAPPED: (&str, &str) = ("r6_wrapped.yaml", "trust");
const EARLY: (&str, &str) = ("v0.1.0/r1_pipeline_signed.yaml", "v0.1.0/trust");

/// Recomputes a receipt without its signature, which has tests of its own.
fn recompute(receipt: &Receipt, workspace: &Memory) -> Check {
    let text = receipt.to_yaml().unwrap();
    let trust = vector_trust("trust");
    let outcome = verify(text.as_bytes(), &trust, &asking(), Some(workspace)).unwrap();
    check(&outcome, CheckName::Recompute).clone()
}

fn read(file: &str) -> Receipt {
    receipt::read(&vector(file)).unwrap()
}

#[track_caller]
fn differs(receipt: &Receipt, workspace: &Memory, words: &str) {
    let check = recompute(receipt, workspace);
    assert_eq!(check.status, Status::Fail, "{check:?}");
    assert!(check.detail.contains(words), "{words:?}: {check:?}");
}

/// The wrapped command wrote one file more.
fn wrapped_workspace() -> Memory {
    let mut workspace = Memory::of_vectors();
    workspace
        .files
        .insert("out/w.txt".to_owned(), file(b"a b\n"));
    workspace
}

#[test]
fn receipts_of_the_original_are_recomputed_from_its_workspace() {
    for ((file, folder), workspace) in [
        (NATIVE, Memory::of_vectors()),
        (WRAPPED, wrapped_workspace()),
        (EARLY, Memory::of_vectors()),
    ] {
        let trust = vector_trust(folder);
        let outcome = verify(&vector(file), &trust, &asking(), Some(&workspace)).unwrap();
        passes(&outcome);
        assert_eq!(
            check(&outcome, CheckName::Recompute).status,
            Status::Pass,
            "{file}"
        );
    }
}

#[test]
fn what_was_not_asked_for_is_skipped_and_what_cannot_be_done_fails() {
    let trust = vector_trust("trust");
    let outcome = verify(
        &vector(NATIVE.0),
        &trust,
        &options(),
        Some(&Memory::of_vectors()),
    )
    .unwrap();
    assert_eq!(
        *check(&outcome, CheckName::Recompute),
        Check::new(
            CheckName::Recompute,
            Status::Skipped,
            "enable with --recompute"
        )
    );
    let outcome = verify(&vector(NATIVE.0), &trust, &asking(), None).unwrap();
    assert_eq!(check(&outcome, CheckName::Recompute).status, Status::Fail);
}

#[test]
fn a25_files_that_changed_went_or_came() {
    let receipt = read(NATIVE.0);
    let changes: [(&str, Option<Entry>, &str); 7] = [
        (
            "src/a.txt",
            Some(file(b"other")),
            "step 'build': input hash mismatch",
        ),
        ("src/a.txt", None, "step 'build': input hash mismatch"),
        (
            "src/new.txt",
            Some(file(b"")),
            "step 'build': input hash mismatch",
        ),
        (
            "src/link",
            Some(link("b.txt")),
            "step 'build': input hash mismatch",
        ),
        (
            "out/ab.txt",
            Some(file(b"other")),
            "step 'build': output hash mismatch",
        ),
        ("out/ab.txt", None, "declared input not found: out/ab.txt"),
        (
            "out/ab.txt",
            Some(link("a.txt")),
            "step 'test': input hash mismatch",
        ),
    ];
    for (path, entry, words) in changes {
        let mut workspace = Memory::of_vectors();
        match entry {
            Some(entry) => workspace.files.insert(path.to_owned(), entry),
            None => workspace.files.remove(path),
        };
        differs(&receipt, &workspace, words);
    }
    let mut workspace = Memory::of_vectors();
    workspace.unreadable = Some("out/ab.txt is a FIFO".to_owned());
    differs(&receipt, &workspace, "step 'build': out/ab.txt is a FIFO");
}

#[test]
fn a30_another_pipeline() {
    let receipt = read(NATIVE.0);
    let file = String::from_utf8(vector("workspace/attest.yaml")).unwrap();
    for (from, to, words) in [
        (
            "GREETING: \"hi\"",
            "GREETING: \"ho\"",
            "pipeline hash mismatch",
        ),
        (
            "needs: [\"build\"]",
            "needs: []",
            "step 'test': provenance and workspace pipeline declare different needs",
        ),
        (
            "run: \"test -s",
            "run: \"true -s",
            "declare different commands",
        ),
        (
            "outputs: [\"out/ab.txt\"]",
            "outputs: []",
            "declare different outputs",
        ),
        (
            "inputs: [\"src/\"]",
            "inputs: [\"src\"]",
            "declare different inputs",
        ),
        (
            "  test:\n",
            "  more:\n    run: x\n  test:\n",
            "step 'more' is declared in the workspace pipeline but absent from the receipt",
        ),
        (
            "  alone:\n",
            "  other:\n",
            "step 'alone' is not declared in the workspace pipeline",
        ),
        (
            "    cache: false\n",
            "    cache: false\n    capsule: c\n",
            "step 'test' declares capsule 'c'",
        ),
        ("version:", "versions:", "cannot parse attest.yaml"),
    ] {
        assert!(file.contains(from), "{from}");
        let mut workspace = Memory::of_vectors();
        workspace.pipeline = Some(file.replacen(from, to, 1).into_bytes());
        differs(&receipt, &workspace, words);
    }
    let mut workspace = Memory::of_vectors();
    workspace.pipeline = None;
    differs(&receipt, &workspace, "the workspace has no attest.yaml");
}

#[test]
fn a30_another_receipt() {
    let workspace = Memory::of_vectors();
    let changes: [Change; 6] = [
        (
            |it| drop(it.steps.remove(0)),
            "step 'alone' is declared in the workspace pipeline but absent from the receipt",
        ),
        (
            |it| it.steps[0].name = "x".to_owned(),
            "step 'x' is not declared in the workspace pipeline",
        ),
        (
            |it| it.steps[0].capsule_hash = Some("a".repeat(64)),
            "step 'alone' records a capsule_hash",
        ),
        (
            |it| it.provenance.as_mut().unwrap().steps[2].needs.clear(),
            "different needs",
        ),
        (
            |it| drop(it.provenance.as_mut().unwrap().steps.remove(0)),
            "provenance does not declare step 'alone'",
        ),
        (
            |it| it.pipeline_hash = "0".repeat(64),
            "pipeline hash mismatch (receipt 0000",
        ),
    ];
    for (change, words) in changes {
        let mut receipt = read(NATIVE.0);
        change(&mut receipt);
        differs(&receipt, &workspace, words);
    }
}

#[test]
fn a25_artifacts_are_the_outputs_one_by_one() {
    let workspace = wrapped_workspace();
    let changes: [Change; 5] = [
        (
            |it| it.provenance.as_mut().unwrap().artifacts[0].digest = "0".repeat(64),
            "artifact 'out/ab.txt' is recorded with another digest or kind",
        ),
        (
            |it| it.provenance.as_mut().unwrap().artifacts[0].kind = ArtifactKind::Symlink,
            "artifact 'out/ab.txt' is recorded with another digest or kind",
        ),
        (
            |it| drop(it.provenance.as_mut().unwrap().artifacts.remove(0)),
            "output 'out/ab.txt' is not among the recorded artifacts",
        ),
        (
            |it| it.provenance.as_mut().unwrap().artifacts[0].path = "out/else".to_owned(),
            "1 recorded artifact(s) are no outputs",
        ),
        (
            |it| {
                let artifacts = &mut it.provenance.as_mut().unwrap().artifacts;
                artifacts.insert(0, artifacts[0].clone());
            },
            "artifact 'out/ab.txt' stands twice",
        ),
    ];
    for (change, words) in changes {
        let mut receipt = read(WRAPPED.0);
        change(&mut receipt);
        differs(&receipt, &workspace, words);
    }
    // Results from the cache of some originals name none.
    let mut receipt = read(WRAPPED.0);
    receipt.provenance.as_mut().unwrap().artifacts.clear();
    assert_eq!(recompute(&receipt, &workspace).status, Status::Pass);
}

#[test]
fn a32_the_capsule_of_the_workspace() {
    let mut receipt = read(NATIVE.0);
    let file = String::from_utf8(vector("workspace/attest.yaml")).unwrap();
    let file = file.replace("    cache: false\n", "    cache: false\n    capsule: c\n");
    let pipeline = attest_receipt::pipeline::Pipeline::read(file.as_bytes()).unwrap();
    receipt.pipeline_hash = pipeline.hash().unwrap();
    receipt.steps[2].capsule_hash = Some("a".repeat(64));
    let mut workspace = Memory::of_vectors();
    workspace.pipeline = Some(file.into_bytes());
    differs(
        &receipt,
        &workspace,
        "step 'test': capsule 'c': there is no such capsule",
    );
    workspace.capsules.insert("c".to_owned(), "b".repeat(64));
    differs(&receipt, &workspace, "step 'test': capsule hash mismatch");
    workspace.capsules.insert("c".to_owned(), "a".repeat(64));
    assert_eq!(recompute(&receipt, &workspace).status, Status::Pass);
}

fn wrapped_with(command: &[&str]) -> Receipt {
    let mut receipt = read(WRAPPED.0);
    let command = command.iter().map(|text| (*text).to_owned()).collect();
    receipt.provenance.as_mut().unwrap().execution = Some(Execution::Wrapped { command });
    receipt
}

#[test]
fn a34_the_boundaries_of_arguments_are_part_of_the_command() {
    let workspace = wrapped_workspace();
    let script = "echo \"a b\" > out/w.txt; echo done";
    let whole = wrapped_with(&["sh", "-c", script]);
    assert_eq!(recompute(&whole, &workspace).status, Status::Pass);
    for command in [
        vec!["sh -c", script],
        vec!["sh", "-c", script, ""],
        vec!["sh", &format!("-c {script}")],
        vec!["sh", script, "-c"],
        vec![],
        vec![""],
        vec!["sh", "-c", "\0"],
    ] {
        differs(&wrapped_with(&command), &workspace, "command");
    }
}

#[test]
fn a34_a_wrapped_command_is_one_step_as_it_was_declared() {
    let workspace = wrapped_workspace();
    let changes: [Change; 7] = [
        (|it| it.steps.push(crate::common::step("more")), "one step"),
        (
            |it| it.provenance.as_mut().unwrap().steps.clear(),
            "declares one step",
        ),
        (
            |it| it.steps[0].name = "x".to_owned(),
            "not the step that ran",
        ),
        (
            |it| it.provenance.as_mut().unwrap().steps[0].needs = vec!["x".to_owned()],
            "not the step that ran",
        ),
        (
            |it| it.steps[0].capsule_hash = Some("a".repeat(64)),
            "capsule",
        ),
        (|it| it.pipeline_hash = "0".repeat(64), "pipeline hash"),
        (
            |it| it.provenance.as_mut().unwrap().steps[0].command_hash = "0".repeat(64),
            "command hash",
        ),
    ];
    for (change, words) in changes {
        let mut receipt = read(WRAPPED.0);
        change(&mut receipt);
        differs(&receipt, &workspace, words);
    }
    let mut other = wrapped_workspace();
    other.files.insert("src/a.txt".to_owned(), file(b"x"));
    differs(
        &read(WRAPPED.0),
        &other,
        "step 'wrapit': input hash mismatch",
    );
    let mut other = wrapped_workspace();
    other.files.insert("out/more".to_owned(), file(b"x"));
    differs(
        &read(WRAPPED.0),
        &other,
        "step 'wrapit': output hash mismatch",
    );
}

#[test]
fn an_early_receipt_says_not_how_it_ran() {
    let mut receipt = read(EARLY.0);
    if let Some(provenance) = &mut receipt.provenance {
        assert_eq!(provenance.execution, None);
    }
    let check = recompute(&receipt, &Memory::of_vectors());
    assert_eq!(check.status, Status::Pass);
    assert!(
        check.detail.starts_with("taken for a native run"),
        "{check:?}"
    );
    let mut bare = Memory::of_vectors();
    bare.pipeline = None;
    assert_eq!(recompute(&receipt, &bare).status, Status::Skipped);
    receipt.steps[0].input_hash = "0".repeat(64);
    differs(&receipt, &Memory::of_vectors(), "input hash mismatch");
}

#[test]
fn a09_a_long_name_and_many_artifacts_make_no_long_detail() {
    let mut workspace = wrapped_workspace();
    for n in 0..2_000 {
        workspace.files.insert(format!("out/{n}"), file(b"x"));
    }
    let mut receipt = read(WRAPPED.0);
    let name = "n".repeat(100_000);
    receipt.steps[0].name.clone_from(&name);
    let provenance = receipt.provenance.as_mut().unwrap();
    provenance.steps[0].name.clone_from(&name);
    provenance.artifacts.truncate(1);
    provenance.artifacts[0].step = name;
    provenance.artifacts[0].path = "p".repeat(100_000);
    let check = recompute(&receipt, &workspace);
    assert_eq!(check.status, Status::Fail);
    assert!(check.detail.len() < 16 * 1024, "{}", check.detail.len());
    assert!(check.detail.ends_with(" more"), "{}", check.detail);
}
