//! `diff`: two packages, file by file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cli_shell::{CliError, Ui, exit, layout, visible};
use plugin_archive::{DEFAULT_MODE, Snapshot};
use serde::Serialize;

use crate::{package, words};

const RULE: &str = "\
Files are compared by path, bytes and mode. Exit code 0 if the two are the same,
1 if anything differs.";

/// Two packages.
#[derive(Debug, Clone, Args)]
#[command(after_help = RULE)]
pub struct Diff {
    /// The first: a directory or an archive
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second: a directory or an archive
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Compare what links inside of directories lead to
    #[arg(long)]
    follow_links: bool,
    /// Compare only whether files may be run, not the other bits of modes
    #[arg(long)]
    normalize_modes: bool,
}

/// What `--format json` prints, one record.
#[derive(Serialize)]
struct Record<'x> {
    a: String,
    b: String,
    verdict: &'static str,
    files: Vec<Change<'x>>,
}

#[derive(Serialize)]
struct Change<'x> {
    path: &'x str,
    change: &'static str,
    content: &'static str,
    a: Option<Side>,
    b: Option<Side>,
    #[serde(skip)]
    same_bytes: bool,
}

/// A file on one side.
#[derive(Serialize)]
struct Side {
    bytes: usize,
    mode: String,
}

impl Diff {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let (a, b) = (self.read(&self.a)?, self.read(&self.b)?);
        let files = changes(&a, &b);
        let same = files.is_empty();
        let record = Record {
            a: self.a.display().to_string(),
            b: self.b.display().to_string(),
            verdict: if same { "same" } else { "different" },
            files,
        };
        ui.record(&record, |record| text(record, a.files.len()))?;
        Ok(if same { exit::ok() } else { exit::no() })
    }

    fn read(&self, path: &Path) -> Result<Snapshot, CliError> {
        let mut snapshot = package::snapshot(path, self.follow_links)
            .map_err(|error| words::as_failure(&error))?;
        if self.normalize_modes {
            package::normalize(&mut snapshot.modes);
        }
        Ok(snapshot)
    }
}

fn changes<'x>(a: &'x Snapshot, b: &'x Snapshot) -> Vec<Change<'x>> {
    let gone = a.files.keys().filter(|path| !b.files.contains_key(*path));
    let mut paths: Vec<&String> = b.files.keys().chain(gone).collect();
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| change(path, a, b))
        .collect()
}

fn change<'x>(path: &'x str, a: &Snapshot, b: &Snapshot) -> Option<Change<'x>> {
    let (left, right) = (a.files.get(path), b.files.get(path));
    let same_bytes = left == right;
    let sides = (side(path, a), side(path, b));
    let change = match &sides {
        (None, _) => "added",
        (_, None) => "removed",
        (Some(left), Some(right)) if same_bytes && left.mode == right.mode => return None,
        _ => "changed",
    };
    let is_text = left.into_iter().chain(right).all(|bytes| is_text(bytes));
    Some(Change {
        path,
        change,
        content: if is_text { "text" } else { "binary" },
        a: sides.0,
        b: sides.1,
        same_bytes,
    })
}

fn side(path: &str, snapshot: &Snapshot) -> Option<Side> {
    let mode = snapshot.modes.get(path).copied().unwrap_or(DEFAULT_MODE);
    Some(Side {
        bytes: snapshot.files.get(path)?.len(),
        mode: format!("{mode:04o}"),
    })
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

fn text(record: &Record<'_>, files: usize) -> String {
    let mut out = layout::pairs(&[
        ("a", Some(visible(&record.a))),
        ("b", Some(visible(&record.b))),
    ]);
    for one in &record.files {
        let first = format!("{:<9}", one.change);
        out.push('\n');
        out.push_str(&layout::wrap(&visible(one.path), &first, "         "));
        out.push_str(&layout::wrap(&told(one), "         ", "         "));
    }
    out.push('\n');
    out.push_str(&match record.files.len() {
        0 => format!("same: {}\n", words::count(files, "file")),
        count => format!("different: {}\n", words::count(count, "file")),
    });
    out
}

/// `12 -> 30 bytes, text, mode 0644 -> 0755`
fn told(one: &Change<'_>) -> String {
    let (Some(a), Some(b)) = (&one.a, &one.b) else {
        let side = one.a.as_ref().or(one.b.as_ref());
        return side.map_or_else(String::new, |side| {
            let bytes = words::bytes(side.bytes as u64);
            format!("{bytes}, {}, mode {}", one.content, side.mode)
        });
    };
    let mut parts = Vec::new();
    if !one.same_bytes {
        let bytes = words::bytes(b.bytes as u64);
        parts.push(if a.bytes == b.bytes {
            format!("{bytes}, as before, but others")
        } else {
            format!("{} -> {bytes}", a.bytes)
        });
        parts.push(one.content.to_owned());
    }
    if a.mode != b.mode {
        parts.push(format!("mode {} -> {}", a.mode, b.mode));
    }
    parts.join(", ")
}
