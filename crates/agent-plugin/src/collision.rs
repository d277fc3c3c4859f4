//! Names that some file systems take for one another.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

use crate::diagnostic::{Report, shown};
use crate::{Code, Diagnostic, Files};

/// Finds files and directories whose names differ only by case or normalisation: they are two
/// here, and one where a file system does not tell them apart. A load says nothing of them, since
/// nothing is wrong with the package; who shows a package to a person does.
pub fn collisions(files: &Files) -> Vec<Diagnostic> {
    let mut report = Report::default();
    let mut first_of: BTreeMap<(&str, String), &str> = BTreeMap::new();
    let mut looked_at = BTreeSet::new();
    for path in files.keys() {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let path = path.get(..end).unwrap_or_default();
            if !looked_at.insert(path) {
                continue;
            }
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let first = *first_of.entry((parent, folded(name))).or_insert(path);
            if first != path {
                let message = format!(
                    "is the same name as `{}` where neither case nor normalisation counts",
                    shown(first)
                );
                report.warning(Code::PathCollision, path, message);
            }
        }
    }
    report.into_found()
}

/// Lower case alone would keep apart what file systems fold together, such as `ß` and `ss` or `σ`
/// and `ς`: their capitals are the same. Only `ẞ` has to be made small first.
fn folded(name: &str) -> String {
    let lower = name.nfd().flat_map(char::to_lowercase);
    let upper = lower.flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).nfc().collect()
}
