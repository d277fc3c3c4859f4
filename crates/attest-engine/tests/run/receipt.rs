//! What a receipt says, and where it goes.

use attest_engine::hooks::NoHooks;
use attest_engine::output::Secrets;
use attest_engine::run::Place;
use attest_receipt::encode::{blake3_hex, hex};
use attest_receipt::ledger::{Event, chain_hash, environment_hash};
use attest_receipt::receipt;

use crate::support::{FakeKey, Pattern, World, run, time};
use attest_engine::run::SigningKey;

const STEPS: &str = "  b: {run: echo made > out/x, outputs: [out], inputs: [src/], needs: [a]}\n  a: {run: 'mkdir -p out'}\n";

fn world() -> World {
    let world = World::new();
    world.write("src/file", "source");
    world
}

#[test]
fn a_receipt_says_what_was_declared_read_and_made() {
    let world = world();
    let options = world.options(STEPS);
    let outcome = run(&options, &mut NoHooks).0.unwrap();
    let receipt = outcome.receipt;
    assert_eq!(receipt.schema_version, Some(2));
    assert_eq!(receipt.pipeline_hash, options.pipeline.hash().unwrap());
    assert_eq!(receipt.attest_version, "1.2.3");
    assert_eq!(receipt.timestamp, time("2026-11-30T12:00:00Z"));
    let provenance = receipt.provenance.as_ref().unwrap();
    assert_eq!(provenance.started_at, Some(time("2026-11-30T12:00:00Z")));
    assert_eq!(provenance.pipeline_name.as_deref(), Some("test"));
    let id = provenance.invocation_id.as_ref().unwrap();
    assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 4);
    let declared: Vec<_> = provenance.steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(declared, ["a", "b"]);
    assert_eq!(provenance.steps[1].inputs, ["src/"]);
    assert_eq!(
        provenance.steps[1].command_hash,
        blake3_hex(b"echo made > out/x")
    );
    let artifact = &provenance.artifacts[0];
    assert_eq!(
        (artifact.step.as_str(), artifact.path.as_str()),
        ("b", "out/x")
    );
    assert_eq!(artifact.digest, blake3_hex(b"made\n"));
    assert!(receipt.problems().is_empty());
    let stored = fs_err::read(outcome.path.unwrap()).unwrap();
    assert_eq!(receipt::read(&stored).unwrap(), receipt);
}

#[test]
fn the_file_is_named_by_time_pipeline_and_content_and_never_replaced() {
    let world = world();
    let mut options =
        world.options_of("version: '1'\nname: 'my pipe/é'\nsteps:\n  a: {run: 'true'}\n");
    let path = run(&options, &mut NoHooks).0.unwrap().path.unwrap();
    let content = blake3_hex(&fs_err::read(&path).unwrap());
    let name = format!("receipt_20261130T120000Z_my-pipe--_{}.yaml", &content[..12]);
    assert_eq!(path.file_name().unwrap().to_str(), Some(name.as_str()));
    options.pipeline.name = None;
    let path = run(&options, &mut NoHooks).0.unwrap().path.unwrap();
    let hash = options.pipeline.hash().unwrap();
    let start = format!("receipt_20261130T120000Z_{}_", &hash[..8]);
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with(&start), "{name}");
    options.pipeline.name = Some("n".repeat(300));
    let path = run(&options, &mut NoHooks).0.unwrap().path.unwrap();
    assert!(path.file_name().unwrap().len() < 160);
    assert_eq!(world.receipts().len(), 3);
}

#[test]
fn receipts_of_the_same_name_get_numbers() {
    use attest_engine::run::{Closing, Draft, conclude};
    let world = world();
    let options = world.options(STEPS);
    let outcome = run(&options, &mut NoHooks).0.unwrap();
    let stem = world.receipts()[0]
        .strip_suffix(".yaml")
        .unwrap()
        .to_owned();
    for number in 1..3 {
        let draft = Draft {
            receipt: outcome.receipt.clone(),
            events: Vec::new(),
        };
        let closing = Closing {
            state: &options.state,
            place: &Place::Receipts,
            target: None,
            signing: None,
            label: Some("test"),
            now: time("2026-11-30T12:00:00Z"),
            secrets: &Secrets::default(),
            record_events: false,
        };
        let path = conclude(draft, closing).unwrap().1.unwrap();
        let name = format!("{stem}-{number}.yaml");
        assert_eq!(path.file_name().unwrap().to_str(), Some(name.as_str()));
    }
}

#[test]
fn a_named_file_is_replaced_as_a_whole() {
    let world = world();
    let mut options = world.options(STEPS);
    world.write("kept/r.yaml", "old");
    options.place = Place::File(world.path("kept/r.yaml"));
    let outcome = run(&options, &mut NoHooks).0.unwrap();
    let stored = fs_err::read(world.path("kept/r.yaml")).unwrap();
    assert_eq!(receipt::read(&stored).unwrap(), outcome.receipt);
    assert_eq!(world.files("kept"), ["r.yaml"]);
    assert_eq!(world.receipts(), Vec::<String>::new());
}

#[test]
fn events_form_the_chain_that_the_receipt_names() {
    let world = world();
    let receipt = run(&world.options(STEPS), &mut NoHooks).0.unwrap().receipt;
    let events: Vec<Event> = receipt
        .causal_events
        .iter()
        .map(|id| {
            let text = world.read(&format!(".attest/causal_ledger/events/{id}.json"));
            Event::read(text.as_bytes()).unwrap()
        })
        .collect();
    assert_eq!(events.len(), 2);
    for (event, step) in events.iter().zip(&receipt.steps) {
        assert_eq!(event.step_name, step.name);
        assert_eq!(event.output_hash, step.output_hash);
        assert_eq!(event.event_id, event.computed_id());
        assert_eq!(event.signature, None);
        assert_eq!(
            event.environment_hash,
            environment_hash(std::env::consts::OS, std::env::consts::ARCH, "false")
        );
        assert_eq!(event.metadata["cache_hit"], "false");
    }
    assert_eq!(events[0].causal_parents, Vec::<String>::new());
    assert_eq!(events[1].causal_parents, [events[0].event_id.clone()]);
    assert_eq!(receipt.causal_chain_hash, Some(chain_hash(&events)));
    let description = world.read(".attest/causal_ledger/metadata.json");
    assert!(
        description.contains("\"version\": \"0.1.0\""),
        "{description}"
    );
}

#[test]
fn a_key_signs_the_receipt_and_each_event() {
    let world = world();
    let key = FakeKey::new(String::new);
    let mut options = world.options(STEPS);
    options.signing = Some(&key);
    let receipt = run(&options, &mut NoHooks).0.unwrap().receipt;
    let signature = hex(&Pattern.sign(&receipt.signing_bytes()));
    assert_eq!(receipt.signature, Some(signature));
    for id in &receipt.causal_events {
        let text = world.read(&format!(".attest/causal_ledger/events/{id}.json"));
        let event = Event::read(text.as_bytes()).unwrap();
        let signature = hex(&Pattern.sign(&event.signing_bytes()));
        assert_eq!(event.signature, Some(signature));
        assert_eq!(event.signer_public_key, receipt.signer_public_key);
    }
    assert_eq!(key.loaded.borrow().len(), 1);
}

#[test]
fn a_receipt_that_no_reader_would_take_is_not_written() {
    use attest_engine::run::{Closing, Draft, RunError, conclude};
    let world = world();
    let options = world.options(STEPS);
    let mut receipt = run(&options, &mut NoHooks).0.unwrap().receipt;
    let before = world.receipts();
    let closing = Closing {
        state: &options.state,
        place: &Place::Receipts,
        target: None,
        signing: None,
        label: None,
        now: time("2026-11-30T12:00:00Z"),
        secrets: &Secrets::default(),
        record_events: true,
    };
    let mut refused = |change: &dyn Fn(&mut receipt::Receipt)| {
        change(&mut receipt);
        let draft = Draft {
            receipt: receipt.clone(),
            events: Vec::new(),
        };
        conclude(draft, closing).unwrap_err()
    };
    let error = refused(&|receipt| receipt.steps[0].output_hash = "f".repeat(63));
    assert!(matches!(error, RunError::Internal { .. }), "{error}");
    // Six bytes each, as YAML escapes them.
    let long = "\u{fffe}".repeat(receipt::MAX_BYTES / 6);
    let error = refused(&|receipt| {
        receipt.steps[0].output_hash = "f".repeat(64);
        receipt.steps[0].stdout.clone_from(&long);
    });
    let RunError::ReceiptTooLong { bytes, limit } = error else {
        panic!("{error}");
    };
    assert!(bytes > limit);
    assert_eq!(world.receipts(), before);
}
