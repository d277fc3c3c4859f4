//! The processes of this machine, as `/proc` tells of them.

use std::path::{Path, PathBuf};

/// A process that should not run.
#[derive(Debug)]
pub(crate) struct Running {
    /// Its id.
    pub(crate) id: u32,
    /// What it was started as.
    pub(crate) command: String,
}

/// The processes whose working directory lies below `folder`, also where that is removed.
pub(crate) fn working_in(folder: &Path) -> Vec<Running> {
    all(|process, _| {
        std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    })
}

/// The processes that work below `folder` or have its name in their command line.
pub(crate) fn touching(folder: &Path) -> Vec<Running> {
    let name = folder.to_string_lossy().into_owned();
    all(|process, command| {
        command.contains(&name)
            || std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    })
}

fn all(wanted: impl Fn(&Path, &str) -> bool) -> Vec<Running> {
    let Ok(entries) = fs_err::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let process: PathBuf = entry.path();
        // What has ended meanwhile, and a zombie, has neither command line nor folder.
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&line).replace('\0', " ");
        if id != std::process::id() && wanted(&process, &command) {
            found.push(Running {
                id,
                command: command.trim_end().chars().take(200).collect(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_folder_and_by_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("deep");
        fs_err::create_dir(&inside).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("3600")
            .current_dir(&inside)
            .spawn()
            .unwrap();
        fs_err::remove_dir(&inside).unwrap();
        let found = working_in(folder.path());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            found.iter().any(|process| process.id == child.id()),
            "{found:?}"
        );
        assert!(working_in(folder.path()).is_empty());
        assert!(touching(folder.path()).is_empty());
    }
}
