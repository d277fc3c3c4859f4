//! `attest sign`: in place or elsewhere, as a whole or not at all.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::sync::Mutex;

use stamp_authority::Stamper;

use crate::authority::{TIME, Tsa, granted};
use crate::bed::{Bed, ran, snapshot};

const UNSIGNED: &str = "r3_unsigned.yaml";

fn bed() -> Bed {
    let bed = Bed::with_vectors();
    bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
    bed
}

#[test]
fn a_receipt_is_signed_in_place_and_verifies() {
    let bed = bed();
    std::fs::set_permissions(bed.path(UNSIGNED), PermissionsExt::from_mode(0o640)).unwrap();
    let ran = bed.attest(&["sign", UNSIGNED]).expect(0);
    assert_eq!(ran.out, format!("{UNSIGNED}\n"));
    let mode = std::fs::metadata(bed.path(UNSIGNED))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    bed.attest(&["verify", "--require", "signature", UNSIGNED])
        .expect(0);
}

#[test]
fn nothing_but_the_signature_changes() {
    let bed = bed();
    let ran = bed
        .attest(&["sign", UNSIGNED, "-o", "signed.yaml"])
        .expect(0);
    assert_eq!(ran.out, "signed.yaml\n");
    let ran = bed
        .attest(&["diff", "--format", "json", UNSIGNED, "signed.yaml"])
        .expect(1);
    let record: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let differences = record["differences"].as_array().unwrap();
    let paths: Vec<_> = differences.iter().map(|one| &one["path"][0]).collect();
    assert_eq!(paths, ["signature", "signer_public_key"]);
    assert_eq!(record["expected"].as_array().unwrap().len(), 0);
}

#[test]
fn a_link_leads_to_the_receipt_that_is_signed() {
    let bed = bed();
    symlink(UNSIGNED, bed.path("latest.yaml")).unwrap();
    bed.attest(&["sign", "latest.yaml"]).expect(0);
    assert!(bed.path("latest.yaml").is_symlink());
    bed.attest(&["verify", UNSIGNED]).expect(0);
}

#[test]
fn what_nobody_should_sign_is_the_answer_no() {
    let bed = bed();
    let text = bed.read(UNSIGNED);
    bed.write("list.yaml", "- a\n");
    bed.write("broken.yaml", "steps: [\n");
    bed.write("field.yaml", text.clone() + "extra: 1\n");
    bed.write("twice.yaml", text.replace("name: alone", "name: test"));
    bed.write(
        "half.yaml",
        text.replace("signature: null", "signature: aa"),
    );
    bed.write("stamped.yaml", text.clone() + "timestamp_token: AAAA\n");
    let before = snapshot(bed.folder());
    for (name, says) in [
        ("list.yaml", "is not a receipt"),
        ("broken.yaml", "broken.yaml"),
        ("field.yaml", "extra"),
        ("twice.yaml", "refusing to sign"),
        ("half.yaml", "already signed"),
        ("stamped.yaml", "timestamp"),
        ("r1_pipeline_signed.yaml", "already signed by 6ef3714ba22a"),
    ] {
        let ran = bed.attest(&["sign", name]).expect(1);
        assert!(ran.err.contains(says), "{name}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn keys_are_chosen_by_id_where_there_are_several() {
    let bed = bed();
    let second = bed
        .attest(&["keys", "generate", "--name", "two"])
        .expect(0)
        .out;
    bed.attest(&["sign", UNSIGNED]).expect(2).says("--key");
    bed.attest(&["sign", UNSIGNED, "--key", second.trim_end()])
        .expect(0);
    let listed = bed.attest(&["keys", "list"]).expect(0).out;
    assert_eq!(listed.lines().count(), 2);
    bed.attest(&["verify", UNSIGNED]).expect(0);
}

#[test]
fn wrong_invocations_say_what_to_do_and_change_nothing() {
    let bed = Bed::with_vectors();
    let before = snapshot(bed.folder());
    bed.attest(&["sign"]).expect(2).says("<RECEIPT>");
    bed.attest(&["sign", "gone.yaml"])
        .expect(2)
        .says("gone.yaml");
    bed.attest(&["sign", UNSIGNED])
        .expect(2)
        .says("attest keys generate --name");
    bed.attest(&["sign", UNSIGNED, "--key", "nonsense"])
        .expect(2)
        .says("32 lowercase");
    bed.attest(&["sign", UNSIGNED, "--workspace", "gone"])
        .expect(2)
        .says("there is no such folder");
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn a_destination_that_cannot_be_written_leaves_nothing_behind() {
    let bed = bed();
    let before = snapshot(bed.folder());
    for output in ["gone/signed.yaml", "trust"] {
        let ran = bed
            .attest(&["sign", UNSIGNED, "--output", output])
            .expect(2);
        assert!(ran.err.contains("cannot be written"), "{}", ran.err);
        assert_eq!(ran.out, "");
    }
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn of_two_that_sign_at_once_one_does() {
    let bed = bed();
    let second = bed
        .attest(&["keys", "generate", "--name", "two"])
        .expect(0)
        .out;
    let keys = bed.names(".attest/keys");
    let ids = keys.iter().filter_map(|name| name.strip_suffix(".key"));
    let ids: Vec<&str> = ids.collect();
    assert!(ids.contains(&second.trim_end()) && ids.len() == 2);
    let unsigned = bed.read(UNSIGNED);
    for round in 0..8 {
        bed.write(UNSIGNED, &unsigned);
        // The same file by another name is the same file.
        let same = format!("./{UNSIGNED}");
        let started: Vec<_> = [vec![], vec!["--output", &same]]
            .into_iter()
            .zip(&ids)
            .map(|(more, id)| {
                let mut args = vec!["sign", UNSIGNED, "--key", *id];
                args.extend(more);
                let mut program = bed.program(&args);
                program.stdout(Stdio::null()).stderr(Stdio::piped());
                program.spawn().unwrap()
            })
            .collect();
        let mut ends: Vec<_> = started
            .into_iter()
            .map(|child| {
                let output = child.wait_with_output().unwrap();
                let said = String::from_utf8(output.stderr).unwrap();
                (output.status.code(), said)
            })
            .collect();
        ends.sort();
        assert_eq!(
            (ends[0].0, ends[1].0),
            (Some(0), Some(1)),
            "{round} {ends:?}"
        );
        assert!(ends[1].1.contains("already signed by"), "{ends:?}");
        bed.attest(&["verify", UNSIGNED]).expect(0);
    }
}

#[test]
fn who_signed_while_an_authority_was_asked_is_not_overwritten() {
    let bed = bed();
    let mine = bed
        .attest(&["keys", "generate", "--name", "two"])
        .expect(0)
        .out;
    let other = bed.names(".attest/keys");
    let other = other
        .iter()
        .filter_map(|name| name.strip_suffix(".key"))
        .find(|id| *id != mine.trim_end())
        .unwrap()
        .to_owned();
    let program = Mutex::new(bed.program(&["sign", UNSIGNED, "--key", &other]));
    let tsa = Tsa::saying(move |identity, asked| {
        ran(&mut program.lock().unwrap()).expect(0);
        granted(&Stamper::for_request(identity, asked, TIME).token())
    });
    let ran = bed
        .attest(&[
            "sign",
            UNSIGNED,
            "--key",
            mine.trim_end(),
            "--timestamp",
            "--tsa",
            &tsa.url,
        ])
        .expect(1);
    assert!(ran.err.contains("already signed by"), "{}", ran.err);
    assert!(!bed.read(UNSIGNED).contains("timestamp_token"));
    bed.attest(&["verify", UNSIGNED]).expect(0);
}

#[test]
fn what_killed_ones_left_beside_a_receipt_is_swept() {
    let bed = bed();
    let left = ".safe-fs-0123456789abcdef.tmp";
    let other = ".safe-fs-0123456789abcdef.tmp.mine";
    for args in [
        &["sign", UNSIGNED][..],
        &["sign", "second.yaml", "--output", "third.yaml"],
    ] {
        bed.write(
            "second.yaml",
            std::fs::read(crate::bed::vectors().join(UNSIGNED)).unwrap(),
        );
        bed.write(left, "half");
        bed.write(other, "whole");
        bed.attest(args).expect(0);
        assert!(!bed.path(left).exists() && bed.path(other).exists());
    }
}

#[test]
fn keys_that_are_not_trusted_leave_the_choice_to_the_one_that_is() {
    let bed = bed();
    let policy = bed.read(".attest/trust/trust.toml");
    // As a process leaves it that was killed before it wrote the policy.
    bed.attest(&["keys", "generate", "--name", "two"]).expect(0);
    bed.write(".attest/trust/trust.toml", policy);
    let ran = bed.attest(&["sign", UNSIGNED]).expect(0);
    assert!(
        ran.err
            .contains("one private key that the policy does not trust"),
        "{}",
        ran.err
    );
    bed.attest(&["verify", UNSIGNED]).expect(0);
    bed.write(".attest/trust/trust.toml", "version = 1\n");
    bed.write(
        "second.yaml",
        std::fs::read(crate::bed::vectors().join(UNSIGNED)).unwrap(),
    );
    bed.attest(&["sign", "second.yaml"])
        .expect(2)
        .says("none of the 2 private keys");
}
