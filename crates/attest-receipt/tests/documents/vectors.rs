//! What the original wrote is read, signed and written again to the byte.

use std::fs;
use std::path::{Path, PathBuf};

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
    for name in ALL {
        let written = receipt(name).to_yaml().unwrap();
        assert_eq!(written, String::from_utf8(bytes(name)).unwrap(), "{name}");
    }
}

#[test]
fn the_originals_receipts_are_coherent() {
    for name in ALL {
        assert_eq!(receipt(name).problems(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_receipt_in_json_is_the_same_receipt() {
    for name in ALL {
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
