//! What the original wrote is read, signed and written again to the byte.

use std::fs;
use std::path::{Path, PathBuf};

use attest_receipt::capsule::Capsule;
use attest_receipt::receipt::{self, Execution, Receipt};
use attest_receipt::{encode, pipeline};

const SIGNED: &[&str] = &[
    "r1_pipeline_signed.yaml",
    "r6_wrapped.yaml",
    "v0.1.0/r1_pipeline_signed.yaml",
];

pub(crate) const ALL: &[&str] = &[
    "r1_pipeline_signed.yaml",
    "r3_unsigned.yaml",
    "r6_wrapped.yaml",
    "v0.1.0/r1_pipeline_signed.yaml",
];

/// All receipts of the original that are stored here.
fn stored() -> Vec<String> {
    let later = [
        "cached_signed",
        "failed_signed",
        "passed_signed",
        "passed_unsigned",
        "reproducible_signed",
        "wrapped_signed",
    ];
    let later = later.iter().map(|name| format!("v0.4.0/{name}.yaml"));
    let all = ALL.iter().map(|name| (*name).to_owned());
    all.chain(later).collect()
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

pub(crate) fn receipt(name: &str) -> Receipt {
    receipt::read(&bytes(name)).unwrap()
}

#[test]
fn a33_signing_bytes_of_the_originals_are_theirs() {
    for name in SIGNED {
        let expected = bytes(&format!("{name}.signing.json"));
        let signing = receipt(name).signing_bytes();
        assert_eq!(
            String::from_utf8_lossy(&signing),
            String::from_utf8_lossy(&expected),
            "{name}"
        );
    }
}

#[test]
fn a33_receipts_without_plugins_are_written_as_the_original_wrote_them() {
    for name in stored() {
        let name = name.as_str();
        let written = receipt(name).to_yaml().unwrap();
        assert_eq!(written, String::from_utf8(bytes(name)).unwrap(), "{name}");
    }
}

#[test]
fn the_originals_receipts_are_coherent() {
    for name in stored() {
        let name = name.as_str();
        assert_eq!(receipt(name).problems(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_receipt_in_json_is_the_same_receipt() {
    for name in stored() {
        let name = name.as_str();
        let receipt = receipt(name);
        let json = serde_json::to_vec_pretty(&receipt).unwrap();
        assert_eq!(receipt::read(&json).unwrap(), receipt, "{name}");
    }
}

#[test]
fn a_wrapped_command_hashes_as_the_original_hashes_it() {
    let receipt = receipt("r6_wrapped.yaml");
    let provenance = receipt.provenance.unwrap();
    let Some(Execution::Wrapped { command }) = provenance.execution else {
        panic!("not wrapped");
    };
    assert_eq!(pipeline::wrapped_hash(&command), receipt.pipeline_hash);
    let text = pipeline::wrapped_command(&command);
    assert_eq!(
        encode::blake3_hex(text.as_bytes()),
        provenance.steps[0].command_hash
    );
}

#[test]
fn the_input_manifest_hashes_to_the_steps_input_hash() {
    let manifest = bytes("build.input-manifest.txt");
    let receipt = receipt("r1_pipeline_signed.yaml");
    let build = receipt.steps.iter().find(|step| step.name == "build");
    assert_eq!(encode::blake3_hex(&manifest), build.unwrap().input_hash);
}

#[test]
fn pipelines_of_the_last_release_have_the_hash_of_their_receipts() {
    for (file, receipts) in [
        (
            "v0.4.0/workspace/attest.yaml",
            &["v0.4.0/passed_signed.yaml"][..],
        ),
        (
            "v0.4.0/failed.attest.yaml",
            &["v0.4.0/failed_signed.yaml", "v0.4.0/cached_signed.yaml"],
        ),
    ] {
        let pipeline = pipeline::Pipeline::read(&bytes(file)).unwrap();
        for name in receipts {
            assert_eq!(
                pipeline.hash().unwrap(),
                receipt(name).pipeline_hash,
                "{name}"
            );
        }
    }
}

#[test]
fn the_capsule_of_the_last_release_has_its_hash() {
    let capsule = Capsule::read(&bytes("v0.4.0/capsule.yaml")).unwrap();
    assert_eq!(
        capsule.to_yaml().unwrap().as_bytes(),
        bytes("v0.4.0/capsule.yaml")
    );
}
