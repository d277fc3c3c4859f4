//! The machine with a clock of numbers.

use proptest::prelude::*;

use super::*;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn retry(method: Method) -> Retry {
    Retry::new(RetryPolicy::default(), method, ms(1000))
}

fn busy(asked: Option<Duration>) -> Failure {
    Failure::Status(503, asked)
}

#[test]
fn there_are_three_attempts_with_waits_between() {
    let mut retry = retry(Method::Get);
    let first = retry.attempt(ms(1000));
    assert_eq!(first.map(|attempt| attempt.number), Some(1));
    assert_eq!(
        retry.failed(busy(None), ms(1010)),
        Next::WaitUntil(ms(1110))
    );
    assert_eq!(retry.attempt(ms(1109)), None, "too early");
    let second = retry.attempt(ms(1110)).unwrap();
    assert_eq!(second.number, 2);
    assert_eq!(second.time, ms(30_000 - 110), "one deadline");
    assert_eq!(
        retry.failed(busy(None), ms(1200)),
        Next::WaitUntil(ms(1450))
    );
    assert_eq!(retry.attempt(ms(1500)).unwrap().number, 3);
    assert_eq!(
        retry.failed(busy(None), ms(1600)),
        Next::GiveUp(GaveUp::Attempts)
    );
    assert_eq!(retry.attempt(ms(9000)), None, "over");
}

#[test]
fn what_may_pass_is_tried_again_and_nothing_else() {
    let judge = |method, failure| {
        let mut retry = retry(method);
        retry.attempt(ms(1000)).unwrap();
        matches!(retry.failed(failure, ms(1000)), Next::WaitUntil(_))
    };
    for status in [429, 500, 502, 503, 504, 599] {
        assert!(
            judge(Method::Get, Failure::Status(status, None)),
            "{status}"
        );
    }
    for status in [
        100, 204, 301, 400, 401, 403, 404, 408, 410, 428, 430, 499, 600,
    ] {
        assert!(
            !judge(Method::Get, Failure::Status(status, None)),
            "{status}"
        );
    }
    for fault in [Fault::Unreachable, Fault::TimedOut] {
        assert!(judge(Method::Put, Failure::Transport(fault)), "{fault:?}");
        assert!(!judge(Method::Post, Failure::Transport(fault)), "{fault:?}");
    }
    for fault in [
        Fault::Tls,
        Fault::TooLong,
        Fault::Redirect,
        Fault::Cancelled,
        Fault::Refused,
    ] {
        assert!(!judge(Method::Get, Failure::Transport(fault)), "{fault:?}");
    }
}

#[test]
fn what_could_be_done_twice_is_tried_again_only_if_it_was_not_done() {
    for method in [Method::Post, Method::Patch] {
        for (status, again) in [(429, true), (503, true), (500, false), (502, false)] {
            let mut retry = retry(method);
            retry.attempt(ms(1000)).unwrap();
            let next = retry.failed(Failure::Status(status, None), ms(1000));
            assert_eq!(
                matches!(next, Next::WaitUntil(_)),
                again,
                "{method:?} {status}"
            );
        }
    }
}

#[test]
fn a_wait_that_the_provider_asks_for_is_honoured_up_to_the_deadline() {
    let next = |asked| {
        let mut retry = retry(Method::Get);
        retry.attempt(ms(1000)).unwrap();
        retry.failed(busy(Some(asked)), ms(1000))
    };
    assert_eq!(next(ms(2000)), Next::WaitUntil(ms(3000)));
    assert_eq!(
        next(ms(1)),
        Next::WaitUntil(ms(1100)),
        "never less than ours"
    );
    assert_eq!(next(ms(29_999)), Next::WaitUntil(ms(30_999)));
    assert_eq!(next(ms(30_000)), Next::GiveUp(GaveUp::Deadline));
    assert_eq!(next(Duration::MAX), Next::GiveUp(GaveUp::Deadline));
}

#[test]
fn the_deadline_covers_attempts_and_waits() {
    let mut slow = retry(Method::Get);
    slow.attempt(ms(1000)).unwrap();
    assert_eq!(
        slow.failed(busy(None), ms(30_950)),
        Next::GiveUp(GaveUp::Deadline)
    );
    let mut late = retry(Method::Get);
    assert_eq!(late.attempt(ms(31_000)), None, "no time is left");
    assert_eq!(late.attempt(ms(1000)), None, "over");
}

#[test]
fn a_failure_that_nobody_waited_for_ends_it() {
    let mut retry = retry(Method::Get);
    assert_eq!(
        retry.failed(busy(None), ms(1000)),
        Next::GiveUp(GaveUp::Final)
    );
    assert_eq!(retry.attempt(ms(1000)), None);
}

proptest! {
    #[test]
    fn no_order_of_events_makes_more_attempts_or_passes_the_deadline(
        events in proptest::collection::vec((any::<bool>(), 0..20_000_u64, 0..40_000_u64), 0..40),
        attempts in 0..5_u32,
    ) {
        let policy = RetryPolicy { attempts, ..RetryPolicy::default() };
        let mut retry = Retry::new(policy, Method::Get, ms(0));
        let mut now = ms(0);
        let mut made = 0;
        for (attempt, passes, asked) in events {
            now += ms(passes);
            if attempt {
                if let Some(attempt) = retry.attempt(now) {
                    made += 1;
                    prop_assert_eq!(attempt.number, made);
                    prop_assert!(now + attempt.time <= ms(30_000));
                }
            } else if let Next::WaitUntil(until) = retry.failed(busy(Some(ms(asked))), now) {
                prop_assert!(until < ms(30_000) && until >= now + ms(asked));
            }
        }
        prop_assert!(made <= attempts);
    }
}
