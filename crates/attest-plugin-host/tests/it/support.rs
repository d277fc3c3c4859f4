//! Files to start, and the fixture that starts them.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use attest_plugin_host::Executable;
use process_tree::{Capture, Spec, Wrapper, capture};
use tokio_util::sync::CancellationToken;

pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_attest-plugin-host-fixture");

pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file that everybody may execute.
    pub(crate) fn program(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }
}

/// The fixture with a line behind it, which it says with the word `mark`.
pub(crate) fn marked(mark: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(FIXTURE).unwrap();
    bytes.extend_from_slice(b"\n");
    bytes.extend_from_slice(mark.as_bytes());
    bytes
}

/// Starts a held program under the wrapper, without any environment, and returns what it says.
pub(crate) async fn says<const N: usize>(held: &Executable, words: [&str; N]) -> String {
    let words = words.iter().map(OsString::from);
    let argv = std::iter::once(held.program().into()).chain(words);
    let spec = Spec::new(argv);
    let limits = Capture::new(Duration::from_secs(60), 1_000_000);
    let ran = capture(
        &Wrapper::new(FIXTURE),
        spec,
        limits,
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    assert!(ran.exit.is_success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}
