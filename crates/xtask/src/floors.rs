//! Refuses an edge between crates that does not go strictly down and a reach that a guarantee
//! forbids; writes the graph into `docs/architecture.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use crate::stage::{Verdict, report};
use crate::workspace::{Member, Metadata, metadata, root};

const DOCUMENT: &str = "docs/architecture.md";
const BEGIN: &str = "<!-- graph: written by `cargo xtask floors --write` -->";
const END: &str = "<!-- graph: end -->";

/// The guarantees that the graph proves: a crate, what it never reaches, and why.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    (
        "gate",
        &[
            "process-tree",
            "forge-plugin-host",
            "git-workspace",
            "worker",
        ],
        "the Gate executes nothing of a job",
    ),
    (
        "forge-plugin-protocol",
        &[
            "gate-link",
            "forge-domain",
            "git-workspace",
            "process-tree",
            "tokio",
        ],
        "a plugin cannot lease, retry or create refs",
    ),
    (
        "forge-plugin-kit",
        &["process-tree", "tokio", "gate-link", "forge-domain"],
        "an author links the protocol, not the implementation",
    ),
    (
        "forge-domain",
        &["tokio", "rusqlite", "nix", "rustix", "process-tree"],
        "the machines have no I/O",
    ),
    (
        "gate-link",
        &["tokio", "tokio-tungstenite", "axum", "nix", "process-tree"],
        "the link's sessions have no I/O",
    ),
    (
        "attest-verify",
        &[
            "process-tree",
            "attest-plugin-host",
            "attest-engine",
            "keys",
            "tree-manifest",
            "safe-fs",
            "fs-err",
            "nix",
            "rustix",
            "tokio",
        ],
        "G1: verifying executes no plugin; it opens no file and holds no private key",
    ),
    (
        "attest-plugin-host",
        &["keys", "ed25519-dalek"],
        "G2: no signing oracle",
    ),
    (
        "attest-plugin-protocol",
        &["keys", "ed25519-dalek", "process-tree", "tokio"],
        "G2: no signing oracle",
    ),
    (
        "attest-policy-plugin",
        &[
            "process-tree",
            "attest-plugin-host",
            "attest-engine",
            "keys",
        ],
        "the reference plugin judges what it is sent: it starts nothing and holds no key",
    ),
    (
        "plugin-archive",
        &["fs-err", "nix", "rustix", "safe-fs", "tokio", "reqwest"],
        "archives decode in memory",
    ),
    (
        "agent-plugin",
        &["fs-err", "nix", "rustix", "safe-fs", "tokio", "reqwest"],
        "a package is loaded from a map: no file, no process, no network",
    ),
    (
        "agent-plugin-dir",
        &["process-tree", "tokio", "reqwest"],
        "a directory is only read: nothing in it is run, and nothing is fetched",
    ),
    (
        "backplane-registry",
        &["process-tree", "attest-engine", "keys"],
        "the registry starts nothing, and no private key of a signer is there",
    ),
    (
        "backplane-client",
        &["reqwest", "backplane-http"],
        "the client needs no network adapter",
    ),
    (
        "backplane-http",
        &["cli-shell", "process-tree"],
        "the transport reads no variable and starts nothing",
    ),
];

/// Crates that reach base crates only, of ours.
const BASE_ONLY: &[&str] = &["forge-plugin-protocol", "attest-plugin-protocol"];

/// The only crate whose lint table allows unsafe code.
pub(crate) const UNSAFE_CRATE: &str = "process-tree";

/// Runs the check; with `write` it also brings the document up to date.
pub(crate) fn run(write: bool) -> Result<Verdict> {
    let root = root()?;
    let metadata = metadata(&root)?;
    let mut findings = edges(&metadata.members);
    findings.extend(reaches(&metadata));
    let path = root.join(DOCUMENT);
    let document = fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
    let wanted = with_graph(&document, &graph(&metadata.members))?;
    if document != wanted {
        if write {
            fs::write(&path, &wanted)?;
            println!("floors: wrote the graph into {DOCUMENT}");
        } else {
            findings.push(format!(
                "the graph in {DOCUMENT} is not that of the manifests: run `cargo xtask floors --write`"
            ));
        }
    }
    let count = format!("{} crates", metadata.members.len());
    Ok(report("floors", &count, &findings))
}

fn edges(members: &BTreeMap<String, Member>) -> Vec<String> {
    let mut findings = Vec::new();
    for member in members.values() {
        let Some(floor) = member.floor else {
            findings.push(format!(
                "`{}` names no floor: add [package.metadata.floor] level = N",
                member.name
            ));
            continue;
        };
        for target in &member.edges {
            let Some(below) = members.get(target).and_then(|found| found.floor) else {
                continue;
            };
            if below >= floor {
                findings.push(format!(
                    "`{}` (floor {floor}) depends on `{target}` (floor {below}): edges go strictly down",
                    member.name
                ));
            }
        }
    }
    findings
}

fn reaches(metadata: &Metadata) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, forbidden, why) in FORBIDDEN {
        if !metadata.members.contains_key(*name) {
            continue;
        }
        let reached = reached(metadata, name);
        for target in forbidden.iter().filter(|target| reached.contains(**target)) {
            findings.push(format!("`{name}` reaches `{target}`: {why}"));
        }
    }
    for name in BASE_ONLY {
        if !metadata.members.contains_key(*name) {
            continue;
        }
        for target in reached(metadata, name) {
            let floor = metadata
                .members
                .get(&target)
                .and_then(|member| member.floor);
            if floor.is_some_and(|floor| floor > 0) {
                findings.push(format!(
                    "`{name}` reaches `{target}`: it reaches base crates only"
                ));
            }
        }
    }
    findings
}

fn reached(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let mut waiting: Vec<&String> = metadata
        .packages
        .iter()
        .filter(|(_, package)| package.name == name && package.source.is_none())
        .map(|(id, _)| id)
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        for next in metadata.links.get(id).into_iter().flatten() {
            if seen.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    seen.iter()
        .filter_map(|id| metadata.packages.get(id))
        .map(|package| package.name.clone())
        .collect()
}

fn graph(members: &BTreeMap<String, Member>) -> String {
    let mut floors: BTreeMap<u64, Vec<&Member>> = BTreeMap::new();
    for member in members.values() {
        floors
            .entry(member.floor.unwrap_or(0))
            .or_default()
            .push(member);
    }
    let mut text = String::from("```mermaid\nflowchart TD\n");
    for (floor, here) in floors.iter().rev() {
        let _ = writeln!(text, "  subgraph floor{floor}[\"floor {floor}\"]");
        for member in here {
            let _ = writeln!(text, "    {}", member.name);
        }
        text.push_str("  end\n");
    }
    for member in members.values() {
        for target in &member.edges {
            let _ = writeln!(text, "  {} --> {target}", member.name);
        }
    }
    text.push_str("```\n");
    text
}

fn with_graph(document: &str, graph: &str) -> Result<String> {
    let (before, rest) = document
        .split_once(BEGIN)
        .with_context(|| format!("{DOCUMENT} lacks the line {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("{DOCUMENT} lacks the line {END}"))?;
    Ok(format!("{before}{BEGIN}\n{graph}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn member(name: &str, floor: Option<u64>, edges: &[&str]) -> (String, Member) {
        (
            name.to_owned(),
            Member {
                name: name.to_owned(),
                family: "crates".to_owned(),
                folder: PathBuf::new(),
                floor,
                edges: edges.iter().map(|edge| (*edge).to_owned()).collect(),
                publishable: false,
            },
        )
    }

    #[test]
    fn an_edge_upwards_or_sideways_is_refused() {
        let members = BTreeMap::from([
            member("low", Some(0), &["high"]),
            member("high", Some(2), &["low", "beside"]),
            member("beside", Some(2), &[]),
            member("lost", None, &[]),
        ]);
        let findings = edges(&members);
        assert_eq!(findings.len(), 3, "{findings:?}");
    }

    #[test]
    fn the_graph_is_replaced_between_its_marks() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let wanted = with_graph(&document, "new\n").unwrap();
        assert_eq!(wanted, format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert!(with_graph("no marks", "new").is_err());
    }

    #[test]
    fn a_forbidden_reach_is_found_through_another_crate() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            version: "0.0.0".to_owned(),
            licence: None,
            source: None,
            folder: PathBuf::new(),
        };
        let metadata = Metadata {
            members: BTreeMap::from([member("gate", Some(6), &["middle"])]),
            packages: BTreeMap::from([
                ("1".to_owned(), package("gate")),
                ("2".to_owned(), package("middle")),
                ("3".to_owned(), package("process-tree")),
            ]),
            links: BTreeMap::from([
                ("1".to_owned(), vec!["2".to_owned()]),
                ("2".to_owned(), vec!["3".to_owned()]),
            ]),
        };
        assert_eq!(reaches(&metadata).len(), 1);
    }

    #[test]
    fn a_plugin_host_that_could_sign_is_found() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            version: "0.0.0".to_owned(),
            licence: None,
            source: None,
            folder: PathBuf::new(),
        };
        let linked = |links: &[(&str, &str)]| Metadata {
            members: BTreeMap::from([
                member("attest-plugin-host", Some(4), &[]),
                member("attest-plugin-protocol", Some(2), &[]),
            ]),
            packages: [
                "attest-plugin-host",
                "attest-plugin-protocol",
                "keys",
                "middle",
                "ed25519-dalek",
            ]
            .map(|name| (name.to_owned(), package(name)))
            .into(),
            links: links
                .iter()
                .map(|(from, to)| ((*from).to_owned(), vec![(*to).to_owned()]))
                .collect(),
        };
        assert_eq!(reaches(&linked(&[])), Vec::<String>::new());
        for (links, count) in [
            (&[("attest-plugin-host", "keys")][..], 1),
            (
                &[
                    ("attest-plugin-host", "middle"),
                    ("middle", "ed25519-dalek"),
                ],
                1,
            ),
            (
                &[
                    ("attest-plugin-host", "attest-plugin-protocol"),
                    ("attest-plugin-protocol", "keys"),
                    ("keys", "ed25519-dalek"),
                ],
                4,
            ),
        ] {
            let findings = reaches(&linked(links));
            let oracles = findings.iter().filter(|found| found.contains("G2"));
            assert_eq!(oracles.count(), count, "{findings:?}");
        }
    }

    use crate::workspace::Package;
}
