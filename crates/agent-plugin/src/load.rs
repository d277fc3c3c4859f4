//! The order of a load: paths, manifest, then each component for itself.

use std::collections::BTreeSet;

use crate::diagnostic::{Report, shown};
use crate::{Code, Diagnostic, Files, Package, Transport, manifest, mcp, skills};

/// What a host asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The transports that the host has; servers with others are skipped and reported.
    pub transports: BTreeSet<Transport>,
    /// Loads skills whose `metadata` holds more than texts or whose name is not that of the
    /// directory, with warnings.
    pub lenient: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transports: BTreeSet::from(Transport::ALL),
            lenient: false,
        }
    }
}

/// Tells where a path of the package leads once links are followed.
pub trait Containment {
    /// Tells whether a path relative to the root stays inside it. The path is as written behind
    /// `./`, so it may hold `..`; what does not exist is judged by what exists of it.
    fn is_inside(&self, path: &str) -> bool;
}

/// A file map has no links, so what stays inside by its text does.
struct NoLinks;

impl Containment for NoLinks {
    fn is_inside(&self, _: &str) -> bool {
        true
    }
}

/// Loads a package from its files.
///
/// # Errors
/// Everything that was found when the manifest, or a path of the map, rejects the package.
pub fn load(files: Files, options: &Options) -> Result<Package, Vec<Diagnostic>> {
    load_with(files, options, &NoLinks)
}

/// Loads a package whose files come from a place with links.
///
/// # Errors
/// As [`load`].
pub fn load_with(
    files: Files,
    options: &Options,
    containment: &dyn Containment,
) -> Result<Package, Vec<Diagnostic>> {
    load_found(files, options, containment, Vec::new())
}

/// Loads a package of which the reader of its files left something out: what it found stands first,
/// and a manifest that it left out is not said to be missing as well.
///
/// # Errors
/// As [`load`].
pub fn load_found(
    files: Files,
    options: &Options,
    containment: &dyn Containment,
    found: Vec<Diagnostic>,
) -> Result<Package, Vec<Diagnostic>> {
    let mut report = Report::default();
    let left_out = found.iter().any(|found| found.path == manifest::MANIFEST);
    for found in found {
        report.push(found);
    }
    let before = report.errors();
    for path in files.keys().filter(|path| !is_relative(path)) {
        let message = "no path of a file inside a package";
        report.error(Code::PathInvalid, &shown(path), message);
    }
    if left_out && !files.contains_key(manifest::MANIFEST) {
        return Err(report.into_found());
    }
    let manifest = manifest::read(&files, &mut report);
    let Some(manifest) = manifest.filter(|_| report.errors() == before) else {
        return Err(report.into_found());
    };
    let skills = skills::read(&files, options, &mut report);
    let mcp_servers = mcp::read(&files, options, containment, &mut report);
    Ok(Package {
        manifest,
        skills,
        mcp_servers,
        diagnostics: report.into_found(),
        files,
    })
}

fn is_relative(path: &str) -> bool {
    !path.contains('\0') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Tells whether the map holds anything below a directory.
pub(crate) fn has_below(files: &Files, directory: &str) -> bool {
    let prefix = format!("{directory}/");
    files
        .range(prefix.clone()..)
        .next()
        .is_some_and(|(path, _)| path.starts_with(&prefix))
}
