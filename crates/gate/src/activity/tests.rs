//! The table alone, in a time that the tests make.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

const TTL: i64 = 30;

fn at(seconds: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(seconds)
}

fn performer(number: usize) -> Performer {
    Performer {
        job: format!("{number:032x}").parse().unwrap(),
        attempt: format!("{:032x}", number + (1 << 40)).parse().unwrap(),
        ordinal: 2,
        slot: SlotId::new("worker-1".parse().unwrap(), 3).unwrap(),
    }
}

const fn event(sequence: u8, stage: Stage) -> Activity {
    Activity { sequence, stage }
}

/// Records a first event of an attempt whose lease has begun at `now`.
fn first(live: &LiveActivity, number: usize, now: i64) -> Recorded {
    let event = event(1, Stage::Analyzing);
    live.record(&performer(number), event, at(now + TTL), at(now))
}

#[test]
fn an_event_gets_the_time_and_the_exact_names() {
    let live = LiveActivity::default();
    let performer = performer(7);
    let recorded = live.record(&performer, event(1, Stage::Editing), at(TTL), at(4));
    assert_eq!(recorded, Recorded::Shown);
    let shown = live.of(&performer.attempt, at(5));
    let wire = strict_json::to_line(&shown[0]);
    assert_eq!(
        String::from_utf8(wire).unwrap(),
        concat!(
            r#"{"run_id":"00000000000000000000000000000007","#,
            r#""attempt_id":"00000000000000000000010000000007","attempt_ordinal":2,"#,
            r#""worker_id":"worker-1#3","sequence":1,"stage":"editing","#,
            r#""received_at":"2026-01-01T00:00:04Z"}"#
        )
    );
    assert_eq!(shown.len(), 1);
}

#[test]
fn nothing_is_shown_from_the_deadline_on_and_a_heartbeat_moves_it() {
    let live = LiveActivity::default();
    let attempt = performer(1).attempt;
    first(&live, 1, 0);
    assert_eq!(live.of(&attempt, at(TTL - 1)).len(), 1);
    assert!(live.of(&attempt, at(TTL)).is_empty());
    live.extend(&attempt, at(2 * TTL));
    assert_eq!(live.of(&attempt, at(2 * TTL - 1)).len(), 1);
    assert!(live.of(&attempt, at(2 * TTL)).is_empty());
    // A heartbeat of an attempt that shows nothing makes no entry.
    live.extend(&performer(2).attempt, at(9 * TTL));
    assert_eq!(live.attempts(), 1);
}

#[test]
fn an_event_after_the_deadline_is_refused_and_leaves_nothing() {
    let live = LiveActivity::default();
    let one = performer(1);
    first(&live, 1, 0);
    let late = live.record(&one, event(2, Stage::Editing), at(TTL), at(TTL));
    assert_eq!(late, Recorded::Expired);
    assert_eq!(live.attempts(), 0);
}

#[test]
fn an_attempt_has_at_most_four_events_each_later_than_the_last() {
    let live = LiveActivity::default();
    let one = performer(1);
    let say = |sequence, stage| live.record(&one, event(sequence, stage), at(TTL), at(0));
    assert_eq!(say(1, Stage::Analyzing), Recorded::Shown);
    assert_eq!(say(1, Stage::Editing), Recorded::OutOfOrder);
    assert_eq!(say(2, Stage::Analyzing), Recorded::OutOfOrder);
    assert_eq!(say(2, Stage::Editing), Recorded::Shown);
    assert_eq!(say(3, Stage::Testing), Recorded::Shown);
    assert_eq!(say(4, Stage::PreparingResult), Recorded::Shown);
    assert_eq!(say(5, Stage::PreparingResult), Recorded::OutOfOrder);
    assert_eq!(live.of(&one.attempt, at(1)).len(), 4);
}

#[test]
fn the_1025th_attempt_is_dropped_and_counted_until_there_is_place() {
    let live = LiveActivity::default();
    for number in 0..MAX_ATTEMPTS {
        assert_eq!(first(&live, number, 0), Recorded::Shown);
    }
    let extra = MAX_ATTEMPTS;
    assert_eq!(first(&live, extra, 1), Recorded::Dropped(1));
    assert_eq!(first(&live, extra, 1), Recorded::Dropped(2));
    assert_eq!(live.dropped(), 2);
    assert!(live.of(&performer(extra).attempt, at(1)).is_empty());
    // Those that are there go on.
    let one = performer(0);
    let next = live.record(&one, event(2, Stage::Editing), at(TTL), at(1));
    assert_eq!(next, Recorded::Shown);
    // One that is over makes place, and so do those whose time is over.
    live.forget(&performer(3).attempt);
    assert_eq!(first(&live, extra, 1), Recorded::Shown);
    assert_eq!(first(&live, extra + 1, TTL), Recorded::Shown);
    assert_eq!(live.attempts(), 2);
}

#[derive(Debug, Clone)]
enum Step {
    Record(usize, u8, Stage),
    Extend(usize),
    Forget(usize),
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let stage = prop::sample::select(vec![
        Stage::Analyzing,
        Stage::Editing,
        Stage::Testing,
        Stage::PreparingResult,
    ]);
    let attempt = 0..4_usize;
    let step = prop_oneof![
        6 => (attempt.clone(), 0..6_u8, stage).prop_map(|(a, s, t)| Step::Record(a, s, t)),
        2 => attempt.clone().prop_map(Step::Extend),
        1 => attempt.prop_map(Step::Forget),
        2 => (0..20_i64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    /// Whatever comes in whatever order: what is shown goes strictly forward, has at most four
    /// events an attempt, belongs to it alone, and is gone by its current deadline.
    #[test]
    fn what_is_shown_is_bounded_ordered_and_current(steps in steps()) {
        let live = LiveActivity::default();
        let mut now = 0;
        let mut deadlines = [TTL; 4];
        let mut expected: [Vec<(u8, Stage)>; 4] = Default::default();
        for step in steps {
            match step {
                Step::Record(number, sequence, stage) => {
                    let performer = performer(number);
                    let deadline = at(deadlines[number]);
                    match live.record(&performer, event(sequence, stage), deadline, at(now)) {
                        Recorded::Shown => expected[number].push((sequence, stage)),
                        Recorded::Expired => {
                            prop_assert!(deadlines[number] <= now);
                            expected[number].clear();
                        }
                        Recorded::OutOfOrder => {
                            let last = expected[number].last().copied();
                            let behind = last.is_some_and(|(s, t)| s >= sequence || t >= stage);
                            prop_assert!(behind, "it did follow");
                        }
                        Recorded::Dropped(_) => prop_assert!(false, "there is place"),
                    }
                }
                // As the store does: strictly before the deadline, and never backwards.
                Step::Extend(number) if now < deadlines[number] => {
                    deadlines[number] = deadlines[number].max(now + TTL);
                    live.extend(&performer(number).attempt, at(deadlines[number]));
                }
                Step::Extend(_) => {}
                Step::Forget(number) => {
                    live.forget(&performer(number).attempt);
                    expected[number].clear();
                }
                Step::Wait(seconds) => now += seconds,
            }
            for (number, events) in expected.iter().enumerate() {
                let performer = performer(number);
                let shown = live.of(&performer.attempt, at(now));
                let seen: Vec<_> = shown.iter().map(|at| (at.sequence, at.stage)).collect();
                if now < deadlines[number] {
                    prop_assert_eq!(&seen, events);
                } else {
                    prop_assert!(seen.is_empty());
                }
                prop_assert!(seen.len() <= usize::from(MAX_ACTIVITIES));
                prop_assert!(seen.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
                for event in &shown {
                    prop_assert_eq!(&event.run_id, &performer.job);
                    prop_assert_eq!(&event.worker_id, &performer.slot);
                    prop_assert!(event.received_at <= at(now));
                }
            }
        }
    }
}

#[test]
fn a_panic_in_a_holder_of_the_table_spoils_nothing() {
    let live = LiveActivity::default();
    first(&live, 1, 0);
    let poisoned = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let _table = live.table();
                panic!("a defect elsewhere");
            })
            .join()
    });
    assert!(poisoned.is_err());
    assert_eq!(live.of(&performer(1).attempt, at(1)).len(), 1);
}
