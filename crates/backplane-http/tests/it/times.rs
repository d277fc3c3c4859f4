//! Limits of time and attempts, in a time that only the test moves.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use backplane_client::{Client, ClientError, Fault, Json, Method, Never, Object};
use backplane_http::{HttpTransport, Options, ResumeFile, Times};

use crate::clock::Still;
use crate::server::{Server, Step, until};
use crate::support::{
    Authority, LONG, answer, artifact, client, client_of, fault, get, is_fault, is_status, ok,
    patient,
};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// A client whose time stands still; connecting alone has the machine's.
fn still(server: &Server, times: Times) -> (Client<HttpTransport>, Arc<Still>) {
    let clock = Arc::new(Still::new());
    let options = Options {
        times: Times {
            connect: LONG,
            ..times
        },
        ..Options::default()
    };
    let transport = HttpTransport::with_clock(options, clock.clone()).unwrap();
    (client_of(&server.url(), transport), clock)
}

/// Runs `ask` beside `meanwhile`.
fn beside<T: Send>(ask: impl FnOnce() -> T + Send, meanwhile: impl FnOnce()) -> T {
    thread::scope(|scope| {
        let asking = scope.spawn(ask);
        meanwhile();
        asking.join().unwrap()
    })
}

#[test]
fn the_limits_are_30_seconds_in_all_20_of_silence_and_10_minutes_for_an_artifact() {
    let steps = vec![Step::Hold(Vec::new()), Step::Hold(Vec::new())];
    let server = Server::plain(steps);
    let (client, clock) = still(&server, Times::default());
    let outcome = beside(
        || get(&client),
        || {
            server.wait_for_requests(1);
            clock.wait_for(20 * S);
            clock.wait_for(30 * S);
            clock.set(30 * S);
        },
    );
    is_fault(outcome, Fault::TimedOut);
    let digest = artifact().1;
    let outcome = beside(
        || client.download(&digest, &Never),
        || {
            server.wait_for_requests(2);
            clock.wait_for(630 * S);
            clock.set(630 * S);
        },
    );
    is_fault(outcome, Fault::TimedOut);
    assert_eq!(server.connections(), 2);
}

#[test]
fn silence_ends_an_attempt_and_the_next_may_go_better() {
    for step in [
        Step::Hold(Vec::new()),
        Step::Hold(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()),
        Step::Deaf,
    ] {
        let server = Server::plain(vec![step, Step::Send(ok())]);
        let (client, clock) = still(&server, Times::default());
        let outcome = beside(
            || get(&client),
            || {
                server.wait_for_requests(1);
                clock.wait_for(20 * S);
                clock.set(20 * S);
                clock.wait_for(20 * S + 100 * MS);
                clock.set(20 * S + 100 * MS);
            },
        );
        outcome.unwrap();
        assert_eq!(server.connections(), 2);
    }
}

#[test]
fn silence_in_a_body_ends_an_attempt_and_the_next_goes_on_from_there() {
    let (bytes, digest) = artifact();
    let (last, all) = (bytes.len() - 1, bytes.len());
    let tag = ["etag: \"a\"", "accept-ranges: bytes"];
    let length = format!("content-length: {all}");
    let range = format!("content-range: bytes 1000-{last}/{all}");
    let server = Server::plain(vec![
        Step::Hold(answer(200, &[tag[0], tag[1], &length], &bytes[..1000])),
        Step::Send(answer(206, &[tag[0], &range], &bytes[1000..])),
    ]);
    let (client, clock) = still(&server, Times::default());
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("x.part");
    let outcome = beside(
        || {
            let call = client.download_call(&digest).unwrap();
            let file = ResumeFile::open(&part).unwrap();
            client.transport().download(call, file, &Never)
        },
        || {
            until(|| fs_err::read(&part).is_ok_and(|kept| kept.ends_with(&bytes[900..1000])));
            clock.set(20 * S);
            clock.wait_for(20 * S + 100 * MS);
            clock.set(20 * S + 100 * MS);
        },
    );
    assert_eq!(outcome.unwrap().artifact, bytes);
    assert_eq!(server.connections(), 2);
}

#[test]
fn an_answer_that_trickles_for_ever_ends_with_the_time_for_the_whole() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let server = Server::plain(vec![Step::Hold([head, vec![b' '; 100]].concat())]);
    let times = Times {
        idle: LONG,
        ..Times::default()
    };
    let (client, clock) = still(&server, times);
    let outcome = beside(
        || get(&client),
        || {
            server.wait_for_requests(1);
            clock.wait_for(30 * S);
            clock.set(30 * S);
        },
    );
    is_fault(outcome, Fault::TimedOut);
    server.wait_for_leaving(1);
    assert_eq!(server.connections(), 1);
}

#[test]
fn what_arrives_puts_the_limit_of_silence_off() {
    // The body is endless and the limit of silence short, but in a time that stands still.
    let step = Step::Endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 0x10000]);
    let server = Server::plain(vec![step]);
    let times = Times {
        idle: MS,
        ..Times::default()
    };
    let (client, _clock) = still(&server, times);
    is_fault(get(&client), Fault::TooLong);
}

#[test]
fn a_connection_that_does_not_come_about_ends_in_time() {
    // Nobody answers the handshake, ever: only the limit ends it.
    let server = Server::plain(vec![Step::Deaf, Step::Deaf, Step::Deaf]);
    let authority = Authority::new();
    let mut options = crate::trust::trusting(&authority);
    options.times.connect = 50 * MS;
    let url = server.url().replace("http:", "https:");
    is_fault(get(&client(&url, options)), Fault::TimedOut);
    assert_eq!(server.connections(), 3);
}

#[test]
fn three_attempts_wait_100_and_250_milliseconds() {
    let busy = || Step::Send(answer(503, &[], b""));
    let server = Server::plain(vec![busy(), busy(), busy(), busy()]);
    let (client, clock) = still(&server, Times::default());
    let outcome = beside(
        || get(&client),
        || {
            clock.wait_for(100 * MS);
            assert_eq!(server.connections(), 1);
            clock.set(100 * MS);
            clock.wait_for(350 * MS);
            assert_eq!(server.connections(), 2);
            clock.set(350 * MS);
        },
    );
    is_status(outcome, 503);
    assert_eq!(server.connections(), 3);
}

#[test]
fn a_wait_that_is_asked_for_is_honoured_up_to_the_deadline() {
    for asked in [
        "retry-after: 7",
        "retry-after: Wed, 21 Oct 2026 07:28:07 GMT",
    ] {
        let busy = Step::Send(answer(429, &[asked], b""));
        let server = Server::plain(vec![busy, Step::Send(ok())]);
        let (client, clock) = still(&server, Times::default());
        let outcome = beside(
            || get(&client),
            || {
                clock.wait_for(7 * S);
                assert_eq!(server.connections(), 1);
                clock.set(7 * S);
            },
        );
        outcome.unwrap();
        assert_eq!(server.connections(), 2);
    }
    for asked in ["retry-after: 30", "retry-after: 99999999999999999999"] {
        let server = Server::plain(vec![Step::Send(answer(429, &[asked], b""))]);
        let (client, clock) = still(&server, Times::default());
        is_status(get(&client), 429);
        assert_eq!(server.connections(), 1);
        let short = clock.waits().into_iter().filter(|wait| *wait < 20 * S);
        let refusal = 2 * S;
        assert!(short.into_iter().all(|wait| wait == refusal));
    }
}

#[test]
fn a_report_that_may_have_arrived_is_not_sent_twice() {
    let body = Json::Object(Object::default());
    for step in [
        Step::Send(Vec::new()),
        Step::Send(answer(500, &[], b"")),
        Step::Send(answer(200, &["content-length: 9"], b"{}")),
    ] {
        let server = Server::plain(vec![step, Step::Send(ok())]);
        let outcome =
            client(&server.url(), patient()).request(Method::Post, "/x", Some(&body), &Never);
        assert!(
            matches!(
                outcome,
                Err(ClientError::Transport(_) | ClientError::HttpStatus { status: 500 })
            ),
            "{outcome:?}"
        );
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn a_connection_that_breaks_is_tried_again() {
    let server = Server::plain(vec![Step::Send(Vec::new()), Step::Send(ok())]);
    get(&client(&server.url(), patient())).unwrap();
    let server = Server::plain(vec![]);
    let error = fault(get(&client(&server.url(), patient())));
    assert_eq!(error.fault(), Fault::Unreachable);
    assert_eq!(server.connections(), 3);
}

#[test]
fn the_reasons_of_a_failure_are_waited_for_two_seconds() {
    let step = Step::Hold(answer(409, &["content-length: 99"], b"{"));
    let server = Server::plain(vec![step]);
    let (client, clock) = still(&server, Times::default());
    let body = Json::Object(Object::default());
    let call = client
        .request_call(Method::Post, "/x", Some(&body))
        .unwrap();
    let outcome = beside(
        || client.carry_out(call.asking_why(), &Never),
        || {
            clock.wait_for(2 * S);
            clock.set(2 * S);
        },
    );
    is_status(outcome, 409);
}

#[test]
fn m59_the_body_of_a_failure_is_not_waited_for_when_nobody_asked() {
    // Time stands still, so nothing but the head can end this.
    let step = Step::Hold(answer(404, &["content-length: 10000000"], b""));
    let server = Server::plain(vec![step]);
    let (client, _clock) = still(&server, Times::default());
    is_status(get(&client), 404);
    server.wait_for_leaving(1);
}
