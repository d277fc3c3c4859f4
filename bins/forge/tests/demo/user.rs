//! A user with an empty temporary folder of their own, which shows what is left behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const FORGE: &str = env!("CARGO_BIN_EXE_forge");
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Home {
    folder: TempDir,
}

/// Everything of a repository that belongs to its user.
pub(crate) struct State {
    pub(crate) refs: Vec<String>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("forge-user-")
            .tempdir()
            .unwrap();
        for name in ["tmp", "src"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// A text that is in the environment of every process of the demonstration, and in no other.
    pub(crate) fn mark(&self) -> String {
        format!("{}/bin", self.folder.path().display())
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(FORGE);
        command
            .args(words)
            .env_clear()
            .env(
                "PATH",
                format!("/usr/local/bin:/usr/bin:/bin:{}", self.mark()),
            )
            .env("TMPDIR", self.folder.path().join("tmp"))
            .env("COLOR", "red")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = self.command(words).output().unwrap();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    pub(crate) fn demo(&self, words: &[&str]) -> (i32, String, String) {
        self.run(&[&["demo"], words].concat())
    }

    /// Writes a file outside of the temporary folder and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A repository with one commit on a branch that is not called main.
    pub(crate) fn repository(&self) -> PathBuf {
        let path = self.folder.path().join("src/app");
        fs::create_dir(&path).unwrap();
        self.git(&path, &["init", "-q", "-b", "trunk", "."]);
        fs::write(path.join("a.txt"), "done\n").unwrap();
        self.git(&path, &["add", "."]);
        self.git(&path, &["commit", "-q", "-m", "base"]);
        self.git(&path, &["branch", "other"]);
        path
    }

    pub(crate) fn git(&self, folder: &Path, words: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=User",
                "-c",
                "user.email=user@example.invalid",
            ])
            .args(words)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?}: {stderr}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    pub(crate) fn state(&self, repository: &Path) -> State {
        let refs = self.git(repository, &["for-each-ref"]);
        let mut files = BTreeMap::new();
        collect(repository, &mut files);
        for name in ["HEAD", "index", "config"] {
            let bytes = fs::read(repository.join(".git").join(name)).unwrap();
            files.insert(format!(".git/{name}"), bytes);
        }
        State {
            refs: refs.lines().map(str::to_owned).collect(),
            files,
        }
    }

    pub(crate) fn state_folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Nothing was left in the temporary folder, and nothing runs.
    pub(crate) fn is_clean(&self) {
        assert_eq!(self.state_folders(), Vec::<PathBuf>::new());
        assert_eq!(
            processes_with(&self.mark(), "environ"),
            Vec::<String>::new()
        );
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with(".git") {
                collect(&path, files);
            }
        } else {
            files.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
}

/// The command lines of the living processes whose command line or environment has the text.
pub(crate) fn processes_with(text: &str, file: &str) -> Vec<String> {
    let found = living().filter(|process| process.has(text, file));
    found.map(|process| process.line).collect()
}

/// The ids of the programs `forge LINE…` with that text in their environment, without the wrappers
/// that watch over them.
pub(crate) fn ids_with(text: &str, line: &str) -> Vec<u32> {
    let found = living().filter(|process| process.has(text, "environ"));
    let line = format!("{FORGE} {line}");
    let found = found.filter(|process| process.line.starts_with(&line));
    found.map(|process| process.id).collect()
}

struct Process {
    id: u32,
    line: String,
}

impl Process {
    fn has(&self, text: &str, file: &str) -> bool {
        let bytes = fs::read(format!("/proc/{}/{file}", self.id)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(text)
    }
}

fn living() -> impl Iterator<Item = Process> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().to_string_lossy().parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            Some(Process {
                id,
                line: String::from_utf8_lossy(&line).replace('\0', " "),
            })
        })
}

/// Sends a signal to one process that the test started.
pub(crate) fn signal(name: &str, id: u32) {
    let done = Command::new("kill")
        .arg(name)
        .arg(id.to_string())
        .status()
        .unwrap();
    assert!(done.success());
}

pub(crate) fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if ready() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}
