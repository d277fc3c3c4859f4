//! A folder of its own for each test, and the program started in it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plugin_archive::{Files, Limits, Modes};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const MANIFEST: &str = r#"{
  "$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
  "name": "acme-notes",
  "version": "1.2.0",
  "description": "Takes notes and finds them again"
}
"#;

pub(crate) const SKILL: &str = "---
name: take-note
description: Writes a note down. Use it when somebody wants to remember something.
---
Write it down.
";

pub(crate) const MCP: &str = r#"{
  "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
  "mcpServers": {
    "notes": {"type": "stdio", "command": "./bin/notes", "args": ["--here"], "env": {"KEY": "canary-19"}},
    "search": {"type": "streamable-http", "url": "https://search.example/mcp"}
  }
}
"#;

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Requires the code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Requires that standard error has the text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "`{text}` in {self:#?}");
        self
    }

    /// What was written, as JSON on one line.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:#?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

/// A folder that is the working directory of the program.
#[derive(Debug)]
pub(crate) struct Bed {
    folder: TempDir,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// With a whole package in `notes`.
    pub(crate) fn with_package() -> Self {
        let bed = Self::new();
        bed.write("notes/plugin.json", MANIFEST);
        bed.write("notes/skills/take-note/SKILL.md", SKILL);
        bed.write("notes/skills/take-note/example.txt", "milk\n");
        bed.write("notes/mcp.json", MCP);
        bed.write("notes/bin/notes", "#!/bin/sh\n");
        bed.mode("notes/bin/notes", 0o755);
        bed
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        // whatever the umask of the tester
        self.mode(name, 0o644);
        path
    }

    pub(crate) fn mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    pub(crate) fn mode_of(&self, name: &str) -> u32 {
        let found = std::fs::symlink_metadata(self.path(name)).unwrap();
        found.permissions().mode() & 0o7777
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Writes an archive of files with the usual mode.
    pub(crate) fn archive(&self, name: &str, files: &[(&str, &str)]) {
        let files: Files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect();
        let archive = plugin_archive::pack(&files, &Modes::new(), &Limits::default()).unwrap();
        self.write(name, archive);
    }

    /// The program with nothing of the tester's environment.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backplane"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn backplane(&self, args: &[&str]) -> Ran {
        ran(&mut self.program(args))
    }

    /// Does the same with words that are separated by blanks.
    pub(crate) fn line(&self, line: &str) -> Ran {
        let args: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        self.backplane(&args)
    }

    /// The names in a folder, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Files and folders below a folder with their bytes, to see that nothing was changed.
pub(crate) fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = std::fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            found.push((path.clone(), Vec::new()));
            found.extend(snapshot(&path));
        } else if meta.is_file() {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        } else {
            found.push((path, b"special".to_vec()));
        }
    }
    found.sort();
    found
}

pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
