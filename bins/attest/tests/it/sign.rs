//! `attest sign`: in place or elsewhere, as a whole or not at all.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::bed::{Bed, snapshot};

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
        .attest(&["sign", UNSIGNED, "--output", "signed.yaml"])
        .expect(0);
    assert_eq!(ran.out, "signed.yaml\n");
    let ran = bed
        .attest(&["diff", "--format", "json", UNSIGNED, "signed.yaml"])
        .expect(1);
    let record: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let path = |group: &str| record[group][0]["path"][0].as_str().unwrap().to_owned();
    assert_eq!(path("differences"), "signer_public_key");
    assert_eq!(path("expected"), "signature");
    assert_eq!(record["differences"].as_array().unwrap().len(), 1);
    assert_eq!(record["expected"].as_array().unwrap().len(), 1);
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
        .says("attest keys generate");
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
