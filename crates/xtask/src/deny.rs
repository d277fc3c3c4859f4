//! Judges the dependency graph by `deny.toml`: licences, sources, banned and doubled crates.
//! Advisories need a git host and run in the hosted workflow; the output says so.

mod clarify;
mod xxh32;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, anyhow};

use self::clarify::Clarification;
use crate::stage::{Verdict, report};
use crate::workspace::{Package, metadata, root};

/// How cargo marks a package that comes from a registry.
const REGISTRY: &str = "registry+";

/// Runs the check.
pub(crate) fn run() -> Result<Verdict> {
    let root = root()?;
    let rules: toml::Table = toml::from_str(
        &fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?,
    )?;
    let allowed = names(&rules, &["licenses", "allow"], None);
    let banned = names(&rules, &["bans", "deny"], Some("crate"));
    let doubled = names(&rules, &["bans", "skip"], Some("crate"));
    let clarified = clarify::read(&rules).map_err(|reason| anyhow!("deny.toml: {reason}"))?;
    let mut metadata = metadata(&root)?;
    let mut findings = Vec::new();
    clear_up(&mut metadata.packages, &clarified, &mut findings);
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata.packages.values() {
        versions
            .entry(&package.name)
            .or_default()
            .insert(&package.version);
        judge(package, &allowed, &banned, &mut findings);
    }
    for (name, seen) in versions {
        if seen.len() > 1 && !doubled.contains(name) {
            let list: Vec<&str> = seen.into_iter().collect();
            findings.push(format!(
                "`{name}` is there as {}: unify it, or list it under bans.skip with the reason",
                list.join(" and ")
            ));
        }
    }
    println!(
        "deny: advisories are looked up in the hosted workflow (`cargo deny check advisories`), not here"
    );
    let count = format!("{} packages", metadata.packages.len());
    Ok(report("deny", &count, &findings))
}

/// Fills in the licences that packages do not state; a clarification that clears up nothing is
/// stale.
fn clear_up(
    packages: &mut BTreeMap<String, Package>,
    clarified: &[Clarification],
    findings: &mut Vec<String>,
) {
    for clarification in clarified {
        let mut used = false;
        for package in packages.values_mut() {
            if clarification.is_about(package) {
                used = true;
                match clarification.expression(package) {
                    Ok(expression) => package.licence = Some(expression.to_owned()),
                    Err(reason) => findings.push(reason),
                }
            }
        }
        if !used {
            let name = clarification.name();
            findings.push(format!("the clarification of `{name}` clears up nothing"));
        }
    }
}

fn judge(
    package: &Package,
    allowed: &BTreeSet<String>,
    banned: &BTreeSet<String>,
    findings: &mut Vec<String>,
) {
    let name = format!("{} {}", package.name, package.version);
    if banned.contains(&package.name) {
        findings.push(format!("`{name}` is banned in deny.toml"));
    }
    if package
        .source
        .as_ref()
        .is_some_and(|source| !source.starts_with(REGISTRY))
    {
        findings.push(format!("`{name}` comes from elsewhere than the registry"));
    }
    match &package.licence {
        None => findings.push(format!("`{name}` states no licence")),
        Some(licence) if !acceptable(licence, allowed) => {
            findings.push(format!(
                "`{name}` is under `{licence}`, which deny.toml does not allow"
            ));
        }
        Some(_) => {}
    }
}

/// An SPDX expression holds if one side of each `OR`, and both of each `AND`, is allowed.
fn acceptable(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let holds = any(&words, &mut at, allowed);
    holds && at == words.len()
}

fn any(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut holds = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        holds |= all(words, at, allowed);
    }
    holds
}

fn all(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut holds = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        holds &= one(words, at, allowed);
    }
    holds
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let holds = any(words, at, allowed);
        *at += 1;
        return holds;
    }
    let mut name = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        if let Some(exception) = words.get(*at + 1) {
            name = format!("{name} WITH {exception}");
        }
        *at += 2;
    }
    allowed.contains(&name)
}

fn names(rules: &toml::Table, path: &[&str], key: Option<&str>) -> BTreeSet<String> {
    let mut value: Option<&toml::Value> = None;
    for (depth, part) in path.iter().enumerate() {
        value = if depth == 0 {
            rules.get(*part)
        } else {
            value.and_then(|table| table.get(*part))
        };
    }
    value
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| match (key, entry) {
            (_, toml::Value::String(text)) => Some(text.clone()),
            (Some(key), toml::Value::Table(table)) => table
                .get(key)
                .and_then(toml::Value::as_str)
                .map(str::to_owned),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> BTreeSet<String> {
        [
            "MIT",
            "Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "Unicode-3.0",
        ]
        .map(str::to_owned)
        .into()
    }

    #[test]
    fn expressions_hold_as_spdx_says() {
        let allowed = allowed();
        assert!(acceptable("MIT OR GPL-3.0", &allowed));
        assert!(acceptable("GPL-3.0/MIT", &allowed));
        assert!(acceptable("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
        assert!(acceptable(
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            &allowed
        ));
        assert!(!acceptable("MIT AND GPL-3.0", &allowed));
        assert!(!acceptable("GPL-3.0", &allowed));
        assert!(!acceptable("Apache-2.0 WITH Other-exception", &allowed));
        assert!(!acceptable("", &allowed));
    }

    #[test]
    fn a_crate_from_elsewhere_is_refused() {
        let package = Package {
            name: "x".to_owned(),
            version: "1.0.0".to_owned(),
            licence: Some("MIT".to_owned()),
            source: Some("git+ssh://somewhere".to_owned()),
            folder: std::path::PathBuf::new(),
        };
        let mut findings = Vec::new();
        judge(&package, &allowed(), &BTreeSet::new(), &mut findings);
        assert_eq!(findings.len(), 1);
    }
    #[test]
    fn a_stale_clarification_is_found() {
        let text = "[[licenses.clarify]]\ncrate = \"gone\"\nexpression = \"MIT\"\n";
        let clarified = clarify::read(&toml::from_str(text).unwrap()).unwrap();
        let mut findings = Vec::new();
        clear_up(&mut BTreeMap::new(), &clarified, &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
