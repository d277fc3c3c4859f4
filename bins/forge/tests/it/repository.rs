//! A repository for a test, and git in it as a person with a name runs it. The Codex plugin's tests
//! take this file too.

use std::path::Path;
use std::process::Command;

/// Runs git and returns its output without the last line end.
pub(crate) fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@example.invalid",
        ])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// Makes a repository with one commit on `main` and returns that.
pub(crate) fn repository(folder: &Path) -> String {
    git(folder, &["init", "-q", "-b", "main", "."]);
    std::fs::write(folder.join("greeting.txt"), "hello\n").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-q", "-m", "base"]);
    git(folder, &["rev-parse", "HEAD"])
}
