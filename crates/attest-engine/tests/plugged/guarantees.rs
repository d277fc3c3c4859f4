//! What no plugin can do: live beside a key, change a fact.

use attest_receipt::receipt::{Decision, Receipt};

use crate::plugin::{Plugin, check, record, run, wrap};
use crate::support::{FakeKey, World};

const ALLOW: Plugin = Plugin::new("policy", "");

#[test]
fn g2_no_plugin_lives_while_a_key_is_in_memory() {
    for way in ["run", "wrap", "check"] {
        let world = World::new();
        // Leaves somebody behind who would look for the key later.
        let lurks = Plugin::new(
            "policy",
            r#"test -e lurks || { sleep 600 & echo $! > lurks; }; verdict allow"#,
        );
        world.declare(&[lurks]);
        let paths = [world.path("policy.pid"), world.path("lurks")];
        let key = FakeKey::new(move || {
            let lives = paths.iter().filter(|path| {
                let pid = fs_err::read_to_string(path).unwrap();
                std::path::Path::new("/proc").join(pid.trim()).exists()
            });
            format!("{} live", lives.count())
        });
        let mut options = world.options("  a: {run: 'true'}\n");
        options.signing = Some(&key);
        let receipt = match way {
            "run" => run(&world, &options).unwrap().receipt,
            "check" => check(&world, &options).unwrap().receipt,
            _ => {
                let mut wrapped = world.wrapped(&["true"]);
                wrapped.signing = Some(&key);
                wrap(&world, &wrapped).receipt.unwrap()
            }
        };
        assert!(receipt.signature.is_some());
        assert_eq!(*key.loaded.borrow(), ["0 live"], "{way}");
        assert!(!world.lives("policy"));
    }
}

#[test]
fn g2_no_message_says_where_keys_are_or_who_signs() {
    let world = World::new();
    world.write(".attest/keys/mine.key", "canary-of-a-key");
    world.write(".attest/trust.toml", "canary-of-trust");
    world.declare(&[Plugin {
        more: "wants_output = true\n",
        ..ALLOW
    }]);
    let key = FakeKey::new(String::new);
    let mut options = world.options("  a: {run: echo said}\n");
    options.signing = Some(&key);
    run(&world, &options).unwrap();
    let sent = world.read("policy.log");
    assert!(sent.contains("said"), "{sent}");
    for canary in ["canary", "keys", "mine", "trust", &"ab".repeat(32)] {
        assert!(!sent.contains(canary), "{canary}");
    }
    let shown = &world.payloads("policy", "receipt.finalize")[0]["receipt"];
    assert!(shown["signature"].is_null() && shown["signer_public_key"].is_null());
}

/// Everything of a receipt but what plugins may add.
fn facts(receipt: &Receipt) -> Receipt {
    let mut facts = receipt.clone();
    facts.plugins = None;
    facts.signature = None;
    facts.provenance.as_mut().unwrap().invocation_id = None;
    facts
}

const BUILD: &str = "  build: {run: cat in > out; echo built, inputs: [in], outputs: [out]}\n  late: {run: exit 3}\n";

/// The receipt of a build with a plugin that answers so; also of one whose results are cached.
fn receipts(answer: &'static str) -> Vec<Receipt> {
    let world = World::new();
    world.write("in", "one");
    world.declare(&[Plugin::new("policy", answer)]);
    let build = || {
        let mut options = world.options(BUILD);
        let key = FakeKey::new(String::new);
        options.signing = Some(&key);
        let outcome = run(&world, &options).unwrap();
        assert_eq!(outcome.exit_code(), 1);
        let written = fs_err::read(outcome.path.unwrap()).unwrap();
        let read = attest_receipt::receipt::read(&written).unwrap();
        assert_eq!(read, outcome.receipt);
        assert_eq!(record(&read, "policy").decision, Decision::Allow);
        read
    };
    let made = [build(), build()];
    assert!(made[1].steps[0].cache_hit);
    made.into()
}

#[test]
fn g3_every_field_that_an_answer_does_not_have_is_ignored() {
    let honest = receipts("verdict allow");
    let forging = r#"
zeros=0000000000000000000000000000000000000000000000000000000000000000
facts='"name":"forged","input_hash":"'$zeros'","output_hash":"'$zeros'","exit_code":0,"duration_secs":99,"cache_hit":true,"stdout":"forged","timestamp":"2000-01-01T00:00:00Z"'
verdict allow ",\"step\":{$facts},\"receipt\":{\"steps\":[{$facts}],\"signature\":\"$zeros\",\"schema_version\":2,\"plugins\":[]},\"steps\":[{$facts}],\"payload\":{\"step\":{$facts}},$facts,\"digest\":\"blake3:$zeros\",\"version\":\"9\",\"deterministic\":false,\"reason\":\"none\",\"findings\":[{\"rule\":\"r\",\"severity\":\"info\",\"message\":\"m\",$facts}]""#;
    for (forged, honest) in receipts(forging).iter().zip(&honest) {
        assert_eq!(facts(forged), facts(honest));
        let record = record(forged, "policy");
        assert_eq!(
            (record.version.as_str(), record.deterministic),
            ("1.2.3", true)
        );
        assert_eq!((&record.reason, &record.annotation), (&None, &None));
    }
}

#[test]
fn g3_an_annotation_stays_in_its_place() {
    let honest = receipts("verdict allow");
    let answer = r#"verdict allow ',"annotation":{"steps":[],"signature":null,"exit_code":0,"plugins":{"policy":"deny"}}'"#;
    for (noted, honest) in receipts(answer).iter().zip(&honest) {
        assert_eq!(facts(noted), facts(honest));
        let annotation = record(noted, "policy").annotation.as_ref().unwrap();
        let kept = String::from_utf8(strict_json::to_line(annotation)).unwrap();
        let sorted = r#"{"exit_code":0,"plugins":{"policy":"deny"},"signature":null,"steps":[]}"#;
        assert_eq!(kept, sorted);
    }
}

/// Once steps are asked about, whatever the run left or will read is spoiled.
const SPOILS: &str = r#"
for folder in receipts causal_ledger/events cache; do
  test $kind = pipeline.validate && continue
  mkdir -p .attest/$folder
  for file in .attest/$folder/*; do echo forged > "$file"; done
  echo forged > .attest/$folder/forged.yaml
done
test $kind = pipeline.validate || { test -e out && echo forged > out; }
verdict allow"#;

#[test]
fn g3_a_plugin_that_writes_into_the_state_changes_no_fact() {
    let honest = receipts("verdict allow");
    let world = World::new();
    world.write("in", "one");
    for (hit, honest) in [false, true].into_iter().zip(&honest) {
        let mut options = world.options(BUILD);
        if hit {
            // There is a result to be taken again, which is spoiled once it was found.
            fs_err::remove_file(world.path(".attest/plugins.toml")).unwrap();
            run(&world, &options).unwrap();
            // Events have names of their own.
            options.now = || "2026-11-30T13:00:00Z".parse().unwrap();
        }
        world.declare(&[Plugin::new("policy", SPOILS)]);
        let outcome = run(&world, &options).unwrap();
        assert_eq!(world.read("out"), "forged\n");
        let written = fs_err::read(outcome.path.unwrap()).unwrap();
        let read = attest_receipt::receipt::read(&written).unwrap();
        assert_eq!(read, outcome.receipt);
        assert_eq!(read.steps[0].cache_hit, hit);
        assert_eq!(read.steps, honest.steps);
        let artifacts = |receipt: &Receipt| receipt.provenance.clone().unwrap().artifacts;
        assert_eq!(artifacts(&read), artifacts(honest));
        for event in &read.causal_events {
            let event = world.read(&format!(".attest/causal_ledger/events/{event}.json"));
            assert_ne!(event, "forged\n");
        }
    }
}
