//! Every rule of the declarations, met exactly and broken.

use proptest::prelude::*;

use super::*;

const DIGEST: &str = "blake3:9f2c4ac56ff9bd3eb1e8c1c3e1a4f6b2a2e0f7a9d8c7b6a5948372615049382f";
const OTHER: &str = "blake3:0000000000000000000000000000000000000000000000000000000000000001";

/// A plugin with nothing but what it needs; `extra` lines come behind.
fn minimal(extra: &str) -> String {
    format!(
        "schema_version = 1\n\n[[plugin]]\nname = \"policy\"\ncommand = \"attest-policy\"\n\
         digest = \"{DIGEST}\"\nprotocol = \"1\"\nhooks = [\"step.pre\"]\ndeterministic = true\n{extra}"
    )
}

fn parse(text: &str) -> Plugins {
    Plugins::parse(text, Strictness::Run).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn only(text: &str) -> Declared {
    let mut plugins = parse(text).plugins;
    assert_eq!(plugins.len(), 1);
    plugins.remove(0)
}

fn refused(text: &str) -> String {
    match Plugins::parse(text, Strictness::Run) {
        Ok(plugins) => panic!("accepted {plugins:?}\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Replaces a part of the minimal declaration that stands there once.
fn with(old: &str, new: &str) -> String {
    let text = minimal("");
    assert_eq!(text.matches(old).count(), 1, "{old}");
    text.replace(old, new)
}

#[test]
fn the_declaration_of_the_document_is_read() {
    let text = format!(
        "schema_version = 1\n\n[[plugin]]\nname = \"policy\"  # the namespace\n\
         command = \"attest-policy\"\ndigest = \"{DIGEST}\"\nprotocol = \"1\"\n\
         hooks = [\"pipeline.validate\", \"step.pre\", \"receipt.finalize\"]\ndeterministic = true\n\
         on_failure = \"fail-closed\"\ntimeout_secs = 30\n"
    );
    let expected = Declared {
        name: "policy".parse().unwrap(),
        command: Command::Bare("attest-policy".to_owned()),
        digest: Some(DIGEST.parse().unwrap()),
        hooks: vec![Hook::PipelineValidate, Hook::StepPre, Hook::ReceiptFinalize],
        deterministic: true,
        on_failure: OnFailure::FailClosed,
        timeout: Duration::from_secs(30),
        wants_output: false,
        env: BTreeMap::new(),
    };
    assert_eq!(only(&text), expected);
}

#[test]
fn what_may_be_absent_has_its_default_and_what_is_there_counts() {
    let least = only(&minimal(""));
    assert_eq!(least.on_failure, OnFailure::FailClosed);
    assert_eq!(least.timeout, Duration::from_secs(30));
    assert!(!least.wants_output);
    assert!(least.env.is_empty());
    let most = only(&minimal(
        "on_failure = \"fail-open\"\ntimeout_secs = 3600\nwants_output = true\n\
         [plugin.env]\nPOLICY_FILE = \"p.toml\"\n_x1 = \"\"\nTZ = \"a b\\n\"\n",
    ));
    assert_eq!(most.on_failure, OnFailure::FailOpen);
    assert_eq!(most.timeout, Duration::from_secs(3600));
    assert!(most.wants_output);
    let env = [("POLICY_FILE", "p.toml"), ("_x1", ""), ("TZ", "a b\n")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(most.env, BTreeMap::from(env));
}

#[test]
fn every_needed_key_is_missed_by_its_name() {
    let lines = minimal("");
    for key in [
        "name",
        "command",
        "digest",
        "protocol",
        "hooks",
        "deterministic",
    ] {
        let text: String = lines
            .lines()
            .filter(|line| !line.starts_with(key))
            .map(|line| format!("{line}\n"))
            .collect();
        let error = refused(&text);
        assert!(error.contains("line 3: "), "{key}: {error}");
        assert!(
            error.contains(&format!("`{key}` is missing")),
            "{key}: {error}"
        );
        assert_eq!(error.contains("plugin `policy`"), key != "name", "{error}");
    }
    assert!(refused("").contains("`schema_version` is missing"));
    assert!(refused("[[plugin]]\n").contains("`schema_version` is missing"));
}

#[test]
fn unknown_keys_are_refused_at_every_depth() {
    for (text, line, key) in [
        (format!("plugins = 1\n{}", minimal("")), 1, "`plugins`"),
        (minimal("skip = true\n"), 10, "plugin `policy`: `skip`"),
        (minimal("optional = true\nskip = true\n"), 10, "`optional`"),
        (minimal("enabled = false\n"), 10, "`enabled`"),
        (minimal("\"na\\u006de2\" = 1\n"), 10, "`name2`"),
        (
            minimal(&format!(
                "[[plugin.target]]\nos = \"linux\"\narch = \"x\"\ndigest = \"{OTHER}\"\nlibc = \"gnu\"\n[[plugin.target]]\nos = \"{}\"\narch = \"{}\"\n digest = \"{OTHER}\"\n",
                std::env::consts::OS,
                std::env::consts::ARCH
            )),
            14,
            "`target.libc`",
        ),
    ] {
        let error = refused(&text);
        assert!(error.contains(&format!("line {line}: ")), "{error}");
        assert!(error.contains(&format!("{key} is no key")), "{error}");
    }
}

#[test]
fn an_unknown_key_comes_with_those_of_its_table() {
    let target = "[[plugin.target]]\nos = \"linux\"\narch = \"x\"\nlibc = \"gnu\"\n";
    for (text, known) in [
        (
            format!("plugins = 1\n{}", minimal("")),
            "schema_version, plugin",
        ),
        (
            minimal("skip = true\n"),
            "name, command, protocol, digest, target, hooks, deterministic, on_failure, \
             timeout_secs, wants_output, env",
        ),
        (minimal(target), "os, arch, digest"),
    ] {
        let error = refused(&text);
        assert!(error.ends_with(&format!("; there are {known}")), "{error}");
    }
}

#[test]
fn another_type_is_named_with_line_plugin_and_key() {
    for (old, new, wanted, found) in [
        (
            "name = \"policy\"",
            "name = 5",
            "a string",
            "a whole number",
        ),
        (
            "\"attest-policy\"",
            "[\"attest-policy\"]",
            "a string",
            "an array",
        ),
        (
            "protocol = \"1\"",
            "protocol = 1",
            "a string",
            "a whole number",
        ),
        ("[\"step.pre\"]", "\"step.pre\"", "an array", "a string"),
        ("= true", "= \"true\"", "true or false", "a string"),
        ("= true", "= 1", "true or false", "a whole number"),
        (&format!("\"{DIGEST}\""), "1979-05-27", "a string", "a time"),
        ("= 1\n", "= 1.0\n", "a whole number", "a float"),
        ("= 1\n", "= \"1\"\n", "a whole number", "a string"),
    ] {
        let error = refused(&with(old, new));
        let rule = format!("must be {wanted}, not {found}");
        assert!(error.contains(&rule), "{error}");
    }
    let error = refused(&minimal("timeout_secs = 1.5\n"));
    let whole = ".attest/plugins.toml line 10: plugin `policy`: `timeout_secs` must be a whole number, not a float";
    assert_eq!(error, whole);
    assert!(refused(&minimal("env = \"A=1\"\n")).contains("`env` must be a table"));
    assert!(refused(&minimal("env = { A = 1 }\n")).contains("`env.A` must be a string"));
}

#[test]
fn an_element_of_another_type_is_not_told_as_if_it_were_the_array() {
    let error = refused(&with("\"step.pre\"", "true"));
    assert!(
        error.contains("`hooks` must hold strings, not true or false"),
        "{error}"
    );
    for (text, key, found) in [
        (minimal("target = {}\n"), "target", "a table"),
        (minimal("target = [1]\n"), "target", "a whole number"),
        (
            "schema_version = 1\n[plugin]\n".to_owned(),
            "plugin",
            "a table",
        ),
        (
            "schema_version = 1\nplugin = [true]\n".to_owned(),
            "plugin",
            "true or false",
        ),
    ] {
        let error = refused(&text);
        let header = if key == "plugin" {
            "[[plugin]]"
        } else {
            "[[plugin.target]]"
        };
        let rule = format!(
            "`{key}` must be an array of tables, each with the header {header}, not {found}"
        );
        assert!(error.contains(&rule), "{error}");
    }
}

#[test]
fn a_key_that_stands_twice_is_named() {
    for (extra, line, key) in [
        ("name = \"x\"\n", 10, "name"),
        ("\"na\\u006de\" = \"x\"\n", 10, "\"na\\u006de\""),
        ("env = { A = \"1\", A = \"2\" }\n", 10, "A"),
    ] {
        let error = refused(&minimal(extra));
        assert!(
            error.contains(&format!("line {line}: duplicate key `{key}`")),
            "{error}"
        );
    }
}

#[test]
fn only_version_1_and_protocol_1_are_known() {
    for version in ["0", "2", "-1", "99999999999999999999"] {
        let error = refused(&with(
            "schema_version = 1",
            &format!("schema_version = {version}"),
        ));
        assert!(error.contains("line 1: `schema_version`"), "{error}");
    }
    for protocol in ["2", "1.0", "01", " 1", ""] {
        let error = refused(&with(
            "protocol = \"1\"",
            &format!("protocol = \"{protocol}\""),
        ));
        assert!(
            error.contains("line 7: plugin `policy`: `protocol`"),
            "{error}"
        );
    }
}

#[test]
fn names_are_short_plain_and_unique() {
    let longest = "a-9".repeat(11)[..32].to_owned();
    for name in ["a", "0", "-", &longest] {
        only(&with("\"policy\"", &format!("\"{name}\"")));
    }
    for name in [
        "",
        "Policy",
        "a_b",
        "a.b",
        "a b",
        "é",
        "a\\u0000",
        "a/b",
        &format!("{longest}a"),
    ] {
        let error = refused(&with("\"policy\"", &format!("\"{name}\"")));
        assert!(error.contains("line 4: plugin `"), "{error}");
        assert!(
            error.contains("must be 1 to 32 of a-z, 0-9 and -"),
            "{error}"
        );
    }
    let twice = minimal("") + minimal("").trim_start_matches("schema_version = 1\n");
    let error = refused(&twice);
    assert!(
        error.contains("line 12: plugin `policy`: `name` stands twice"),
        "{error}"
    );
}

#[test]
fn a_command_is_a_bare_name_or_an_absolute_path() {
    for (command, expected) in [
        ("attest-policy", Command::Bare("attest-policy".to_owned())),
        ("-x", Command::Bare("-x".to_owned())),
        ("a b", Command::Bare("a b".to_owned())),
        ("/opt/p", Command::Absolute(PathBuf::from("/opt/p"))),
        ("/opt/../p", Command::Absolute(PathBuf::from("/opt/../p"))),
    ] {
        let text = with("\"attest-policy\"", &format!("\"{command}\""));
        assert_eq!(only(&text).command, expected);
    }
    for command in [
        "",
        ".",
        "..",
        "./x",
        "a/b",
        "../x",
        "a/",
        "~/x/y",
        "a\\u0000b",
        "/a\\u0000b",
    ] {
        let error = refused(&with("\"attest-policy\"", &format!("\"{command}\"")));
        assert!(
            error.contains("line 5: plugin `policy`: `command` must"),
            "{command}: {error}"
        );
    }
}

#[test]
fn a_digest_has_one_form() {
    let digits = DIGEST.strip_prefix("blake3:").unwrap();
    for digest in [
        digits.to_owned(),
        format!("sha256:{digits}"),
        format!("BLAKE3:{digits}"),
        format!("blake3:{}", digits.to_uppercase()),
        format!("blake3:{}", &digits[1..]),
        format!("blake3:{digits}0"),
        format!("blake3: {digits}"),
        format!(" blake3:{digits}"),
        format!("blake3:{digits}\\n"),
        "blake3:".to_owned(),
    ] {
        for strictness in [Strictness::Run, Strictness::Listing] {
            let text = with(DIGEST, &digest);
            let error = Plugins::parse(&text, strictness).unwrap_err().to_string();
            assert!(
                error.contains("line 6: plugin `policy`: `digest` must be"),
                "{error}"
            );
        }
    }
}

#[test]
fn only_a_listing_takes_a_plugin_without_a_digest() {
    let empty = with(DIGEST, "");
    let absent = with(&format!("digest = \"{DIGEST}\"\n"), "");
    for text in [empty, absent] {
        let error = refused(&text);
        assert!(error.contains("attest plugins pin policy"), "{error}");
        let listed = Plugins::parse(&text, Strictness::Listing).unwrap();
        assert_eq!(listed.plugins[0].digest, None);
    }
}

#[test]
fn hooks_are_known_and_stand_once() {
    let all = "[\"receipt.finalize\", \"step.post\", \"step.pre\", \"pipeline.validate\"]";
    let hooks = only(&with("[\"step.pre\"]", all)).hooks;
    let order = [
        Hook::ReceiptFinalize,
        Hook::StepPost,
        Hook::StepPre,
        Hook::PipelineValidate,
    ];
    assert_eq!(hooks, order);
    for (hooks, rule) in [
        ("[]", "is empty"),
        ("[\"step.pre\", \"step.pre\"]", "names step.pre twice"),
        (
            "[\"step.Pre\"]",
            "has no hook `step.Pre`; there are pipeline.validate, step.pre, step.post, receipt.finalize",
        ),
        ("[\"receipt.check\"]", "has no hook"),
        ("[\"\"]", "has no hook"),
    ] {
        let error = refused(&with("[\"step.pre\"]", hooks));
        assert!(
            error.contains(&format!("line 8: plugin `policy`: `hooks` {rule}")),
            "{error}"
        );
    }
}

#[test]
fn timeouts_are_from_one_second_to_an_hour() {
    for seconds in ["1", "3600", "0x10", "1_000"] {
        only(&minimal(&format!("timeout_secs = {seconds}\n")));
    }
    for seconds in ["0", "-1", "3601", "9223372036854775808"] {
        let error = refused(&minimal(&format!("timeout_secs = {seconds}\n")));
        assert!(
            error.contains("line 10: plugin `policy`: `timeout_secs`"),
            "{error}"
        );
    }
    for word in ["open", "Fail-Open", "", "fail_open"] {
        let error = refused(&minimal(&format!("on_failure = \"{word}\"\n")));
        assert!(
            error.contains("must be fail-closed or fail-open"),
            "{error}"
        );
    }
}

#[test]
fn variables_have_plain_names_that_are_not_ours() {
    for name in ["PATH", "ATTEST_WORKSPACE", "ATTEST_", "ATTEST_KEY"] {
        let error = refused(&minimal(&format!("env = {{ {name} = \"x\" }}\n")));
        assert!(
            error.contains(&format!("`env.{name}` is set by attest itself")),
            "{error}"
        );
    }
    for name in [
        "\"\"",
        "1A",
        "\"A=B\"",
        "\"A B\"",
        "\"é\"",
        "A-B",
        "\"A\\u0000\"",
    ] {
        let error = refused(&minimal(&format!("env = {{ {name} = \"x\" }}\n")));
        assert!(
            error.contains("must be a name of letters"),
            "{name}: {error}"
        );
    }
    for name in ["path", "PATHS", "attest_x", "ATTEST", "LD_LIBRARY_PATH"] {
        only(&minimal(&format!("env = {{ {name} = \"x\" }}\n")));
    }
    let error = refused(&minimal("[plugin.env]\nA = \"x\"\nB = \"a\\u0000b\"\n"));
    assert!(
        error.contains("line 12: plugin `policy`: `env.B` must not hold a NUL"),
        "{error}"
    );
    assert!(
        refused(&minimal("env.A.B = \"x\"\n")).contains("`env.A` must be a string, not a table")
    );
}

fn target(os: &str, arch: &str, digest: &str) -> String {
    format!("[[plugin.target]]\nos = \"{os}\"\narch = \"{arch}\"\ndigest = \"{digest}\"\n")
}

fn on(os: &str, arch: &str, text: &str) -> Result<Option<Digest>, String> {
    let (os, arch) = (os.to_owned(), arch.to_owned());
    let platform = Platform { os, arch };
    let found = located(text, Strictness::Run, &platform).map_err(|error| error.to_string())?;
    Ok(found[0].declared.digest)
}

#[test]
fn the_target_of_the_platform_counts() {
    let targets = target("linux", "x86_64", OTHER) + &target("macos", "aarch64", DIGEST);
    let own = minimal(&targets);
    let without = with(&format!("digest = \"{DIGEST}\"\n"), "") + &targets;
    for text in [&own, &without] {
        assert_eq!(
            on("linux", "x86_64", text),
            Ok(Some(OTHER.parse().unwrap()))
        );
        assert_eq!(
            on("macos", "aarch64", text),
            Ok(Some(DIGEST.parse().unwrap()))
        );
        let error = on("linux", "aarch64", text).unwrap_err();
        assert!(
            error.contains("plugin `policy`: `target` has none for linux/aarch64"),
            "{error}"
        );
    }
    assert_eq!(
        on("any", "thing", &minimal("")),
        Ok(Some(DIGEST.parse().unwrap()))
    );
    let error = on("any", "thing", &minimal("target = []\n")).unwrap_err();
    assert!(error.contains("has none for any/thing"), "{error}");
}

#[test]
fn targets_are_as_strict_as_the_rest() {
    let good = target("linux", "x86_64", OTHER);
    let error = on("linux", "x86_64", &minimal(&(good.clone() + &good))).unwrap_err();
    assert!(
        error.contains("`target` stands twice for linux/x86_64"),
        "{error}"
    );
    for (old, new, rule) in [
        ("\"linux\"", "\"Linux\"", "`target.os` must be 1 to 32"),
        ("\"linux\"", "\"\"", "`target.os` must be 1 to 32"),
        ("\"x86_64\"", "\"x86-64\"", "`target.arch` must be 1 to 32"),
        ("os = \"linux\"\n", "", "`target.os` is missing"),
        (OTHER, "blake3:1", "`target.digest` must be"),
        (OTHER, "", "`digest` is missing or empty"),
    ] {
        let text = minimal(&(target("macos", "arm", DIGEST) + &good.replace(old, new)));
        let error = on("linux", "x86_64", &text).unwrap_err();
        assert!(error.contains(rule), "{error}");
    }
}

#[test]
fn a_workspace_has_declarations_none_or_an_error() {
    let workspace = tempfile::tempdir().unwrap();
    let load = || Plugins::load(workspace.path(), Strictness::Run);
    assert_eq!(load().unwrap(), None);
    assert_eq!(Plugins::text(workspace.path()).unwrap(), None);
    let file = workspace.path().join(FILE);
    fs_err::create_dir(file.parent().unwrap()).unwrap();
    fs_err::write(&file, minimal("")).unwrap();
    assert_eq!(load().unwrap(), Some(parse(&minimal(""))));
    fs_err::write(&file, minimal("skip = true\n")).unwrap();
    assert!(load().unwrap_err().to_string().contains("`skip`"));
    let text = Plugins::text(workspace.path()).unwrap();
    assert_eq!(text, Some(minimal("skip = true\n")));
    fs_err::remove_file(&file).unwrap();
    fs_err::create_dir(&file).unwrap();
    assert!(matches!(load(), Err(DeclareError::InTheWay { .. })));
}

#[test]
fn a_file_without_plugins_declares_nothing() {
    for text in ["schema_version = 1\n", "schema_version = 1\nplugin = []\n"] {
        assert_eq!(parse(text), Plugins::default());
    }
}

#[test]
fn the_order_of_the_file_stays() {
    let many = |count: usize| {
        let mut text = "schema_version = 1\n".to_owned();
        for number in (0..count).rev() {
            let one = minimal("").replace("schema_version = 1\n", "");
            text += &one.replace("\"policy\"", &format!("\"p{number}\""));
        }
        text
    };
    let names: Vec<String> = parse(&many(MAX_PLUGINS))
        .plugins
        .iter()
        .map(|plugin| plugin.name.to_string())
        .collect();
    let expected: Vec<String> = (0..MAX_PLUGINS).rev().map(|n| format!("p{n}")).collect();
    assert_eq!(names, expected);
    let error = refused(&many(MAX_PLUGINS + 1));
    assert!(error.contains("stands more than 64 times"), "{error}");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    for (text, line) in [
        ("schema_version = 1\nschema_version = 1\n", 2),
        ("schema_version = 1\n\n[[plugin]\n", 3),
        ("= 1\n", 1),
        (
            "schema_version = 1\n[[plugin]]\nname = \"a\"\nname = \"a\"\n",
            4,
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(&format!("line {line}: ")), "{error}");
    }
    let dotted = "a.".repeat(500_000);
    for deep in [
        format!("x = {}", "[".repeat(500_000)),
        format!("x = {}", "{a=".repeat(300_000)),
        format!("{dotted}a = 1"),
        format!("[{dotted}a]"),
        format!("[[{dotted}a]]"),
        format!("x = {{ {dotted}a = 1 }}"),
    ] {
        refused(&format!("schema_version = 1\n{deep}\n"));
    }
    let long = format!("#{}", "x".repeat(MAX_BYTES));
    assert!(matches!(
        Plugins::parse(&long, Strictness::Run),
        Err(DeclareError::TooLong)
    ));
}

#[test]
fn foreign_text_in_errors_is_short_and_visible() {
    let nasty = format!("\\u001b[2J\\u202e{}", "x".repeat(10_000));
    for text in [
        with("\"policy\"", &format!("\"{nasty}\"")),
        with("\"attest-policy\"", &format!("\"./{nasty}\"")),
        with("\"step.pre\"", &format!("\"{nasty}\"")),
        minimal(&format!("\"{nasty}\" = 1\n")),
        minimal(&format!("env = {{ \"{nasty}\" = \"\" }}\n")),
    ] {
        let error = refused(&text);
        assert!(error.len() < 600, "{}", error.len());
        assert!(!bounded::text::has_control_or_format(&error), "{error}");
    }
}

proptest! {
    #[test]
    fn reading_never_panics(text in "(?s).{0,200}", strict: bool) {
        let strictness = if strict { Strictness::Run } else { Strictness::Listing };
        let _answer = Plugins::parse(&text, strictness);
    }

    /// A valid declaration with one character replaced is refused, or declares something valid.
    #[test]
    fn one_other_character_never_panics(at in 0_usize..230, new in any::<char>()) {
        let text = minimal("env = { A = \"b\" }\ntimeout_secs = 9\n");
        let changed: String = text
            .chars()
            .enumerate()
            .map(|(index, c)| if index == at { new } else { c })
            .collect();
        if let Ok(plugins) = Plugins::parse(&changed, Strictness::Run) {
            for plugin in plugins.plugins {
                prop_assert!(plugin.digest.is_some() && !plugin.hooks.is_empty());
                prop_assert!((1..=3600).contains(&plugin.timeout.as_secs()));
            }
        }
    }
}
