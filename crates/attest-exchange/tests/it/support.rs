//! The vectors, a key to sign with, and archives that no writer makes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use attest_exchange::archive::{self, Archive, ArchiveError, Limits, Parts};
use attest_receipt::encode::hex;
use attest_receipt::receipt::{self, Receipt};
use attest_verify::trust::{KeyId, PublicKey, Trust, TrustStore};
use ed25519_dalek::{Signer, SigningKey};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

pub(crate) fn vector_path(name: &str) -> PathBuf {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../attest-receipt/tests/vectors/v0.4.0"
    );
    PathBuf::from(folder).join(name)
}

pub(crate) fn vector(name: &str) -> Vec<u8> {
    std::fs::read(vector_path(name)).unwrap()
}

/// The store of the vectors.
pub(crate) fn trust() -> Trust {
    let files = std::fs::read_dir(vector_path("trust"))
        .unwrap()
        .map(|file| {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            (name, std::fs::read(file.path()).unwrap())
        });
    store(files.collect())
}

pub(crate) fn store(files: Vec<(String, Vec<u8>)>) -> Trust {
    Trust::Store(TrustStore::from_files(files).unwrap().into())
}

/// A key of the tests.
pub(crate) struct Key(SigningKey);

impl Key {
    pub(crate) fn new(seed: u8) -> Self {
        Self(SigningKey::from_bytes(&[seed; 32]))
    }

    pub(crate) fn public(&self) -> PublicKey {
        PublicKey::from_raw(self.0.verifying_key().to_bytes()).unwrap()
    }

    pub(crate) fn id(&self) -> KeyId {
        self.public().key_id()
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// A store in which the key has this standing.
    pub(crate) fn trusted_as(&self, status: &str) -> Trust {
        let id = self.id();
        let policy = format!("version = 1\n[[key]]\nid = \"{id}\"\nname = \"test\"\n{status}\n");
        store(vec![
            ("trust.toml".to_owned(), policy.into_bytes()),
            (
                format!("{id}.pub"),
                self.public().to_spki_pem().into_bytes(),
            ),
        ])
    }

    /// Signs a receipt anew and returns its file.
    pub(crate) fn sign_receipt(&self, receipt: &mut Receipt) -> Vec<u8> {
        receipt.signature = None;
        receipt.signer_public_key = None;
        let signature = self.sign(&receipt.signing_bytes());
        receipt.signature = Some(hex(&signature));
        receipt.signer_public_key = Some(self.public().hex());
        receipt.to_yaml().unwrap().into_bytes()
    }
}

/// The receipt of a vector and its events.
pub(crate) struct Ledgered {
    pub(crate) bytes: Vec<u8>,
    pub(crate) receipt: Receipt,
    pub(crate) events: BTreeMap<String, Vec<u8>>,
}

pub(crate) fn ledgered(name: &str) -> Ledgered {
    let bytes = vector(name);
    let receipt = receipt::read(&bytes).unwrap();
    let events = receipt
        .causal_events
        .iter()
        .map(|id| (id.clone(), vector(&format!("ledger/{id}.json"))))
        .collect();
    Ledgered {
        bytes,
        receipt,
        events,
    }
}

impl Ledgered {
    pub(crate) fn archive(&self) -> Vec<u8> {
        archive::write(&Parts {
            bytes: &self.bytes,
            receipt: &self.receipt,
            events: &self.events,
        })
        .unwrap()
    }
}

/// A tar that is put together by hand.
#[derive(Clone, Default)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Raw {
    /// The entries that an archive needs.
    pub(crate) fn whole() -> Self {
        let sample = ledgered("passed_signed.yaml");
        let manifest = format!(
            "{{\"format\":\"attest-archive/v1\",\"created\":\"{}\",\"attest_version\":\"{}\"}}",
            sample.receipt.timestamp.with_offset(),
            sample.receipt.attest_version
        );
        let mut raw = Self::default();
        for (id, bytes) in &sample.events {
            raw = raw.file(&format!("events/{id}.json"), bytes);
        }
        raw.file("manifest.json", manifest.as_bytes())
            .file("receipt.yaml", &sample.bytes)
    }

    pub(crate) fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.entry(name, bytes, |_| {})
    }

    /// Adds an entry whose header is changed and then has its checksum again.
    pub(crate) fn entry(
        mut self,
        name: &str,
        bytes: &[u8],
        change: impl FnOnce(&mut [u8; 512]),
    ) -> Self {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        for (at, text) in [
            (100, "0000644\0"),
            (108, "0000000\0"),
            (116, "0000000\0"),
            (136, "00000000000\0"),
            (257, "ustar\x0000"),
        ] {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        let size = format!("{:011o}\0", bytes.len());
        header[124..136].copy_from_slice(size.as_bytes());
        header[156] = b'0';
        change(&mut header);
        checksum(&mut header);
        self.0.extend(header);
        self.0.extend(bytes);
        let padded = self.0.len().next_multiple_of(512);
        self.0.resize(padded, 0);
        self
    }

    pub(crate) fn end(mut self) -> Self {
        self.0.extend([0; 1024]);
        self
    }

    pub(crate) fn zst(&self) -> Vec<u8> {
        compress_to_vec(self.0.as_slice(), CompressionLevel::Fastest)
    }

    pub(crate) fn read(&self) -> Result<Archive, ArchiveError> {
        archive::read(&self.zst(), &Limits::default())
    }
}

pub(crate) fn checksum(header: &mut [u8; 512]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:07o}\0").as_bytes());
}
