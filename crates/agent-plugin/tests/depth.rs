//! Nesting at its limit and one level more, and a second byte order mark.

use agent_plugin::{Code, Files, Options, PLUGIN_SCHEMA, load};

fn found(path: &str, content: String) -> Vec<Code> {
    let manifest = format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"example"}}"#);
    let mut files = Files::from([("plugin.json".to_owned(), manifest.into_bytes())]);
    files.insert(path.to_owned(), content.into_bytes());
    let found = match load(files, &Options::default()) {
        Ok(package) => package.diagnostics,
        Err(found) => found,
    };
    found.into_iter().map(|found| found.code).collect()
}

/// So many levels, the outer object among them.
fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels - 1), "]".repeat(levels - 1))
}

#[test]
fn s04_a_frontmatter_has_32_levels_and_no_more() {
    let document = |levels| {
        let extra = nested(levels);
        format!("---\nname: x\ndescription: d\nextra: {extra}\n---\n")
    };
    let path = "skills/x/SKILL.md";
    assert_eq!(found(path, document(32)), [Code::SkillUnknownField]);
    assert_eq!(found(path, document(33)), [Code::SkillYamlInvalid]);
}

#[test]
fn m02_a_manifest_has_128_levels_and_no_more() {
    let manifest = |levels| {
        let extra = nested(levels);
        format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"example","x":{extra}}}"#)
    };
    assert_eq!(found("plugin.json", manifest(128)), [Code::UnknownField]);
    assert_eq!(found("plugin.json", manifest(129)), [Code::LimitExceeded]);
}

#[test]
fn s04_a_second_byte_order_mark_is_no_frontmatter() {
    let document = |marks| {
        let marks = "\u{feff}".repeat(marks);
        format!("{marks}---\nname: x\ndescription: d\n---\n")
    };
    let path = "skills/x/SKILL.md";
    assert_eq!(found(path, document(1)), []);
    assert_eq!(found(path, document(2)), [Code::SkillFrontmatterMissing]);
}
