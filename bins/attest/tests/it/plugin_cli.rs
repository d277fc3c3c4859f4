//! `attest plugins`, the run log, and that nothing skips a plugin or starts one that nobody declared.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;
use test_case::test_case;

use crate::bed::{Bed, Ran, ran, snapshot};
use crate::plugin::{BOTH, Plugin, Way, bed, declare, digest, program, record};

/// Runs the program with these folders in `PATH`.
fn with_path(bed: &Bed, path: &str, args: &[&str]) -> Ran {
    ran(bed.program(args).env("PATH", path))
}

/// A declaration with comments, in an order of its own.
fn commented(bed: &Bed) -> String {
    let text = bed.read(".attest/plugins.toml");
    let text = text.replace("protocol = \"1\"", "protocol   =  '1' # the only one");
    format!("# reviewed by two people\n{text}\n# the end\n")
}

#[test]
fn list_tells_every_plugin_in_the_order_of_the_declaration() {
    let plugin = |name: &str| Plugin::new(name, &["step.pre", "step.post"]);
    let bed = bed(&[
        plugin("zeta"),
        plugin("changed").fail_open(),
        plugin("gone")
            .more("timeout_secs = 7")
            .more("env = { A = \"secret-looking\" }"),
        plugin("new"),
    ]);
    let script = bed.read("plugins/changed") + "#";
    program(&bed, "plugins/changed", &script);
    std::fs::remove_file(bed.path("plugins/gone")).unwrap();
    let text = bed.read(".attest/plugins.toml");
    let new = digest(bed.read("plugins/new"));
    bed.write(".attest/plugins.toml", text.replace(&new, ""));
    let before = snapshot(bed.folder());

    let listed = bed.attest(&["plugins", "list"]).expect(0).out;
    let words: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split("  ").take(4).collect())
        .collect();
    let hooks = "step.pre,step.post";
    assert_eq!(
        words,
        [
            ["zeta", "ok", "fail-closed", hooks],
            ["changed", "mismatch", "fail-open", hooks],
            ["gone", "unresolved", "fail-closed", hooks],
            ["new", "unpinned", "fail-closed", hooks],
        ]
    );
    let gone = listed.lines().nth(2).unwrap();
    assert!(gone.contains("  -  "), "{gone}");
    let columns: Vec<usize> = listed
        .lines()
        .map(|line| line.split("  ").count())
        .collect();
    assert_eq!(columns, [7, 7, 8, 7], "{listed}");
    let json = bed
        .attest(&["plugins", "list", "--format", "json"])
        .expect(0)
        .out;
    let records: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records[0]["file"], plugin("zeta").command(&bed));
    assert_eq!(records[0]["digest"], records[0]["found"]);
    assert_eq!(records[0]["interpreter"], "/bin/sh");
    assert_eq!(records[1]["found"], digest(&script));
    assert_eq!(records[2]["file"], Value::Null);
    let problem = records[2]["problem"].as_str().unwrap();
    assert!(gone.ends_with(&format!("  {problem}")), "{gone}");
    assert_eq!(records[2]["timeout_secs"], 7);
    assert_eq!(records[2]["env"], serde_json::json!(["A"]));
    assert!(records[2]["problem"].is_string());
    assert_eq!(records[3]["digest"], Value::Null);
    assert_eq!(
        snapshot(bed.folder()),
        before,
        "nothing is started or written"
    );
}

#[test]
fn without_declarations_there_is_nothing_to_list_and_nothing_differs() {
    let bed = Bed::new();
    for action in ["list", "verify"] {
        let ran = bed.attest(&["plugins", action]).expect(0);
        assert_eq!(ran.out, "");
        assert_eq!(ran.err, "no plugins are declared\n");
    }
    bed.attest(&["plugins", "pin", "x"])
        .expect(2)
        .says("there is no .attest/plugins.toml");
    bed.write(".attest/plugins.toml", "schema_version = 1\nmore = 1\n");
    for args in [&["list"][..], &["verify"], &["pin", "x"]] {
        let args = [&["plugins"], args].concat();
        bed.attest(&args).expect(2).says("more");
    }
}

#[test]
fn verify_is_0_1_or_2() {
    let plugin = |name: &str| Plugin::new(name, &["step.pre"]);
    let bed = bed(&[plugin("a"), plugin("b")]);
    let verify = |code: i32| bed.attest(&["plugins", "verify"]).expect(code);
    let of = |name: &str| digest(bed.read(&format!("plugins/{name}")));
    let (a, b) = (of("a"), of("b"));
    assert_eq!(verify(0).out, format!("a: ok {a}\nb: ok {b}\n"));
    program(&bed, "plugins/b", "#!/bin/sh\n");
    let ran = verify(1).says("attest plugins pin b");
    let found = of("b");
    assert!(
        ran.out
            .ends_with(&format!("b: mismatch: declared {b}, found {found}\n")),
        "{}",
        ran.out
    );
    let json = bed
        .attest(&["plugins", "verify", "--format", "json"])
        .expect(1)
        .out;
    let last: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!(last["status"], "mismatch");
    assert_eq!(
        (&last["digest"], &last["found"]),
        (&b.into(), &found.into())
    );
    // What cannot be found weighs more than what differs, and both are told.
    std::fs::remove_file(bed.path("plugins/a")).unwrap();
    let ran = verify(2).says("no digest could be computed of: a");
    assert!(ran.out.starts_with("a: unresolved: "), "{}", ran.out);
    assert!(ran.out.contains("b: mismatch"), "{}", ran.out);
    let ran = ran.says("attest plugins pin b");
    assert!(!ran.err.contains("pin a"), "{}", ran.err);
    bed.write(
        ".attest/plugins.toml",
        bed.read(".attest/plugins.toml").replace(&a, ""),
    );
    verify(2).says("attest plugins pin a");
}

#[test]
fn pin_writes_digests_and_changes_nothing_else() {
    let plugin = |name: &str| Plugin::new(name, &["step.pre"]);
    let bed = bed(&[plugin("zeta"), plugin("alpha")]);
    let before = commented(&bed);
    let file = bed.write(".attest/plugins.toml", &before);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    let (old, other) = (
        digest(bed.read("plugins/alpha")),
        digest(bed.read("plugins/zeta")),
    );
    let script = bed.read("plugins/alpha") + "# more\n";
    program(&bed, "plugins/alpha", &script);
    let new = digest(&script);
    let ran = bed.attest(&["plugins", "pin", "alpha", "zeta"]).expect(0);
    assert_eq!(
        ran.out,
        format!("alpha: {old} -> {new}\nzeta: unchanged, {other}\n")
    );
    assert_eq!(bed.read(".attest/plugins.toml"), before.replace(&old, &new));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    assert_eq!(bed.names(".attest"), ["plugins.toml"]);
    let again = bed
        .attest(&["plugins", "pin", "alpha", "--format", "json"])
        .expect(0);
    let again: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(
        again,
        serde_json::json!({"name": "alpha", "digest": new, "previous": new, "changed": false})
    );
    Way::Pipeline.run(&bed, &[]).expect(0);

    // A digest that is absent or empty is no obstacle here, and one everywhere else.
    for without in [
        before.replace(&old, ""),
        before.replace(&format!("digest = \"{old}\"\n"), ""),
    ] {
        bed.write(".attest/plugins.toml", &without);
        Way::Pipeline
            .run(&bed, &[])
            .expect(2)
            .says("attest plugins pin alpha");
        let ran = bed.attest(&["plugins", "pin", "alpha"]).expect(0);
        assert_eq!(ran.out, format!("alpha: pinned to {new}\n"));
        let text = bed.read(".attest/plugins.toml");
        assert_eq!(
            text.matches('#').count(),
            before.matches('#').count(),
            "{text}"
        );
        bed.attest(&["plugins", "verify"]).expect(0);
    }
}

#[test]
fn pin_refuses_as_a_whole_and_leaves_the_file_alone() {
    let plugin = |name: &str| Plugin::new(name, &["step.pre"]);
    let bed = bed(&[plugin("a"), plugin("b")]);
    program(&bed, "plugins/a", "#!/bin/sh\n");
    std::fs::remove_file(bed.path("plugins/b")).unwrap();
    let before = snapshot(bed.folder());
    for (args, told) in [
        (&["a", "b"][..], "plugin b cannot be pinned"),
        (&["a", "c"], "no plugin is called `c`"),
        (&["A"], "a plugin's name is"),
        (&["../a"], "a plugin's name is"),
    ] {
        let args = [&["plugins", "pin"], args].concat();
        bed.attest(&args).expect(2).says(told);
        assert_eq!(snapshot(bed.folder()), before);
    }
    let file = bed.path(".attest/plugins.toml");
    std::fs::rename(&file, bed.path("real.toml")).unwrap();
    symlink("../real.toml", &file).unwrap();
    let real = bed.read("real.toml");
    bed.attest(&["plugins", "pin", "a"])
        .expect(2)
        .says("symbolic link");
    assert!(std::fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(bed.read("real.toml"), real);
}

#[test]
fn a_workspace_elsewhere_can_be_named() {
    let there = bed(&[Plugin::new("gate", &["step.pre"])]);
    let here = Bed::new();
    let folder = there.folder().to_str().unwrap();
    for action in [&["list"][..], &["verify"], &["pin", "gate"]] {
        let args = [&["plugins"], action, &["--workspace", folder]].concat();
        assert!(here.attest(&args).expect(0).out.starts_with("gate"));
    }
}

#[test]
fn a_program_is_never_run_for_its_name() {
    let bed = bed(&[]);
    let mark = "#!/bin/sh\n: > \"$0.ran\"\n";
    let names = [
        "attest-foo",
        "attest-run",
        "attest-plugins",
        "attest-plugins-list",
        "attest-policy",
    ];
    for name in names {
        program(&bed, &format!("bin/{name}"), mark);
    }
    let path = format!("{}:/usr/bin:/bin", bed.path("bin").display());
    for (code, args) in [
        (2, &["foo"][..]),
        (2, &["plugins", "foo"]),
        (2, &["attest-foo"]),
        (2, &["help", "foo"]),
        (2, &["policy"]),
        (0, &["plugins", "list"]),
        (0, &["run"]),
        (0, &["run", "--wrap", "--name", "s", "--", "true"]),
    ] {
        with_path(&bed, &path, args).expect(code);
    }
    for name in names {
        assert!(!bed.path(&format!("bin/{name}.ran")).exists(), "{name}");
    }
}

#[test]
fn no_option_and_no_variable_skips_a_plugin_or_its_digest() {
    for way in BOTH {
        let deny = Plugin::new("gate", &["step.post"]).body("on_request() { verdict deny; }");
        let bed = bed(&[deny]);
        for option in [
            "--no-plugins",
            "--skip-plugins",
            "--skip-plugin=gate",
            "--without-plugins",
            "--plugins=off",
            "--no-verify",
            "--allow-unpinned",
            "--insecure",
            "--ignore-digest",
            "--force",
        ] {
            way.run(&bed, &[option]).expect(2).says("--");
            assert!(!bed.path("out").exists(), "{option}");
        }
        for variable in [
            "ATTEST_NO_PLUGINS",
            "ATTEST_SKIP_PLUGINS",
            "ATTEST_PLUGINS",
            "ATTEST_DISABLE_PLUGINS",
            "ATTEST_PLUGIN_INSECURE",
            "ATTEST_INSECURE",
        ] {
            for value in ["0", "1", "off", "gate", ""] {
                let mut program = bed.program(&way.args(&["-q"]));
                ran(program.env(variable, value)).expect(1);
                assert_eq!(record(&bed, "gate")["decision"], "deny");
            }
        }
        let script = bed.read("plugins/gate") + "# changed\n";
        program(&bed, "plugins/gate", &script);
        for variable in ["ATTEST_SKIP_DIGEST", "ATTEST_INSECURE", "ATTEST_NO_PLUGINS"] {
            let mut program = bed.program(&way.args(&["-q"]));
            ran(program.env(variable, "1")).expect(2);
        }
        for key in ["skip", "enabled", "verify", "optional", "disabled"] {
            let text = bed.read(".attest/plugins.toml");
            bed.write(".attest/plugins.toml", format!("{text}{key} = false\n"));
            way.run(&bed, &[]).expect(2).says(key);
            bed.write(".attest/plugins.toml", text);
        }
    }
}

#[test_case("./gate"; "a path from here")]
#[test_case("plugins/gate"; "a path below here")]
#[test_case("../gate"; "a path above here")]
#[test_case(""; "nothing")]
#[test_case("."; "here")]
fn a_command_is_an_absolute_path_or_a_bare_name(command: &str) {
    for way in BOTH {
        let plugin = Plugin::new("gate", &["step.pre"]).fail_open();
        let bed = bed(std::slice::from_ref(&plugin));
        let text = bed.read(".attest/plugins.toml");
        let text = text.replace(&plugin.command(&bed), command);
        bed.write(".attest/plugins.toml", text);
        way.run(&bed, &[]).expect(2).says("command");
        bed.attest(&["plugins", "list"]).expect(2);
        assert!(!bed.path("out").exists());
    }
}

#[test]
fn a_bare_name_is_never_found_in_the_working_folder() {
    for way in BOTH {
        let plugin = Plugin::new("gate", &["step.pre"]);
        let bed = bed(std::slice::from_ref(&plugin));
        let script = bed.read("plugins/gate");
        let text = bed.read(".attest/plugins.toml");
        bed.write(
            ".attest/plugins.toml",
            text.replace(&plugin.command(&bed), "gate"),
        );
        program(&bed, "gate", &script);
        program(&bed, "below/gate", &script);
        for entries in [
            ".:/usr/bin:/bin",
            ":/usr/bin:/bin",
            "/usr/bin:/bin:",
            "/usr/bin::/bin",
            "below:/usr/bin:/bin",
            "/usr/bin:/bin:./plugins",
        ] {
            let ran = with_path(&bed, entries, &way.args(&[])).expect(2);
            assert!(ran.err.contains("gate"), "{entries}: {}", ran.err);
            assert!(!bed.path("out").exists(), "{entries}");
            let listed = with_path(&bed, entries, &["plugins", "list"]).expect(0);
            assert!(
                listed.out.contains("unresolved"),
                "{entries}: {}",
                listed.out
            );
        }
        let found = format!(".::{}:/usr/bin:/bin", bed.path("below").display());
        with_path(&bed, &found, &way.args(&[])).expect(0);
        assert_eq!(record(&bed, "gate")["decision"], "allow");
    }
}

#[test]
fn init_leaves_the_declaration_to_be_committed() {
    let bed = bed(&[]);
    let declared = bed.read(".attest/plugins.toml");
    bed.attest(&["init"]).expect(0);
    assert_eq!(bed.read(".attest/plugins.toml"), declared);
    assert!(!bed.read(".gitignore").contains("plugins"));
    declare(&bed, &[]);
}
