//! An interrupt while somebody is asked.

use attest_engine::run::RunError;
use attest_engine::wrap::Failure;
use test_case::test_case;

use crate::plugin::{Plugin, asked_while, wrapped_while};
use crate::support::{World, until};

const HANGS: Plugin = Plugin::new(
    "policy",
    r#"test "$kind" != "$(cat hang)" || { sleep 600 & echo $! > sleeper; wait; }; verdict allow"#,
);

fn gone(world: &World) -> bool {
    let pid = world.read("sleeper");
    !world.lives("policy") && !std::path::Path::new("/proc").join(pid.trim()).exists()
}

async fn sleeps(world: &World) {
    let path = world.path("sleeper");
    let text = || fs_err::read_to_string(&path).unwrap_or_default();
    until("a sleeper", || text().ends_with('\n')).await;
}

#[test_case("pipeline.validate")]
#[test_case("step.pre")]
#[test_case("step.post")]
#[test_case("receipt.finalize")]
fn an_interrupt_ends_who_is_asked_and_leaves_no_receipt(hang: &str) {
    let world = World::new();
    world.write("hang", hang);
    world.declare(&[HANGS]);
    let options = world.options("  a: {run: 'true'}\n");
    let outcome = asked_while(&world, &options, sleeps(&world));
    assert!(matches!(outcome, Err(RunError::Cancelled)));
    assert!(gone(&world));
    assert_eq!(world.receipts(), Vec::<String>::new());

    fs_err::remove_file(world.path("sleeper")).unwrap();
    let options = world.wrapped(&["true"]);
    let outcome = wrapped_while(&world, &options, sleeps(&world));
    assert!(matches!(outcome.failure, Some(Failure::Cancelled)));
    assert!(gone(&world));
    assert_eq!(world.receipts(), Vec::<String>::new());
}
