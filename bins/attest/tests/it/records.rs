//! `--format json`: what each command prints has the keys that its page tells.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::authority::{TIME, Tsa};
use crate::bed::{Bed, Ran};
use crate::plugin::{self, Plugin};

const IMAGE: &str =
    "busybox@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The keys that the page has for a record, and those of them that may be absent.
fn told(record: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/attest-json.md"
    );
    let page = std::fs::read_to_string(path).unwrap();
    let start = format!("| `{record}` |");
    let mut rows = page.lines().filter_map(|line| line.strip_prefix(&start));
    let row = rows
        .next()
        .unwrap_or_else(|| panic!("no row of `{record}`"));
    assert_eq!(rows.next(), None, "two rows of `{record}`");
    let keys = row.split('|').next().unwrap();
    let (mut all, mut optional) = (BTreeSet::new(), BTreeSet::new());
    for key in keys.split('`').skip(1).step_by(2) {
        let name = key.trim_end_matches('?');
        all.insert(name.to_owned());
        if name != key {
            optional.insert(name.to_owned());
        }
    }
    (all, optional)
}

#[track_caller]
fn has(record: &str, found: &Value) {
    let (all, optional) = told(record);
    let found: BTreeSet<String> = found.as_object().unwrap().keys().cloned().collect();
    let unknown: Vec<_> = found.difference(&all).collect();
    assert!(unknown.is_empty(), "`{record}` also has {unknown:?}");
    let absent: Vec<_> = all.difference(&found).collect();
    assert!(
        absent.iter().all(|key| optional.contains(*key)),
        "`{record}` lacks some of {absent:?}"
    );
}

fn parsed(ran: &Ran) -> Value {
    let line = ran
        .out
        .strip_suffix('\n')
        .unwrap_or_else(|| panic!("{ran:?}"));
    assert!(!line.contains('\n'), "more than one record: {line}");
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{ran:?}"))
}

/// Runs a command with `--format json`, and compares its one record with the page.
#[track_caller]
fn record(bed: &Bed, name: &str, args: &[&str], code: i32) -> Value {
    let ran = bed.attest(&[args, &["--format", "json"]].concat());
    let found = parsed(&ran.expect(code));
    has(name, &found);
    found
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn receipts_and_what_is_made_of_them() {
    let bed = Bed::new();
    record(&bed, "init", &["init"], 0);
    bed.write("in", "x");
    bed.write(
        "attest.yaml",
        "version: '1'\nsteps:\n  make: {run: cat in > out, inputs: [in], outputs: [out]}\n",
    );
    let run = record(&bed, "run", &["run"], 0);
    let receipt = text(&run["receipt"]);
    let shown = record(&bed, "show", &["show", &receipt], 0);
    assert_eq!(shown["document"]["steps"][0]["name"], "make");
    let twice = ["run", "--check-reproducibility"];
    let twice = record(&bed, "run", &twice, 0);
    has("run: reproducibility", &twice["reproducibility"]);
    let step = &twice["reproducibility"]["steps"][0];
    has("run: reproducibility.steps[]", step);

    let other = text(&twice["receipt"]);
    let diff = record(&bed, "diff", &["diff", &receipt, &other], 1);
    has("diff: differences[]", &diff["differences"][0]);

    record(&bed, "hash", &["hash", "--output", "out"], 0);
    let hash = [
        "hash",
        "--run",
        "cat in > out",
        "--input",
        "in",
        "--manifest",
    ];
    let listed = bed.attest(&hash).expect(0).out;
    let hash = record(&bed, "hash", &hash, 0);
    let line = format!("run:{}\n", text(&hash["command_hash"]));
    assert!(listed.contains(&line), "{listed}");
    has("hash: manifest[]", &hash["manifest"][0]);

    let report = [
        "run", "--wrap", "--name", "s", "--report", "report", "--format", "json",
    ];
    bed.attest(&[&report[..], &["--", "true"]].concat())
        .expect(0);
    let report = serde_json::from_str(&bed.read("report")).unwrap();
    has("run --wrap --report", &report);

    bed.attest(&["keys", "generate", "--name", "k"]).expect(0);
    let sign = ["sign", &receipt, "--output", "s.yaml"];
    let signed = record(&bed, "sign", &sign, 0);
    assert_eq!(signed["receipt"], "s.yaml");
    let tsa = Tsa::at(TIME);
    tsa.pin(&bed);
    let stamp = ["timestamp", "s.yaml", "--tsa", &tsa.url, "--output"];
    let stamped = record(&bed, "timestamp", &[&stamp[..], &["t.yaml"]].concat(), 0);
    assert_eq!(stamped["receipt"], "t.yaml");
    let shown = bed.attest(&[&stamp[..], &["-"]].concat()).expect(0).out;
    assert!(shown.contains("timestamp_token: M"), "{shown}");
    assert!(!bed.path("-").exists());
    let export = [
        "export",
        "--receipt",
        "s.yaml",
        "--format",
        "in-toto",
        "-o",
        "e",
    ];
    let exported = [&["--format", "json"], &export[..]].concat();
    let exported = parsed(&bed.attest(&exported).expect(0));
    has("export", &exported);
    assert_eq!(exported["statement"], "e");
    let import = ["import", "e", "--format", "in-toto", "--report", "json"];
    let import = parsed(&bed.attest(&import).expect(0));
    has("import --report json", &import);
    has("import: checks[]", &import["checks"][0]);
    let verified = record(&bed, "verify", &["verify", "s.yaml"], 0);
    has("verify: checks[]", &verified["checks"][0]);
}

#[test]
fn keys_and_the_trust_store() {
    let bed = Bed::new();
    let made = record(
        &bed,
        "keys generate",
        &["keys", "generate", "--name", "k"],
        0,
    );
    let id = text(&made["key_id"]);
    let listed = record(&bed, "keys list", &["keys", "list"], 0);
    assert_eq!(listed["id"].as_str(), Some(&*id));
    let pem = bed.attest(&["keys", "export", &id]).expect(0).out;
    let exported = record(&bed, "keys export", &["keys", "export", &id], 0);
    assert_eq!(exported["public_key_pem"].as_str(), Some(&*pem));
    record(
        &bed,
        "keys export",
        &["keys", "export", &id, "-o", "k.pem"],
        0,
    );
    assert_eq!(bed.read("k.pem"), pem);
    let import = ["keys", "import", "k.pem", "--name", "again"];
    let imported = record(&bed, "keys import", &import, 0);
    assert_eq!(imported["key_id"], made["key_id"]);
    for already in [false, true] {
        let revoked = record(&bed, "keys revoke", &["keys", "revoke", &id], 0);
        assert_eq!(revoked["key_id"], made["key_id"]);
        assert_eq!(revoked["already"], already);
    }
    record(&bed, "keys list", &["keys", "list"], 0);
    let ca = stamp_authority::Ca::honest("Acme Stamps");
    bed.write("ca.pem", &ca.identity.pem);
    let pin = ["keys", "trust-tsa", "ca.pem", "--name", "acme"];
    let pinned = record(&bed, "keys trust-tsa", &pin, 0);
    assert_eq!(pinned["name"], "acme");
}

#[test]
fn the_ledger_and_capsules() {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write("attest.yaml", "version: '1'\nsteps:\n  a: {run: 'true'}\n");
    let receipt = bed.attest(&["run", "-q"]).expect(0).out;
    record(&bed, "causal stats", &["causal", "stats", "--detailed"], 0);
    record(&bed, "causal stats", &["causal", "stats"], 0);
    let event = record(&bed, "causal events", &["causal", "events"], 0);
    let id = text(&event["event_id"]);
    record(&bed, "causal path", &["causal", "path", &id, &id], 0);
    record(&bed, "causal chain", &["causal", "chain", &id], 0);
    record(&bed, "causal chain", &["causal", "chain", &id, "--save"], 0);
    let export = [
        "causal",
        "export",
        "--receipt",
        receipt.trim_end(),
        "-o",
        "a",
    ];
    let exported = record(&bed, "causal export", &export, 0);
    assert_eq!(exported["partial"], false);

    let init = ["capsule", "init", "--image", IMAGE, "--name", "cc"];
    let made = record(&bed, "capsule init", &init, 0);
    assert!(bed.path(made["file"].as_str().unwrap()).exists());
    let hash = bed.attest(&["capsule", "hash", "cc"]).expect(0).out;
    let hashed = record(&bed, "capsule hash", &["capsule", "hash", "cc"], 0);
    assert_eq!(hashed["capsule_hash"].as_str(), Some(hash.trim_end()));
}

#[test]
fn plugins_that_are_declared() {
    let bed = plugin::bed(&[Plugin::new("gate", &["step.pre"])]);
    let listed = record(&bed, "plugins list", &["plugins", "list"], 0);
    assert_eq!(listed["status"], "ok");
    record(&bed, "plugins verify", &["plugins", "verify"], 0);
    let pinned = record(&bed, "plugins pin", &["plugins", "pin", "gate"], 0);
    assert_eq!(pinned["changed"], false);
    std::fs::remove_file(bed.path("plugins/gate")).unwrap();
    record(&bed, "plugins list", &["plugins", "list"], 0);
    let ran = bed
        .attest(&["plugins", "verify", "--format", "json"])
        .expect(2);
    has("plugins verify", &parsed(&ran));
    let twice = plugin::bed(&[Plugin::new("gate", &["step.pre"])]);
    let args = ["run", "--check-reproducibility"];
    let report = record(&twice, "run", &args, 0)["reproducibility"].clone();
    has("run: reproducibility.plugins[]", &report["plugins"][0]);
    let deny = Plugin::new("gate", &["step.post"]).body("on_request() { verdict deny; }");
    plugin::declare(&twice, &[deny]);
    for args in [&["run"][..], &["run", "--check-reproducibility"]] {
        let denied = record(&twice, "run", args, 1);
        has("run: stopped", &denied["stopped"]);
        assert_eq!(denied["stopped"]["how"], "denied");
    }
}

#[test]
fn a_command_that_has_standard_output_for_itself_prints_no_record() {
    let bed = Bed::new();
    for args in [
        &[
            "run", "--wrap", "--name", "s", "--format", "json", "--", "touch", "ran",
        ][..],
        &[
            "capsule", "run", "cc", "--format", "json", "--", "touch", "ran",
        ],
    ] {
        let ran = bed.attest(args).expect(2).says("--format json requires");
        assert_eq!(ran.out, "");
        assert!(!bed.path("ran").exists());
    }
}
