//! Stand-ins for the Codex CLI: shell scripts that know where their files are.

use std::path::{Path, PathBuf};

use crate::repository::repository;
use crate::support::Place;

/// What every script starts with: the files by name, the task read, the workspace entered.
const HEAD: &str = r#"while [ $# -gt 0 ]; do
    case $1 in
        -C) workspace=$2; shift ;;
        --output-schema) schema=$2; shift ;;
        --output-last-message) final=$2; shift ;;
    esac
    shift
done
task=$(cat)
cd "$workspace"
good='{"commit_subject":"feat: add it","summary":"Added it.","changes":["one <file>","two"]}'
"#;

/// Folders with a repository as the workspace and this script as the CLI.
pub(crate) fn place(body: &str) -> Place {
    let mut place = bare(body);
    repository(&place.workspace());
    place.set("GIT_CONFIG_GLOBAL", "/dev/null");
    place
}

/// The same without a repository.
pub(crate) fn bare(body: &str) -> Place {
    let mut place = Place::new();
    let script = place.script(&format!("{HEAD}{body}"));
    place.set("CODEX_BIN", script);
    place
}

/// A file of this repository's `e2e` folder.
pub(crate) fn e2e(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../e2e")
        .join(name)
}
