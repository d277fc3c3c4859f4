//! The real Codex CLI, and a model provider on loopback that it talks to. The tests of `forge` take
//! this file too; `crate::PROGRAM` is the program under test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The variable that the configuration takes the provider's key from.
pub(crate) const KEY: &str = "CODEX_TEST_KEY";

/// The real CLI. Tests that need it fail without it; they are never skipped.
pub(crate) fn real_codex() -> PathBuf {
    let named = std::env::var_os("FORGE_TEST_CODEX");
    let path = match named {
        Some(path) => PathBuf::from(path),
        // <target>/<profile>/<program>
        None => Path::new(crate::PROGRAM)
            .ancestors()
            .nth(2)
            .unwrap()
            .join("tools/bin/codex"),
    };
    assert!(
        path.is_file(),
        "the real Codex CLI is not at `{}`; `cargo xtask tools` fetches it, or FORGE_TEST_CODEX names it",
        path.display()
    );
    path
}

/// A provider that runs until it is dropped.
pub(crate) struct Provider {
    child: Child,
    pub(crate) port: u16,
}

impl Provider {
    /// Answers with one command and then with the final message.
    pub(crate) fn start(command: &str, last: &str) -> Self {
        let mut child = Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/codex-provider.py"))
            .args([command, last])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().parse().unwrap();
        Self { child, port }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Writes the configuration of the CLI.
pub(crate) fn configure(home: &Path, port: u16) {
    std::fs::create_dir(home).unwrap();
    let config = format!(
        "model = \"stand-in\"\nmodel_provider = \"stand-in\"\n\n\
         [model_providers.stand-in]\nname = \"stand-in\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         env_key = \"{KEY}\"\nwire_api = \"responses\"\n"
    );
    std::fs::write(home.join("config.toml"), config).unwrap();
}
