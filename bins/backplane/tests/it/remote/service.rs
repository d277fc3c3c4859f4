//! A registry that is the program itself, with tokens, over TLS or on loopback.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::bed::{Bed, Ran, ran};

/// Longer than anything here should take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const READ: &str = "read-token-0123456789abcdef0123456789";
pub(super) const PUBLISH: &str = "publish-token-0123456789abcdef012345";
pub(super) const ALL: &str = "all-token-0123456789abcdef0123456789ab";

/// A folder with a package, tokens and a registry's root, and perhaps a registry that runs there.
pub(super) struct Place {
    pub(super) bed: Bed,
    tls: bool,
    address: Option<String>,
    registry: Option<Registry>,
}

struct Registry {
    child: Child,
    _lines: Receiver<String>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Place {
    /// Starts a registry on loopback.
    pub(super) fn plain() -> Self {
        Self::start(false)
    }

    /// Starts one over TLS with an authority of its own.
    pub(super) fn tls() -> Self {
        Self::start(true)
    }

    fn start(tls: bool) -> Self {
        let bed = Bed::with_package();
        let mut config = String::new();
        if tls {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            bed.write("ca.pem", made.cert.pem());
            bed.write("key.pem", made.signing_key.serialize_pem());
            bed.mode("key.pem", 0o600);
            let path = |name: &str| bed.path(name).display().to_string();
            config = format!(
                "[tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n",
                path("ca.pem"),
                path("key.pem")
            );
        }
        for (name, scopes, token) in [
            ("reader", "\"read\"", READ),
            ("ci", "\"read\", \"publish\"", PUBLISH),
            ("operator", "\"*\"", ALL),
        ] {
            let file = bed.write(&format!("{name}.token"), format!("{token}\n"));
            bed.mode(&format!("{name}.token"), 0o600);
            config += &format!(
                "[[tokens]]\nname = \"{name}\"\nscopes = [{scopes}]\ntoken_file = \"{}\"\n",
                file.display()
            );
        }
        bed.write("registry.toml", config);
        let mut place = Self {
            bed,
            tls,
            address: None,
            registry: None,
        };
        place.again();
        place
    }

    /// Starts the registry of the folder, at the address that it had.
    pub(super) fn again(&mut self) {
        self.registry = None;
        let listen = self.address.clone().unwrap_or("127.0.0.1:0".to_owned());
        let mut command = Command::new(env!("CARGO_BIN_EXE_backplane"));
        command
            .args(["serve", "--root", "root", "--config", "registry.toml"])
            .args(["--log-format", "json", "--listen", &listen])
            .current_dir(self.bed.folder())
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // The log is read to its end, whether or not anybody listens.
                drop(sender.send(line));
            }
        });
        let mut log = String::new();
        loop {
            let line = lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("not listening: {log}"));
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            if event["event"] == "listening" {
                self.address = event["address"].as_str().map(str::to_owned);
                break;
            }
            log += &line;
        }
        self.registry = Some(Registry {
            child,
            _lines: lines,
        });
    }

    /// Kills the registry without a warning.
    pub(super) fn kill(&mut self) {
        self.registry = None;
    }

    pub(super) fn address(&self) -> &str {
        self.address.as_deref().unwrap()
    }

    pub(super) fn url(&self) -> String {
        let address = self.address();
        match self.tls {
            true => format!("https://{}", address.replace("127.0.0.1", "localhost")),
            false => format!("http://{address}"),
        }
    }

    /// Runs a line with the token of that name, if any.
    pub(super) fn line(&self, token: &str, line: &str) -> Ran {
        let args: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let mut command = self.bed.program(&args);
        command.env("BACKPLANE_URL", self.url());
        if self.tls {
            command.env("BACKPLANE_CA_FILE", "ca.pem");
        }
        if !token.is_empty() {
            command.env("BACKPLANE_TOKEN_FILE", format!("{token}.token"));
        }
        let ran = ran(&mut command);
        for secret in [READ, PUBLISH, ALL] {
            assert!(!ran.out.contains(secret) && !ran.err.contains(secret));
        }
        ran
    }

    /// Publishes the package and returns its release.
    pub(super) fn publish(&self) -> Value {
        self.line("ci", "publish ./notes --channel stable --format json")
            .expect(0)
            .json()
    }

    /// The only artifact that the registry has.
    pub(super) fn artifact(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").unwrap();
        let found = find(&self.bed.path("root/artifacts"), hex);
        found.unwrap_or_else(|| panic!("no {digest}"))
    }
}

fn find(folder: &std::path::Path, name: &str) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if let Some(found) = find(&path, name) {
                return Some(found);
            }
        } else if path.to_string_lossy().replace('/', "").ends_with(name) {
            return Some(path);
        }
    }
    None
}
