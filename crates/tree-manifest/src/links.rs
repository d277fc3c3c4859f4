//! Where a link leads, told from its target's text and from what the walk saw.
//!
//! A target that names a folder and climbs out of it again (`a/../b`) is read as the text says only
//! where `a` is known to be a real folder; through a link it would lead elsewhere.

use std::{collections::BTreeSet, path::Path};

use attest_receipt::declared::{Declared, is_under};

use crate::{error::ManifestError, worker::shown};

/// A link that the walk met.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// Below the workspace.
    pub(crate) path: String,
    pub(crate) target: String,
}

/// What a link is judged by.
#[derive(Debug)]
struct Map<'a> {
    /// The components of the workspace's real path.
    workspace: Vec<&'a str>,
    declared: &'a [Declared<'a>],
    links: BTreeSet<&'a str>,
}

/// Checks that every link stays under the declared paths; of several faults the first by path.
pub(crate) fn check(
    workspace: &Path,
    declared: &[Declared<'_>],
    mut links: Vec<Link>,
) -> Result<(), ManifestError> {
    if links.is_empty() {
        return Ok(());
    }
    links.sort_unstable();
    let real = std::fs::canonicalize(workspace).map_err(|source| ManifestError::Workspace {
        path: workspace.to_owned(),
        source,
    })?;
    check_below(&real, declared, &links)
}

fn check_below(
    workspace: &Path,
    declared: &[Declared<'_>],
    links: &[Link],
) -> Result<(), ManifestError> {
    // A text never equals a path that is no text: then only links that stay below can pass.
    let components = workspace.to_str().unwrap_or("/\0");
    let map = Map {
        workspace: components
            .split('/')
            .filter(|part| !part.is_empty())
            .collect(),
        declared,
        links: links.iter().map(|link| link.path.as_str()).collect(),
    };
    for link in links {
        let Some(leads_to) = map.resolve(link) else {
            return Err(ManifestError::LinkEscapes {
                path: link.path.clone(),
                target: shown(&link.target),
            });
        };
        let covered = leads_to.is_some_and(|path| map.is_covered(&path));
        if !covered {
            return Err(ManifestError::LinkUndeclared {
                path: link.path.clone(),
                target: shown(&link.target),
            });
        }
    }
    Ok(())
}

impl Map<'_> {
    /// Tells the path below the workspace: `None` is outside, `Some(None)` cannot be told.
    fn resolve(&self, link: &Link) -> Option<Option<String>> {
        let mut at: Vec<&str> = Vec::new();
        if !link.target.starts_with('/') {
            at.extend(&self.workspace);
            at.extend(link.path.split('/'));
            at.pop();
        }
        for part in link.target.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    match self.is_real_folder(&at) {
                        Some(true) => {}
                        Some(false) => return Some(None),
                        None => return None,
                    }
                    at.pop();
                }
                name => at.push(name),
            }
        }
        at.strip_prefix(self.workspace.as_slice())
            .map(|below| Some(below.join("/")))
    }

    /// Tells whether every component is a folder and no link; `None` outside the workspace.
    fn is_real_folder(&self, at: &[&str]) -> Option<bool> {
        if self.workspace.starts_with(at) {
            return Some(true);
        }
        let below = at.strip_prefix(self.workspace.as_slice())?.join("/");
        let through_link = below
            .match_indices('/')
            .map(|(end, _)| end)
            .chain([below.len()])
            .any(|end| {
                below
                    .get(..end)
                    .is_some_and(|path| self.links.contains(path))
            });
        let walked =
            |declared: &Declared<'_>| declared.covers(&below) || is_under(declared.path, &below);
        Some(!through_link && self.declared.iter().any(walked))
    }

    fn is_covered(&self, path: &str) -> bool {
        self.declared.iter().any(|declared| declared.covers(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(declared: &[&str], links: &[(&str, &str)]) -> Result<(), String> {
        let declared: Vec<_> = declared
            .iter()
            .map(|text| Declared::parse(text).unwrap())
            .collect();
        let links: Vec<_> = links
            .iter()
            .map(|(path, target)| Link {
                path: (*path).into(),
                target: (*target).into(),
            })
            .collect();
        check_below(Path::new("/home/ws"), &declared, &links).map_err(|error| match error {
            ManifestError::LinkEscapes { path, .. } => format!("escapes {path}"),
            ManifestError::LinkUndeclared { path, .. } => format!("undeclared {path}"),
            other => other.to_string(),
        })
    }

    #[test]
    fn a_link_may_lead_to_whatever_is_declared() {
        for (path, target) in [
            ("a/l", "x"),
            ("a/l", "./x//y/."),
            ("a/l", "../a/x"),
            ("a/l", "../b"),
            ("a/l", "../b/"),
            ("a/l", "../../ws/a"),
            ("a/l", "../../../home/ws/b"),
            ("a/l", "/home/ws/a/x"),
            ("a/l", "/home/../home/ws/b"),
            ("a/l", "."),
            ("a/d/l", "../gone"),
            ("a/l", "d/../x"),
            ("a/l", "../deep/../a/x"),
            ("a/l", "l"),
        ] {
            let result = judge(&["a", "b", "deep/down"], &[(path, target)]);
            assert_eq!(result, Ok(()), "{path} -> {target}");
        }
        assert_eq!(judge(&["."], &[("l", "any"), ("a/l", "..")]), Ok(()));
    }

    #[test]
    fn a_link_to_the_outside_is_refused() {
        for target in [
            "/etc/passwd",
            "/",
            "..",
            "../..",
            "../../etc",
            "../../wsx/a",
            "../../w",
            "../../../../../../../etc",
            "../../other/../ws/a",
            "/other/../home/ws/a",
        ] {
            let expected = match target {
                ".." => Err("undeclared a/l".to_owned()),
                _ => Err("escapes a/l".to_owned()),
            };
            assert_eq!(judge(&["a"], &[("a/l", target)]), expected, "{target}");
        }
        assert_eq!(judge(&["."], &[("l", "..")]), Err("escapes l".into()));
    }

    #[test]
    fn a_link_to_what_is_not_declared_is_refused() {
        for target in [
            "../b",
            "../ab",
            "../a/../b",
            "/home/ws/b",
            "..",
            "../b/../a/x",
        ] {
            let result = judge(&["a"], &[("a/l", target)]);
            assert_eq!(result, Err("undeclared a/l".into()), "{target}");
        }
    }

    #[test]
    fn a_link_that_climbs_out_of_another_link_is_refused() {
        let links = [
            ("a/b/l", "../c/d"),
            ("a/m", "b/l/../../../secret"),
            ("a/n", "b/l/../x"),
        ];
        assert_eq!(judge(&["a"], &links), Err("undeclared a/m".into()));
        assert_eq!(judge(&["a"], &links[..1]), Ok(()));
        assert_eq!(
            judge(&["a"], &[("a/l", "b"), ("a/m", "l/x/../../y")]),
            Err("undeclared a/m".into())
        );
    }
}
