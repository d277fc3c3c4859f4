//! A cancellation ends each phase. Nothing else would: the servers wait for ever, and so do the limits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use backplane_client::{ClientError, Method, Never};
use backplane_http::ResumeFile;

use crate::server::{Server, Step};
use crate::support::{Authority, answer, artifact, client, get_until, ok, patient};

/// Asks, cancels once `ready` returns, and expects nothing else than that.
fn cancel_once(url: &str, ready: impl FnOnce()) {
    let authority = Authority::new();
    let options = crate::trust::trusting(&authority);
    let client = client(url, options);
    let flag = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        let asking = scope.spawn(|| get_until(&client, &flag));
        ready();
        flag.store(true, Ordering::Release);
        asking.join().unwrap()
    });
    assert!(
        matches!(outcome, Err(ClientError::Cancelled)),
        "{outcome:?}"
    );
}

#[test]
fn who_has_cancelled_sends_nothing() {
    let server = Server::plain(vec![Step::Send(ok())]);
    let client = client(&server.url(), patient());
    let outcome = get_until(&client, &AtomicBool::new(true));
    assert!(matches!(outcome, Err(ClientError::Cancelled)));
    let call = client.request_call(Method::Get, "/x", None).unwrap();
    let sent = backplane_client::Transport::send(
        client.transport(),
        call.request(),
        &AtomicBool::new(true),
    );
    assert_eq!(
        sent.unwrap_err().fault(),
        backplane_client::Fault::Cancelled
    );
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_cancellation_ends_connecting() {
    let server = Server::plain(vec![Step::Deaf]);
    let url = server.url().replace("http:", "https:");
    cancel_once(&url, || server.wait_for_connections(1));
}

#[test]
fn a_cancellation_ends_waiting_for_the_head() {
    let server = Server::plain(vec![Step::Hold(Vec::new())]);
    cancel_once(&server.url(), || server.wait_for_requests(1));
    server.wait_for_leaving(1);
}

#[test]
fn a_cancellation_ends_reading_the_body() {
    let server = Server::plain(vec![Step::Hold(answer(200, &["content-length: 9"], b"{"))]);
    cancel_once(&server.url(), || server.wait_for_requests(1));
    server.wait_for_leaving(1);
}

#[test]
fn a_cancellation_ends_the_wait_for_the_next_attempt() {
    let busy = answer(503, &["retry-after: 1800"], b"");
    let server = Server::plain(vec![Step::Send(busy), Step::Send(ok())]);
    cancel_once(&server.url(), || server.wait_for_requests(1));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_cancellation_ends_sending_a_body() {
    let server = Server::plain(vec![Step::Deaf]);
    let client = client(&server.url(), patient());
    let flag = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        let asking = scope.spawn(|| client.upload(vec![7; 32 * 1024 * 1024], &flag));
        server.wait_for_connections(1);
        flag.store(true, Ordering::Release);
        asking.join().unwrap()
    });
    assert!(
        matches!(outcome, Err(ClientError::Cancelled)),
        "{outcome:?}"
    );
}

#[test]
fn a_download_that_was_cancelled_goes_on_later() {
    let (bytes, digest) = artifact();
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("x.part");
    let head = ["etag: \"a\"", "accept-ranges: bytes"];
    let length = format!("content-length: {}", bytes.len());
    let begun = answer(200, &[head[0], head[1], &length], &bytes[..1000]);
    let range = format!(
        "content-range: bytes 1000-{}/{}",
        bytes.len() - 1,
        bytes.len()
    );
    let rest = answer(206, &[head[0], &range], &bytes[1000..]);
    let server = Server::plain(vec![Step::Hold(begun), Step::Send(rest)]);
    let client = client(&server.url(), patient());
    let flag = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let call = client.download_call(&digest).unwrap();
            let file = ResumeFile::open(&part).unwrap();
            client.transport().download(call, file, &flag)
        });
        crate::server::until(|| {
            fs_err::read(&part).is_ok_and(|kept| kept.ends_with(&bytes[900..1000]))
        });
        flag.store(true, Ordering::Release);
        asking.join().unwrap()
    });
    assert!(
        matches!(outcome, Err(ClientError::Cancelled)),
        "{outcome:?}"
    );
    let call = client.download_call(&digest).unwrap();
    let file = ResumeFile::open(&part).unwrap();
    let download = client.transport().download(call, file, &Never).unwrap();
    assert_eq!(download.artifact, bytes);
    assert!(!part.exists());
}
