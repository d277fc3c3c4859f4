//! Runs this loader and the crate `agent-plugins` over the same packages. Where they disagree, the
//! reference page says so and why: a disagreement that is not there fails, and so does a row of the
//! page that no longer occurs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use agent_plugin::{Files, Options, load};
use agent_plugins::{McpOutcome, MemSource};
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/reference/plugin-package.md");
const HEAD: &str = "| here | there | why | packages |";

/// What a loader makes of a package: nothing, or these skills and servers.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Rejected,
    Loaded {
        name: String,
        skills: BTreeSet<String>,
        servers: BTreeSet<String>,
    },
}

fn ours(files: &Files) -> Outcome {
    match load(files.clone(), &Options::default()) {
        Err(_) => Outcome::Rejected,
        Ok(package) => Outcome::Loaded {
            name: package.name().to_owned(),
            skills: package
                .skills
                .iter()
                .map(|skill| skill.name.clone())
                .collect(),
            servers: package.mcp_servers.keys().cloned().collect(),
        },
    }
}

fn theirs(files: &Files) -> Outcome {
    let mut source = MemSource::new();
    for (path, bytes) in files {
        source = source.file(path.clone(), bytes.clone());
    }
    match source.load() {
        Err(_) => Outcome::Rejected,
        Ok(plugin) => Outcome::Loaded {
            name: plugin.manifest.name.as_str().to_owned(),
            skills: plugin
                .skills
                .iter()
                .map(|skill| skill.meta.name.clone())
                .collect(),
            servers: match &plugin.mcp {
                McpOutcome::Configured(mcp) => {
                    mcp.servers.iter().map(|entry| entry.name.clone()).collect()
                }
                _ => BTreeSet::new(),
            },
        },
    }
}

fn content(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        Value::Array(bytes) => bytes
            .iter()
            .map(|byte| byte.as_u64().unwrap().try_into().unwrap())
            .collect(),
        other => serde_json::to_vec(other).unwrap(),
    }
}

/// Every package of the corpus, and those that show what the other loader's own tests are about.
fn packages() -> BTreeMap<String, Files> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    for folder in ["../tests/corpus/accept", "../tests/corpus/reject", "cases"] {
        for entry in fs::read_dir(crate_folder.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let files = document["files"].as_object().unwrap();
            let files = files
                .iter()
                .map(|(path, value)| (path.clone(), content(value)));
            let kind = folder.rsplit('/').next().unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            found.insert(format!("{kind}/{name}"), files.collect());
        }
    }
    found
}

/// One word for each side: what it makes of the part that they disagree about.
fn difference(here: &Outcome, there: &Outcome) -> Option<(String, String)> {
    let words = |part: &str, here: bool| {
        let word = |loads: bool| if loads { "loads" } else { "is skipped" };
        Some((
            format!("{part} {}", word(here)),
            format!("{part} {}", word(!here)),
        ))
    };
    match (here, there) {
        (Outcome::Rejected, Outcome::Rejected) => None,
        (Outcome::Rejected, Outcome::Loaded { .. }) => {
            Some(("the package is rejected".into(), "the package loads".into()))
        }
        (Outcome::Loaded { .. }, Outcome::Rejected) => {
            Some(("the package loads".into(), "the package is rejected".into()))
        }
        (
            Outcome::Loaded {
                name,
                skills,
                servers,
            },
            Outcome::Loaded {
                name: other,
                skills: other_skills,
                servers: other_servers,
            },
        ) => {
            assert_eq!(name, other);
            if skills != other_skills {
                return words("the skill", skills.is_superset(other_skills));
            }
            if servers != other_servers {
                return words("the server", servers.is_superset(other_servers));
            }
            None
        }
    }
}

/// The rows of the page: package to what is said of it.
fn rows() -> BTreeMap<String, (String, String)> {
    let (_, table) = PAGE.split_once(HEAD).unwrap();
    let mut found = BTreeMap::new();
    for line in table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [here, there, why, packages] = cells[..] else {
            panic!("four cells: {line}");
        };
        assert!(!why.is_empty(), "a row says why: {line}");
        for package in packages.split(',') {
            let package = package.trim().trim_matches('`').to_owned();
            let before = found.insert(package, (here.to_owned(), there.to_owned()));
            assert_eq!(before, None, "a package stands once: {line}");
        }
    }
    found
}

#[test]
fn the_other_loader_differs_where_the_page_says_so_and_nowhere_else() {
    let packages = packages();
    let found: BTreeMap<_, _> = packages
        .iter()
        .filter_map(|(name, files)| Some((name.clone(), difference(&ours(files), &theirs(files))?)))
        .collect();
    let written = rows();
    let unwritten: Vec<_> = found
        .iter()
        .filter(|(name, words)| written.get(*name) != Some(words))
        .collect();
    let stale: Vec<_> = written
        .iter()
        .filter(|(name, words)| found.get(*name) != Some(words))
        .collect();
    assert!(
        unwritten.is_empty() && stale.is_empty(),
        "not on the page: {unwritten:#?}\nno longer so: {stale:#?}"
    );
}

#[test]
fn most_packages_are_judged_alike() {
    let packages = packages();
    assert!(packages.len() > 250, "{}", packages.len());
    assert!(rows().len() * 5 < packages.len(), "{} rows", rows().len());
}
