//! The transport that tries again, with a clock that only moves when somebody waits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backplane_client::{
    Answer, Auth, Body, Cancel, Client, ClientError, Clock, Fault, Method, Never, Request,
    RetryPolicy, Retrying, TransportError,
};

use crate::support::BASE;

/// Time in memory; waiting makes it pass, and may be when a caller cancels.
#[derive(Default)]
struct Still<'a> {
    now: Mutex<Duration>,
    cancels: Option<&'a AtomicBool>,
}

impl Clock for &Still<'_> {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn wait(&self, until: Duration, cancel: &dyn Cancel) {
        assert!(
            !cancel.is_cancelled(),
            "who has cancelled waits for nothing"
        );
        if let Some(flag) = self.cancels {
            flag.store(true, Ordering::SeqCst);
            return;
        }
        *self.now.lock().unwrap() = until;
    }
}

fn answer(status: u16) -> Result<Answer, TransportError> {
    Ok(Answer::new(status, Body::Bytes(b"{}".to_vec())))
}

/// Asks with the given answers, one an attempt; returns the outcome, the attempts and the time.
fn ask(
    method: Method,
    answers: Vec<Result<Answer, TransportError>>,
    clock: &Still<'_>,
    cancel: &dyn Cancel,
) -> (Result<(), ClientError>, Vec<Duration>) {
    let answers = Mutex::new(answers.into_iter());
    let times = Mutex::new(Vec::new());
    let once = |_: &Request, time: Duration, _: &dyn Cancel| {
        times.lock().unwrap().push(time);
        answers.lock().unwrap().next().unwrap()
    };
    let transport = Retrying::new(once, clock, RetryPolicy::default());
    let client = Client::new(BASE, Auth::None, Vec::new(), transport).unwrap();
    let outcome = client.request(method, "/x", None, cancel).map(drop);
    drop(client);
    (outcome, times.into_inner().unwrap())
}

#[test]
fn a_provider_that_is_busy_once_is_asked_again() {
    let clock = Still::default();
    let (outcome, times) = ask(Method::Get, vec![answer(503), answer(200)], &clock, &Never);
    assert!(outcome.is_ok());
    let milliseconds: Vec<_> = times.iter().map(Duration::as_millis).collect();
    assert_eq!(milliseconds, [30_000, 29_900]);
}

#[test]
fn a_provider_that_is_always_busy_is_asked_three_times() {
    for status in [429, 500, 503] {
        let clock = Still::default();
        let busy = (0..3).map(|_| answer(status)).collect();
        let (outcome, times) = ask(Method::Get, busy, &clock, &Never);
        assert!(matches!(outcome, Err(ClientError::HttpStatus { status: s }) if s == status));
        assert_eq!(times.len(), 3);
    }
}

#[test]
fn connections_that_break_are_tried_again_and_a_refusal_is_not() {
    let broken = |fault| Err(TransportError::new(fault, "broken"));
    let clock = Still::default();
    let answers = vec![broken(Fault::Unreachable), answer(200)];
    assert!(ask(Method::Get, answers, &clock, &Never).0.is_ok());
    for last in [
        answer(403),
        answer(404),
        answer(410),
        answer(302),
        broken(Fault::Tls),
    ] {
        let (outcome, times) = ask(Method::Get, vec![last], &Still::default(), &Never);
        assert!(outcome.is_err());
        assert_eq!(times.len(), 1);
    }
}

#[test]
fn a_report_that_may_have_arrived_is_not_sent_again() {
    let broken = Err(TransportError::new(Fault::Unreachable, "broken"));
    let (outcome, times) = ask(Method::Post, vec![broken], &Still::default(), &Never);
    assert!(matches!(outcome, Err(ClientError::Transport(_))));
    assert_eq!(times.len(), 1);
}

#[test]
fn a_wait_beyond_the_deadline_is_not_waited_for() {
    let mut busy = answer(429);
    if let Ok(answer) = &mut busy {
        answer.retry_after = Some(Duration::from_secs(3600));
    }
    let clock = Still::default();
    let (outcome, times) = ask(Method::Get, vec![busy], &clock, &Never);
    assert!(matches!(
        outcome,
        Err(ClientError::HttpStatus { status: 429 })
    ));
    assert_eq!((times.len(), (&clock).now()), (1, Duration::ZERO));
}

#[test]
fn a_cancellation_is_honoured_during_back_off() {
    let cancelled = AtomicBool::new(false);
    let clock = Still {
        cancels: Some(&cancelled),
        ..Still::default()
    };
    let (outcome, times) = ask(Method::Get, vec![answer(503)], &clock, &cancelled);
    assert!(
        matches!(outcome, Err(ClientError::Cancelled)),
        "{outcome:?}"
    );
    assert_eq!(times.len(), 1);
}
