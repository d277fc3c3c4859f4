//! A slot says whether it takes leases, and gives back those that cross it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::disk_guard::{EVERY, Look, PATIENCE};

const ACCEPTS: &str = "{\"type\":\"ready\",\"accepting\":true}\n";

fn declined(reason: &str) -> String {
    message("decline", &format!(",\"reason\":\"{reason}\""))
}

/// A disk that the test fills.
fn disk() -> (Arc<AtomicBool>, DiskGuard) {
    let full = Arc::new(AtomicBool::new(false));
    let look = Arc::clone(&full);
    let probe = move || -> Look {
        let short = look.load(Ordering::Relaxed).then(|| "full".to_owned());
        Box::pin(std::future::ready(Ok(short)))
    };
    (full, DiskGuard::with_probe(Some(Arc::new(probe))))
}

#[tokio::test(start_paused = true)]
async fn an_idle_slot_that_drains_says_so_and_declines_what_crosses() {
    let life = Life::new([]);
    let mut gate = life.greeted().await;
    sleep(Duration::from_secs(1)).await;
    life.stop.drain();
    assert_eq!(gate.text().await, refuses("draining"));
    let Sent::Ping(barrier) = gate.next().await else {
        panic!("no barrier")
    };
    gate.say(controlled());
    assert_eq!(gate.text().await, declined("draining"));
    gate.say(ping(2));
    assert_eq!(gate.text().await, pong(2));
    // One that is out of bounds, and a cancellation that crossed the decline.
    gate.say(controlled().replace("\"max_attempts\":3", "\"max_attempts\":101"));
    assert_eq!(gate.text().await, declined("draining"));
    gate.say(cancel());
    gate.pong(barrier + 1);
    sleep(Duration::from_millis(10)).await;
    assert!(gate.sent.try_recv().is_err());
    let since = Instant::now();
    gate.pong(barrier);
    assert_eq!(gate.next().await, Sent::Last(None));
    assert_eq!(since.elapsed(), Duration::ZERO);
    gate.close();
    assert!(life.log().is_empty());
    life.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_answers_no_barrier_is_left_after_a_while() {
    let life = Life::new([]);
    let mut gate = life.greeted().await;
    life.stop.drain();
    let since = Instant::now();
    assert_eq!(gate.text().await, refuses("draining"));
    assert!(matches!(gate.next().await, Sent::Ping(_)));
    assert_eq!(gate.next().await, Sent::Last(None));
    assert_eq!(since.elapsed(), BARRIER);
    // Killed, it waits for nothing.
    let life = Life::new([]);
    let mut gate = life.greeted().await;
    life.stop.drain();
    assert_eq!(gate.text().await, refuses("draining"));
    assert!(matches!(gate.next().await, Sent::Ping(_)));
    let since = Instant::now();
    life.stop.kill();
    assert_eq!(gate.next().await, Sent::Last(None));
    assert_eq!(since.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_busy_slot_that_drains_says_so_behind_its_result_and_declines_what_follows() {
    let life = Life::new([Job::new(5, text("x"))]);
    let mut gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    life.stop.drain();
    assert_eq!(gate.text().await, result("x"));
    // Until the result is acknowledged the conversation goes on as ever.
    gate.say(ping(2));
    assert_eq!(gate.text().await, pong(2));
    assert_eq!(gate.next().await, heartbeat());
    assert!(matches!(gate.next().await, Sent::Ping(_)));
    gate.say(ack());
    gate.say(controlled());
    assert_eq!(gate.text().await, refuses("draining"));
    let Sent::Ping(barrier) = gate.next().await else {
        panic!("no barrier")
    };
    assert_eq!(gate.text().await, declined("draining"));
    gate.pong(barrier);
    assert_eq!(gate.next().await, Sent::Last(None));
    gate.close();
    assert_eq!(gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(life.log(), ["started", "done"], "the second is not begun");
    let state = life.ended().await;
    assert!(!state.path().join("state/results/slot-3.json").exists());
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_drains_keeps_a_result_that_was_not_acknowledged() {
    let life = Life::new([Job::new(5, text("x"))]);
    let mut gate = life.greeted().await;
    gate.say(controlled());
    sleep(Duration::from_secs(1)).await;
    life.stop.drain();
    assert_eq!(gate.text().await, result("x"));
    gate.close();
    assert_eq!(gate.next().await, Sent::Closed(Closing::Drop));
    // It is tried once more.
    let mut again = life.connection();
    again.say(ping(1));
    assert_eq!(again.text().await, attach());
    again.close();
    let state = life.ended().await;
    assert!(state.path().join("state/results/slot-3.json").exists());
}

#[tokio::test(start_paused = true)]
async fn a_signal_between_result_and_acknowledgement_declines_the_next_lease() {
    let life = Life::new([Job::new(5, text("x"))]);
    let mut gate = life.greeted().await;
    gate.say(controlled());
    assert_eq!(gate.text().await, result("x"));
    life.stop.drain();
    gate.say(ack());
    gate.say(controlled());
    assert_eq!(gate.text().await, refuses("draining"));
    let Sent::Ping(barrier) = gate.next().await else {
        panic!("no barrier")
    };
    assert_eq!(gate.text().await, declined("draining"));
    gate.pong(barrier);
    assert_eq!(gate.next().await, Sent::Last(None));
    assert_eq!(life.log(), ["started", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_said_before_the_greeting_is_answered_and_taken_back() {
    let (full, guard) = disk();
    full.store(true, Ordering::Relaxed);
    let life = Life::with(
        [Job::new(1, text("x"))],
        guard,
        tempfile::tempdir().unwrap(),
    );
    let mut gate = life.connection();
    gate.say(ping(1));
    assert_eq!(gate.text().await, refuses("disk_low"));
    assert_eq!(gate.text().await, pong(1));
    gate.say(controlled());
    assert_eq!(gate.text().await, declined("disk_low"));
    full.store(false, Ordering::Relaxed);
    assert_eq!(gate.text().await, ACCEPTS);
    gate.say(controlled());
    assert_eq!(gate.text().await, result("x"));
    full.store(true, Ordering::Relaxed);
    gate.say(ack());
    assert_eq!(gate.text().await, refuses("disk_low"));
    life.stop.drain();
    assert_eq!(gate.text().await, refuses("draining"));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fills_up_while_idle_is_noticed_at_the_next_look() {
    let (full, guard) = disk();
    let life = Life::with([], guard, tempfile::tempdir().unwrap());
    let mut gate = life.greeted().await;
    full.store(true, Ordering::Relaxed);
    let since = Instant::now();
    assert_eq!(gate.text().await, refuses("disk_low"));
    assert!(since.elapsed() <= EVERY);
    gate.say(controlled());
    assert_eq!(gate.text().await, declined("disk_low"));
    assert!(life.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_file_system_that_hangs_silences_no_slot() {
    let hangs = || -> Look { Box::pin(pending()) };
    let guard = DiskGuard::with_probe(Some(Arc::new(hangs)));
    let life = Life::with(
        [Job::new(1, text("x"))],
        guard,
        tempfile::tempdir().unwrap(),
    );
    let since = Instant::now();
    let mut gate = life.greeted().await;
    assert!(since.elapsed() <= PATIENCE);
    let since = Instant::now();
    gate.say(ping(2));
    assert_eq!(gate.text().await, pong(2));
    gate.say(ping(3));
    assert_eq!(gate.text().await, pong(3));
    assert_eq!(since.elapsed(), Duration::ZERO);
    gate.say(controlled());
    assert_eq!(gate.text().await, result("x"));
}

#[tokio::test(start_paused = true)]
async fn a_gate_without_job_control_is_served_on_a_full_disk_too() {
    let (full, guard) = disk();
    full.store(true, Ordering::Relaxed);
    let life = Life::with(
        [Job::new(1, text("x"))],
        guard,
        tempfile::tempdir().unwrap(),
    );
    let mut gate = life.connection();
    gate.say(lease());
    assert_eq!(gate.text().await, result("x"));
    gate.say(ack());
    sleep(Duration::from_secs(60)).await;
    assert!(gate.sent.try_recv().is_err(), "nothing is said to it");
}

#[tokio::test(start_paused = true)]
async fn r19_an_idle_slot_leaves_a_gate_that_falls_silent() {
    let life = Life::new([]);
    let mut gate = life.greeted().await;
    // As long as it pings, it is there.
    for number in 2..20 {
        sleep(SILENCE - Duration::from_secs(1)).await;
        gate.say(ping(number));
        assert_eq!(gate.text().await, pong(number));
    }
    let since = Instant::now();
    assert_eq!(gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), SILENCE);
    let mut again = life.greeted().await;
    life.stop.kill();
    assert_eq!(again.text().await, refuses("draining"));
    assert!(matches!(again.next().await, Sent::Ping(_)));
    assert_eq!(again.next().await, Sent::Last(None));
    life.ended().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_slot_waits_for_ever_for_a_gate_that_never_pings() {
    let mut bench = stage(Duration::from_secs(5), text("x"));
    sleep(SILENCE * 100).await;
    assert!(bench.gate.sent.try_recv().is_err());
    bench.gate.say(lease());
    assert_eq!(bench.gate.text().await, result("x"));
}
