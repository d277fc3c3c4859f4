//! Reads every line of the corpus, a JSON string, as the type that the file is named after.

use std::path::Path;
use std::str::FromStr;

use bounded::{
    AuthorEmail, AuthorName, BoundError, BranchName, CommitSubject, ConfigId, EnvName, GitSha,
    GoDuration, Hex32,
};

fn accept(path: &Path) -> datatest_stable::Result<()> {
    each_line(path, |text, read| {
        read.map_err(|error| format!("{text:?} was refused: it {error}"))
    })
}

fn reject(path: &Path) -> datatest_stable::Result<()> {
    each_line(path, |text, read| match read {
        Ok(()) => Err(format!("{text:?} was accepted")),
        Err(_) => Ok(()),
    })
}

fn each_line(
    path: &Path,
    judge: impl Fn(&str, Result<(), BoundError>) -> Result<(), String>,
) -> datatest_stable::Result<()> {
    let name = path
        .file_stem()
        .and_then(|name| name.to_str())
        .ok_or("the name is not UTF-8")?;
    let read = reader(name).ok_or("no type has this name")?;
    for line in std::fs::read_to_string(path)?.lines() {
        let text: String = serde_json::from_str(line)?;
        judge(&text, read(&text))?;
    }
    Ok(())
}

type Reader = fn(&str) -> Result<(), BoundError>;

fn reader(name: &str) -> Option<Reader> {
    Some(match name {
        "author-email" => read::<AuthorEmail>,
        "author-name" => read::<AuthorName>,
        "branch-name" => read::<BranchName>,
        "commit-subject" => read::<CommitSubject>,
        "config-id" => read::<ConfigId>,
        "env-name" => read::<EnvName>,
        "git-sha" => read::<GitSha>,
        "go-duration" => read::<GoDuration>,
        "hex32" => read::<Hex32>,
        _ => return None,
    })
}

fn read<T: FromStr<Err = BoundError>>(text: &str) -> Result<(), BoundError> {
    T::from_str(text).map(drop)
}

datatest_stable::harness! {
    { test = accept, root = "tests/data/accept", pattern = r"\.ndjson$" },
    { test = reject, root = "tests/data/reject", pattern = r"\.ndjson$" },
}
