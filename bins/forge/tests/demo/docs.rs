//! What the operator's manual shows is what the programs take.

use std::fs;
use std::path::Path;

use crate::user::Home;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");

/// The JSON blocks that the page marks, each with the program that must take it.
fn examples(page: &str) -> Vec<(String, String)> {
    let marked = page.split("<!-- checked: ").skip(1);
    marked
        .map(|part| {
            let (role, rest) = part.split_once(" -->").unwrap();
            let (_, rest) = rest.split_once("```json\n").unwrap();
            let (json, _) = rest.split_once("```").unwrap();
            (role.to_owned(), json.to_owned())
        })
        .collect()
}

#[test]
fn the_configurations_of_the_manual_are_valid() {
    let home = Home::new();
    let page = fs::read_to_string(Path::new(PAGE)).unwrap();
    let examples = examples(&page);
    let roles: Vec<&str> = examples.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["__gate", "__worker"]);
    for (role, json) in &examples {
        let file = home.file("config.json", json);
        let (code, _, err) = home.run(&[role, "--config", &file, "--check-config"]);
        assert_eq!(code, 0, "{role}: {err}");
        // The check can fail: the same file with one unknown field does.
        let file = home.file("config.json", &json.replacen('{', "{\"unknown\":1,", 1));
        let (code, _, err) = home.run(&[role, "--config", &file, "--check-config"]);
        assert_eq!(code, 2, "{role}");
        assert!(err.contains("`unknown`"), "{role}: {err}");
    }
}

#[test]
fn the_commands_of_the_manual_exist() {
    let home = Home::new();
    let (_, help, _) = home.run(&["--help"]);
    let page = fs::read_to_string(Path::new(PAGE)).unwrap();
    let mut seen = 0;
    for line in page
        .lines()
        .filter_map(|line| line.trim().strip_prefix("forge "))
    {
        let name = line.split(' ').next().unwrap();
        assert!(help.contains(&format!("\n  {name} ")), "forge {line}");
        seen += 1;
    }
    assert!(seen >= 6, "{seen} commands seen");
}
