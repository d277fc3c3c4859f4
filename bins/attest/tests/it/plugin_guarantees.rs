//! G1 to G5: what a plugin that is declared, pinned and hostile can and cannot do to a run.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use test_case::test_case;

use crate::bed::{Bed, ran, snapshot};
use crate::plugin::{ALL, BOTH, Plugin, Way, bed, declare, receipt, record, records};
use crate::traced::{forbidden, traced};

const CANARY: &str = "canary-5f0e77";

/// A plugin that leaves a mark wherever it is started.
fn marking() -> Plugin {
    Plugin::new("hostile", &ALL)
        .body("on_hello() { echo . >> \"$ATTEST_WORKSPACE/started\"; hello_ok; }")
}

#[test]
fn g1_verify_starts_no_plugin_that_took_part_in_the_run() {
    for way in BOTH {
        let bed = bed(&[marking()]);
        bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
        way.run(&bed, &["--sign"]).expect(0);
        assert_eq!(bed.read("started"), ".\n");
        let before = snapshot(bed.folder());
        for (code, args) in [
            (0, &["verify", "r.yaml"][..]),
            (0, &["verify", "--require", "plugins", "r.yaml"]),
            (0, &["verify", "--require", "plugin:hostile", "r.yaml"]),
            (1, &["verify", "--require", "plugin:other", "r.yaml"]),
        ] {
            let (ran, trace) = traced(&bed, args);
            ran.expect(code);
            assert!(trace.iter().any(|line| line.contains("r.yaml")));
            assert_eq!(forbidden(&trace), Vec::<&String>::new());
            for unseen in ["plugins.toml", "plugins/hostile"] {
                assert!(!trace.iter().any(|line| line.contains(unseen)), "{unseen}");
            }
        }
        assert_eq!(snapshot(bed.folder()), before);
        // Without the plugin and its declaration the words are the same.
        let with = bed.attest(&["verify", "r.yaml"]).expect(0);
        fs::remove_file(bed.path(".attest/plugins.toml")).unwrap();
        fs::remove_dir_all(bed.path("plugins")).unwrap();
        let without = bed.attest(&["verify", "r.yaml"]).expect(0);
        assert_eq!(with.out, without.out);
        assert!(
            with.out.contains("  plugin: hostile 1.2.3 allow\n"),
            "{}",
            with.out
        );
    }
}

/// Writes down what the plugin process was given.
const DUMPS: &str = r#"
dump="$ATTEST_WORKSPACE/dump"
on_hello() {
  mkdir -p "$dump"
  cat /proc/$$/environ > "$dump/environ"
  cat /proc/$$/cmdline > "$dump/cmdline"
  (ls -l /proc/$$/fd > "$dump/fds")
  pwd > "$dump/pwd"
  printf '%s\n' "$line" >> "$dump/stdin"
  hello_ok
}
on_request() { printf '%s\n' "$line" >> "$dump/stdin"; verdict allow; }
on_shutdown() { printf '%s\n' "$line" >> "$dump/stdin"; exit 0; }
"#;

/// Where the keys are, and how one is chosen.
#[derive(Debug, Clone, Copy)]
enum Keys {
    Workspace,
    Folder,
    Named,
}

#[test_case(Keys::Workspace, Way::Pipeline; "keys of the workspace")]
#[test_case(Keys::Workspace, Way::Wrap; "keys of the workspace, wrapped")]
#[test_case(Keys::Folder, Way::Pipeline; "keys in another folder")]
#[test_case(Keys::Folder, Way::Wrap; "keys in another folder, wrapped")]
#[test_case(Keys::Named, Way::Pipeline; "a key that is named")]
#[test_case(Keys::Named, Way::Wrap; "a key that is named, wrapped")]
fn g2_no_key_byte_path_or_id_reaches_a_plugin(keys: Keys, way: Way) {
    let plugin = Plugin::new("nosy", &ALL)
        .body(DUMPS)
        .more("wants_output = true")
        .more("env = { OWN = \"declared\" }");
    let bed = bed(&[plugin]);
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("secret-keys");
    let program = |args: &[&str]| {
        let mut program = bed.program(args);
        program.env("TOKEN", CANARY);
        if let Keys::Folder = keys {
            program.env("ATTEST_KEYS_DIR", &elsewhere);
        }
        program
    };
    let generate = || ran(&mut program(&["keys", "generate", "--name", "ci"])).expect(0);
    let mut ids = vec![generate().out.trim().to_owned()];
    if let Keys::Named = keys {
        ids.push(generate().out.trim().to_owned());
    }
    let key_dir = match keys {
        Keys::Folder => elsewhere.clone(),
        _ => bed.path(".attest/keys"),
    };
    let mut secrets: Vec<String> = ids.clone();
    secrets.extend([".attest/keys", "secret-keys", ".key", CANARY].map(str::to_owned));
    for file in fs::read_dir(&key_dir).unwrap() {
        let file = file.unwrap().path();
        secrets.extend(forms(&file));
    }
    let more = match keys {
        Keys::Named => vec!["--sign", "--key", &ids[0]],
        _ => vec!["--sign"],
    };
    ran(&mut program(&way.args(&more))).expect(0);
    ran(&mut program(&["verify", "r.yaml"])).expect(0);

    let handed: Vec<(String, Vec<u8>)> = bed
        .names("dump")
        .into_iter()
        .map(|name| {
            (
                name.clone(),
                fs::read(bed.path(&format!("dump/{name}"))).unwrap(),
            )
        })
        .collect();
    assert_eq!(handed.len(), 5);
    for (name, bytes) in &handed {
        let text = String::from_utf8_lossy(bytes);
        for secret in &secrets {
            assert!(
                !text.contains(secret.as_str()),
                "`{secret}` in {name}: {text}"
            );
        }
    }
    only_what_is_told(&bed);
    for hook in ALL {
        assert!(
            bed.read("dump/stdin")
                .contains(&format!("\"kind\":\"{hook}\"")),
            "{hook}"
        );
    }
}

/// The ways in which the bytes of a key file could be spelt.
fn forms(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| line.len() > 20);
    let mut forms: Vec<String> = lines
        .filter(|line| !line.starts_with("---"))
        .map(str::to_owned)
        .collect();
    let bytes = fs::read(file).unwrap();
    if let Some(tail) = bytes.len().checked_sub(32) {
        forms.push(
            bytes[tail..]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        );
    }
    forms.push(file.to_str().unwrap().to_owned());
    forms
}

/// The environment, the descriptors, the arguments and the working folder are those of the page.
fn only_what_is_told(bed: &Bed) {
    let environ = bed.read("dump/environ");
    let mut names: Vec<&str> = environ
        .split('\0')
        .filter_map(|entry| Some(entry.split_once('=')?.0))
        .collect();
    names.sort_unstable();
    let told = [
        "ATTEST_PLUGIN_NAME",
        "ATTEST_PLUGIN_PROTOCOL",
        "ATTEST_VERSION",
        "ATTEST_WORKSPACE",
        "LANG",
        "LC_ALL",
        "OWN",
        "PATH",
        "TZ",
    ];
    assert_eq!(names, told);
    let folder = bed.folder().canonicalize().unwrap();
    assert!(
        environ.contains(&format!("ATTEST_WORKSPACE={}\0", folder.display())),
        "{environ}"
    );
    assert_eq!(bed.read("dump/pwd").trim(), folder.to_str().unwrap());
    let fds = bed.read("dump/fds");
    // The shell itself opens its script.
    let script = |target: &str| target.contains("memfd:") || target.ends_with("plugins/nosy");
    let fds: Vec<&str> = fds
        .lines()
        .filter_map(|line| line.split_once(" -> "))
        .filter(|(_, target)| !script(target))
        .map(|(entry, _)| entry.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(fds, ["0", "1", "2"]);
    let arguments = bed.read("dump/cmdline");
    assert_eq!(
        arguments.trim_end_matches('\0').split('\0').count(),
        2,
        "{arguments}"
    );
}

#[test]
fn g2_the_key_is_read_when_no_plugin_is_left() {
    // A plugin that takes the key away as its last deed shows that it was not read before.
    for way in BOTH {
        let plugin = Plugin::new("late", &["receipt.finalize"])
            .body("on_shutdown() { rm -r \"$ATTEST_WORKSPACE/.attest/keys\"; exit 0; }");
        let bed = bed(&[plugin]);
        bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
        way.run(&bed, &["--sign"]).expect(2).says("key");
        assert!(!bed.path("r.yaml").exists());
    }
}

/// A plugin that claims facts in every way that a message has room for, and writes where it can.
const LIES: &str = r#"
lie='"exit_code":7,"duration_secs":99,"input_hash":"00","output_hash":"11","timestamp":"2000-01-01T00:00:00Z"'
w="$ATTEST_WORKSPACE"
on_hello() { hello_ok | sed "s/}\$/,$lie,\"digest\":\"blake3:00\",\"decision\":\"deny\"}/"; }
on_request() {
  mkdir -p "$w/.attest/receipts" "$w/.attest/cache" "$w/.attest/causal_ledger/events"
  for folder in receipts cache causal_ledger causal_ledger/events; do
    echo forged > "$w/.attest/$folder/0000.yaml"
    echo forged > "$w/.attest/$folder/forged.json"
  done
  case $kind in step.post | receipt.finalize) rm -f "$w/out" "$w/r.yaml"; echo changed > "$w/in" ;; esac
  verdict allow ",$lie,\"step\":{$lie},\"receipt\":{$lie},\"payload\":{\"step\":{$lie}},\"signature\":\"00\",\"steps\":[{$lie}],\"plugins\":[],\"annotation\":{$lie,\"steps\":[{$lie}],\"signature\":\"00\",\"pipeline_hash\":\"00\"}"
}
"#;

/// A receipt without what two runs may differ in.
fn facts(bed: &Bed) -> Value {
    let mut receipt = receipt(bed).unwrap();
    let object = receipt.as_object_mut().unwrap();
    for name in [
        "plugins",
        "timestamp",
        "schema_version",
        "signature",
        "total_duration_secs",
    ] {
        object.remove(name);
    }
    let provenance = object["provenance"].as_object_mut().unwrap();
    for name in ["started_at", "finished_at", "invocation_id"] {
        provenance.remove(name);
    }
    for step in object["steps"].as_array_mut().unwrap() {
        step.as_object_mut().unwrap().remove("duration_secs");
    }
    // Their ids are random.
    object["causal_events"] = object["causal_events"].as_array().unwrap().len().into();
    object.remove("causal_chain_hash");
    object.remove("signer_public_key");
    receipt
}

#[test]
fn g3_no_way_of_the_protocol_changes_a_fact() {
    for way in BOTH {
        let honest = bed(&[]);
        way.run(&honest, &[]).expect(0);
        let hostile = bed(&[Plugin::new("liar", &ALL).body(LIES)]);
        hostile
            .attest(&["keys", "generate", "--name", "ci"])
            .expect(0);
        way.run(&hostile, &["--sign"]).expect(0);
        assert_eq!(facts(&hostile), facts(&honest), "{way:?}");
        let record = record(&hostile, "liar");
        assert_eq!(record["decision"], "allow");
        assert_eq!(
            record["digest"],
            crate::plugin::digest(hostile.read("plugins/liar"))
        );
        assert_eq!(record["annotation"]["exit_code"], 7);
        let verified = hostile.attest(&["verify", "r.yaml"]).expect(0);
        assert!(
            verified.out.starts_with("r.yaml: pass\n"),
            "{}",
            verified.out
        );
        // What lies on the disk now is not what was made, and the receipt says so.
        hostile
            .attest(&["verify", "--recompute", "r.yaml"])
            .expect(1);
        assert!(!hostile.path("out").exists());
    }
}

#[test]
fn g3_a_receipt_before_its_signature_shows_no_signature_and_no_record() {
    for way in BOTH {
        let bed = bed(&[Plugin::new("nosy", &["receipt.finalize"]).body(DUMPS)]);
        bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
        way.run(&bed, &["--sign"]).expect(0);
        let stdin = bed.read("dump/stdin");
        let line = stdin.lines().find(|line| line.contains("receipt.finalize"));
        let message: Value = serde_json::from_str(line.unwrap()).unwrap();
        let seen = &message["payload"]["receipt"];
        assert_eq!(seen["signature"], Value::Null);
        assert_eq!(seen["signer_public_key"], Value::Null);
        assert_eq!(seen.get("plugins"), None);
        let step = &seen["steps"][0];
        assert_eq!(step["stdout"].as_str().unwrap_or_default(), "");
        let written = receipt(&bed).unwrap();
        assert_eq!(step["output_hash"], written["steps"][0]["output_hash"]);
        assert!(written["signature"].is_string());
    }
}

#[test]
fn g3_rules_and_resources_are_never_opened() {
    // Whoever opened the FIFO would wait for a writer.
    for way in BOTH {
        let named = "verdict warn \",\\\"findings\\\":[{\\\"rule\\\":\\\"$fifo\\\",\\\"severity\\\":\\\"low\\\",\
                     \\\"message\\\":\\\"$fifo\\\",\\\"resource\\\":\\\"$fifo\\\"}],\\\"annotation\\\":{\\\"file\\\":\\\"$fifo\\\"}\"";
        let plugin = Plugin::new("points", &ALL).body(&format!(
            "fifo=\"$ATTEST_WORKSPACE/bait\"\non_request() {{ {named}; }}"
        ));
        let bed = bed(&[plugin]);
        nix::unistd::mkfifo(&bed.path("bait"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (ran, trace) = traced(&bed, &way.args(&[]));
        ran.expect(0);
        let opened = |line: &&String| line.starts_with("open") && line.contains("/bait\"");
        let found: Vec<&String> = trace.iter().filter(opened).collect();
        assert_eq!(found, Vec::<&String>::new());
        assert_eq!(record(&bed, "points")["decision"], "warn");
    }
}

#[test]
fn g4_every_declared_plugin_is_recorded_whatever_became_of_it() {
    let step = |name: &str, body: &str| Plugin::new(name, &["step.post"]).body(body).fail_open();
    let plugins = [
        step("works", ""),
        step("warns", "on_request() { verdict warn; }"),
        step("absent", ""),
        step("late", "on_request() { sleep 600; }").more("timeout_secs = 2"),
        step("mute", "on_hello() { exit 1; }"),
        step("wild", "on_request() { echo wild; }"),
        step("gone", "on_request() { exit 1; }"),
        step("denies", "on_request() { verdict deny; }"),
        Plugin::new("last", &["receipt.finalize"]),
    ];
    for way in BOTH {
        let bed = bed(&plugins);
        fs::remove_file(bed.path("plugins/absent")).unwrap();
        way.run(&bed, &[]).expect(1).says("plugin denies denied");
        let records = records(&bed);
        let told: Vec<(&str, &str)> = records
            .iter()
            .map(|record| {
                let text = |name: &str| record[name].as_str().unwrap();
                assert_eq!(record["protocol"], 1, "{record}");
                assert_eq!(record["deterministic"], true, "{record}");
                assert!(text("digest").starts_with("blake3:"), "{record}");
                let reason = record
                    .get("reason")
                    .is_some_and(|reason| reason.is_string());
                let fails = ["error", "skipped"].contains(&text("decision"));
                assert_eq!(reason, fails, "{record}");
                let started = !["absent", "mute"].contains(&text("name"));
                assert_eq!(
                    text("version"),
                    if started { "1.2.3" } else { "" },
                    "{record}"
                );
                (text("name"), text("decision"))
            })
            .collect();
        assert_eq!(
            told,
            [
                ("absent", "error"),
                ("denies", "deny"),
                ("gone", "error"),
                ("last", "skipped"),
                ("late", "error"),
                ("mute", "error"),
                ("warns", "warn"),
                ("wild", "error"),
                ("works", "allow"),
            ]
        );
    }
}

/// Counts how often it was asked, in its annotation.
const COUNTS: &str =
    "n=0\non_request() { n=$((n + 1)); verdict allow \",\\\"annotation\\\":{\\\"n\\\":$n}\"; }";
/// Says of what it was asked, which is the same in every build.
const PURE: &str =
    "on_request() { verdict warn \",\\\"annotation\\\":{\\\"bytes\\\":${#line}}\"; }";

#[track_caller]
fn has_line(text: &str, line: &str) {
    assert!(text.lines().any(|one| one == line), "`{line}` in {text}");
}

fn twice(bed: &Bed, code: i32) -> (Value, String) {
    let args = [
        "run",
        "--check-reproducibility",
        "--receipt",
        "r.yaml",
        "--format",
        "json",
    ];
    let ran = bed.attest(&args).expect(code);
    let record: Value = serde_json::from_str(&ran.out).unwrap();
    (record["reproducibility"].clone(), ran.err)
}

#[test]
fn g5_deterministic_plugins_are_compared_and_the_one_that_differs_is_named() {
    let pure = Plugin::new("pure", &["step.pre", "step.post"]).body(PURE);
    let counts = Plugin::new("counts", &["step.post"]).body(COUNTS);
    let bed = bed(&[pure.clone(), counts]);
    let (report, err) = twice(&bed, 1);
    has_line(
        &err,
        "reproducibility: plugin counts annotation differs at /n",
    );
    assert!(!err.contains("reproducibility: plugin pure"), "{err}");
    assert_eq!(report["verified"], false);
    let plugins = report["plugins"].as_array().unwrap();
    let of = |name: &str| {
        plugins
            .iter()
            .find(|plugin| plugin["name"] == name)
            .unwrap()
    };
    assert_eq!(of("pure")["compared"], true);
    assert_eq!(of("pure")["differs"], json!([]));
    assert_eq!(of("counts")["compared"], true);
    assert_eq!(of("counts")["differs"].as_array().unwrap().len(), 1);
    assert_eq!(receipt(&bed).unwrap()["reproducibility"]["verified"], false);

    declare(&bed, &[pure]);
    let (report, err) = twice(&bed, 0);
    assert_eq!(report["verified"], true, "{err}");
    assert_eq!(record(&bed, "pure")["decision"], "warn");
}

#[test]
fn g5_plugins_that_are_not_deterministic_are_recorded_left_out_and_named() {
    let mut counts = Plugin::new("counts", &["step.post"]).body(COUNTS);
    counts.deterministic = false;
    let bed = bed(&[counts]);
    let (report, err) = twice(&bed, 0);
    let line = "reproducibility: plugin counts excluded: declared non-deterministic";
    has_line(&err, line);
    assert_eq!(report["verified"], true);
    assert_eq!(report["plugins"][0]["name"], "counts");
    assert_eq!(report["plugins"][0]["compared"], false);
    assert!(report["plugins"][0]["reason"].is_string());
    let record = record(&bed, "counts");
    assert_eq!(record["deterministic"], false);
    // One process for both builds.
    assert_eq!(record["annotation"], json!({"n": 2}));
}

#[test]
fn g5_a_decision_that_differs_between_two_builds_is_no_reproduction() {
    let moody = "n=0\non_request() { n=$((n + 1)); if [ $n = 1 ]; then verdict allow; else verdict warn; fi; }";
    let bed = bed(&[Plugin::new("moody", &["step.pre"]).body(moody)]);
    let (report, err) = twice(&bed, 1);
    has_line(
        &err,
        "reproducibility: plugin moody differs: decision allow vs warn",
    );
    assert_eq!(report["verified"], false);
    assert_eq!(record(&bed, "moody")["decision"], "warn");
}
