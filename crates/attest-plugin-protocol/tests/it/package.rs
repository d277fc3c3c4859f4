//! What an author takes on with this crate.

#[test]
fn the_crate_is_free_to_use_and_needs_no_core() {
    assert_eq!(env!("CARGO_PKG_LICENSE"), "Apache-2.0");
    assert_eq!(env!("CARGO_PKG_README"), "README.md");
    assert!(
        !env!("CARGO_PKG_VERSION").starts_with("0.0."),
        "a version of its own"
    );
    let manifest = include_str!("../../Cargo.toml");
    let mut sections = manifest.split("\n[");
    let needs = sections.find(|section| section.starts_with("dependencies]\n"));
    let needs: Vec<&str> = needs
        .unwrap()
        .lines()
        .skip(1)
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(needs, ["bounded", "serde", "strict-json", "thiserror"]);
}
