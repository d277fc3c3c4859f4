//! What pinning changes, and that it changes nothing else.

use proptest::prelude::*;

use super::*;
use crate::declare::Plugins;

const OLD: &str = "blake3:9f2c4ac56ff9bd3eb1e8c1c3e1a4f6b2a2e0f7a9d8c7b6a5948372615049382f";

fn new() -> Digest {
    Digest::of("the new one")
}

fn name(text: &str) -> PluginName {
    text.parse().unwrap()
}

/// Pins on a platform that the test knows.
fn pinned(text: &str) -> String {
    let (os, arch) = ("linux".to_owned(), "x86_64".to_owned());
    let platform = Platform { os, arch };
    pin_on(&platform, text, &name("policy"), new())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// `@` stands for a whole digest line or value.
fn check(template: &str, old: &str, put: &str) {
    let text = template.replace('@', old);
    let wanted = template.replace('@', put);
    assert_eq!(pinned(&text), wanted);
    // What was pinned once is pinned again to the same.
    assert_eq!(pinned(&wanted), wanted);
}

const REST: &str = "protocol = \"1\"\nhooks = [\"step.pre\"]\ndeterministic = true\n";

#[test]
fn a_digest_is_replaced_where_it_stands() {
    let digest = new().to_string();
    let template = format!(
        "# Reviewed by both of us.\nschema_version = 1 # never changes\n\n\
         [[plugin]] # before\nname = \"other\"\ncommand = \"x\"\ndigest = '{OLD}'\n{REST}\
         # about the next one\n[[plugin]]\n  name = \"policy\"\n\tdigest   =   \"@\"   # 1.4.2\n\
         command = \"p\"\n{REST}env = {{ B = \"2\", A = \"1\" }}\n\n# the end"
    );
    check(&template, OLD, &digest);
    check(&template, "", &digest);
    let crlf = template.replace('\n', "\r\n");
    check(&crlf, OLD, &digest);
}

#[test]
fn other_kinds_of_strings_become_plain_ones() {
    let digest = format!("\"{}\"", new());
    let head =
        format!("schema_version = 1\n[[plugin]]\nname = \"policy\"\ncommand = \"p\"\n{REST}");
    for old in [
        format!("'{OLD}'"),
        format!("\"\"\"{OLD}\"\"\""),
        format!("'''\n{OLD}'''"),
    ] {
        check(&format!("{head}digest = @ # x\n"), &old, &digest);
    }
}

#[test]
fn an_absent_digest_comes_behind_the_command() {
    let line = format!("digest = \"{}\"", new());
    for (template, line) in [
        (
            format!(
                "schema_version = 1\n[[plugin]]\nname = \"policy\"\ncommand = \"p\" # c\n@{REST}"
            ),
            format!("{line}\n"),
        ),
        (
            format!(
                "schema_version = 1\n[[plugin]]\n  name = \"policy\"\n  command = '''\np'''\n@{REST}"
            ),
            format!("  {line}\n"),
        ),
        (
            format!(
                "schema_version = 1\n[[plugin]]\n  name = \"policy\"\n  command = \"p\"\n@{REST}\n[plugin.env]\nA = \"command\"\n"
            ),
            format!("  {line}\n"),
        ),
        (
            format!("schema_version = 1\n[[plugin]]\n{REST}name = \"policy\"\ncommand = \"p\"@"),
            format!("\n{line}"),
        ),
        (
            format!(
                "schema_version = 1\n[[plugin]]\n{REST}name = \"policy\"\ncommand = \"p\"\n@# c"
            ),
            format!("{line}\n"),
        ),
        (
            "schema_version = 1\nplugin = [{ name = \"policy\", command = \"p\"@, protocol = \"1\", hooks = [\"step.pre\"], deterministic = true }]".to_owned(),
            format!(", {line}"),
        ),
    ] {
        check(&template, "", &line);
    }
    let crlf =
        format!("schema_version = 1\n[[plugin]]\nname = \"policy\"\ncommand = \"p\"\n@{REST}");
    check(&crlf.replace('\n', "\r\n"), "", &format!("{line}\r\n"));
}

#[test]
fn the_target_of_this_platform_is_updated_and_the_rest_stays() {
    let digest = new().to_string();
    let head =
        format!("schema_version = 1\n[[plugin]]\nname = \"policy\"\ncommand = \"p\"\n{REST}");
    let targets = format!(
        "digest = \"{OLD}\"\n[[plugin.target]]\nos = \"macos\"\narch = \"x86_64\"\ndigest = \"{OLD}\"\n\
         [[plugin.target]] # here\narch = \"x86_64\"\nos = \"linux\" # this\n"
    );
    check(&format!("{head}{targets}digest = \"@\"\n"), OLD, &digest);
    check(
        &format!("{head}{targets}@"),
        "",
        &format!("digest = \"{digest}\"\n"),
    );
    let inline = format!("{head}target = [ {{ os = \"linux\", arch = \"x86_64\"@ }} ]\n");
    check(&inline, "", &format!(", digest = \"{digest}\""));
    let foreign = format!("{head}target = [ {{ os = \"macos\", arch = \"x86_64\" }} ]\n");
    assert!(matches!(
        pin(&foreign.replace("macos", "plan9"), &name("policy"), new()),
        Err(PinError::Declare(_))
    ));
}

#[test]
fn a_name_that_is_not_declared_and_a_file_that_is_refused_change_nothing() {
    let text =
        format!("schema_version = 1\n[[plugin]]\nname = \"policy\"\ncommand = \"p\"\n{REST}");
    let error = pin(&text, &name("polic"), new()).unwrap_err().to_string();
    assert_eq!(
        error,
        ".attest/plugins.toml declares no plugin `polic`; it declares policy"
    );
    let error = pin("schema_version = 1", &name("a"), new()).unwrap_err();
    assert!(error.to_string().contains("it declares none"));
    let error = pin(&format!("{text}skip = true\n"), &name("policy"), new()).unwrap_err();
    assert!(matches!(error, PinError::Declare(_)));
}

fn text_of(lines: &[String], crlf: bool) -> String {
    let line_end = if crlf { "\r\n" } else { "\n" };
    lines.join(line_end) + line_end
}

proptest! {
    /// Whatever the order, the white space and the comments: without the digest, the text before
    /// and after is the same, and what it declares differs in that digest alone.
    #[test]
    fn only_the_digest_changes(
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
        indent in "[ \t]{0,3}",
        comment in "( #[ -~é]{0,12})?",
        digest in prop_oneof![Just(None), Just(Some("")), Just(Some(OLD))],
        crlf: bool,
    ) {
        let keys = [
            "name = \"policy\"", "command = 'p'", "protocol = \"1\"",
            "hooks = [\"step.pre\", \"step.post\"]", "deterministic = false",
        ];
        let mut lines = vec![format!("{comment}"), "schema_version = 1".to_owned(), "[[plugin]]".to_owned()];
        for place in order {
            match keys.get(place) {
                Some(key) => lines.push(format!("{indent}{key}{comment}")),
                None => lines.extend(digest.map(|old| format!("{indent}digest = \"{old}\"{comment}"))),
            }
        }
        let text = text_of(&lines, crlf);
        let pinned = pin(&text, &name("policy"), new()).unwrap();
        let without = |text: &str| -> Vec<String> {
            text.split('\n').filter(|line| !line.contains("digest =")).map(str::to_owned).collect()
        };
        prop_assert_eq!(without(&pinned), without(&text));
        let mut before = Plugins::parse(&text, Strictness::Listing).unwrap();
        before.plugins[0].digest = Some(new());
        prop_assert_eq!(Plugins::parse(&pinned, Strictness::Run).unwrap(), before);
        let tail = format!("digest = \"{}\"{comment}", new());
        prop_assert!(digest.is_none() || pinned.contains(&tail));
    }

    #[test]
    fn pinning_never_panics(text in "(?s).{0,100}") {
        let _answer = pin(&text, &name("a"), new());
    }
}
