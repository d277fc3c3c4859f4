//! Asking an authority that answers well, badly, too much, too late or not at all.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use attest_timestamp::{MAX_RESPONSE_BYTES, Nonce, Token};
use stamp_authority::{Ca, Stamper, Wanted, response};
use timestamp_http::{FetchError, TsaUrl, fetch};

const SIGNATURE: [u8; 64] = [7; 64];
/// Longer than any answer here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that takes one request and answers with whatever `answer` makes of it.
fn serve(answer: impl FnOnce(&str, &[u8]) -> Vec<u8> + Send + 'static) -> (TsaUrl, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/stamp", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (head, body) = read(&mut stream);
        let answer = answer(&head, &body);
        // Whoever asks may have seen enough.
        drop(stream.write_all(&answer));
    });
    (url.parse().unwrap(), server)
}

fn read(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).unwrap();
        bytes.extend_from_slice(&part[..count]);
        let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(bytes[..end].to_vec())
            .unwrap()
            .to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if bytes.len() == end + 4 + length {
            return (head, bytes[end + 4..].to_vec());
        }
    }
}

fn http(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

const GOOD: &str = "200 OK\r\ncontent-type: application/timestamp-reply";

/// Asks a server that answers with these bytes.
fn asked(answer: Vec<u8>) -> Result<Vec<u8>, FetchError> {
    let (url, server) = serve(move |_, _| answer);
    let result = fetch(&url, &SIGNATURE, &Nonce::new([1; 8]), PATIENCE);
    server.join().unwrap();
    result
}

#[track_caller]
fn says(result: Result<Vec<u8>, FetchError>, text: &str) {
    let error = result.unwrap_err();
    let mut words = error.to_string();
    if let Some(cause) = std::error::Error::source(&error) {
        words = format!("{words}: {cause}");
    }
    assert!(words.contains(text), "`{text}` in `{words}`");
}

#[test]
fn a_token_that_answers_the_request_comes_back() {
    let (url, server) = serve(|head, body| {
        assert!(head.starts_with("post /stamp http/1.1"), "{head}");
        assert!(
            head.contains("content-type: application/timestamp-query"),
            "{head}"
        );
        assert!(
            head.contains("accept: application/timestamp-reply"),
            "{head}"
        );
        assert!(
            !head.contains("authorization") && !head.contains("cookie"),
            "{head}"
        );
        let ca = Ca::honest("CA");
        let signer = ca.issue(&Wanted::stamper("S"));
        let stamper = Stamper::for_request(&signer, body, "20261130120000Z");
        http(GOOD, &response(&stamper.token()))
    });
    let nonce = Nonce::new([3; 8]);
    let token = fetch(&url, &SIGNATURE, &nonce, PATIENCE).unwrap();
    server.join().unwrap();
    let token = Token::from_der(&token).unwrap();
    token.examine(&SIGNATURE, Some(&nonce)).unwrap();
}

#[test]
fn a_type_is_one_type_whatever_its_case_and_parameters() {
    let body = [0x30, 10, 0x30, 3, 2, 1, 0, 0x30, 3, 2, 1, 9];
    for head in [
        "200 OK\r\nContent-Type: Application/Timestamp-Reply; charset=binary",
        "200 OK\r\ncontent-type:application/timestamp-reply",
    ] {
        assert_eq!(asked(http(head, &body)).unwrap(), [0x30, 3, 2, 1, 9]);
    }
    for head in [
        "200 OK",
        "200 OK\r\ncontent-type: text/html",
        "200 OK\r\ncontent-type: application/timestamp-query",
        "200 OK\r\ncontent-type: application/timestamp-replyx",
        "200 OK\r\ncontent-type: application/timestamp-reply\r\ncontent-type: text/html",
    ] {
        says(asked(http(head, &body)), "not with a timestamp reply");
    }
    let control = "200 OK\r\ncontent-type: a\u{9b}b";
    says(asked(http(control, &body)), "answered with `");
}

#[test]
fn redirects_and_other_statuses_are_not_followed() {
    let landing = TcpListener::bind("127.0.0.1:0").unwrap();
    landing.set_nonblocking(true).unwrap();
    let there = landing.local_addr().unwrap();
    for code in [301, 302, 307, 308] {
        let head = format!("{code} Moved\r\nlocation: http://{there}/");
        says(
            asked(http(&head, b"")),
            &format!("status {code}, a redirect"),
        );
    }
    assert!(landing.accept().is_err(), "somebody followed");
    says(asked(http("404 Not Found", b"")), "is the path right?");
    for code in [204, 400, 401, 500, 503] {
        let head = format!("{code} X\r\ncontent-type: application/timestamp-reply");
        says(asked(http(&head, b"")), &format!("status {code}"));
    }
}

#[test]
fn more_than_a_token_has_is_not_read_to_its_end() {
    let long = vec![0x30; MAX_RESPONSE_BYTES + 1];
    says(asked(http(GOOD, &long)), "more than 1048576 bytes");
    // Announced and never sent.
    let head = format!("HTTP/1.1 {GOOD}\r\ncontent-length: 99999999999\r\n\r\n");
    says(asked(head.into_bytes()), "more than 1048576 bytes");
    // In chunks, without a word on the length.
    let mut chunked = format!("HTTP/1.1 {GOOD}\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..40 {
        chunked.extend_from_slice(b"8000\r\n");
        chunked.extend_from_slice(&[0; 0x8000]);
        chunked.extend_from_slice(b"\r\n");
    }
    says(asked(chunked), "more than 1048576 bytes");
}

#[test]
fn a_rejection_and_nonsense_say_what_they_are() {
    let rejected = [0x30, 9, 0x30, 7, 2, 1, 2, 3, 2, 5, 0x20];
    says(
        asked(http(GOOD, &rejected)),
        "rejected the request: rejection: the request is not permitted",
    );
    says(asked(http(GOOD, b"<html>")), "not a timestamp response");
    says(asked(http(GOOD, b"")), "not a timestamp response");
    says(
        asked(http(GOOD, &[0x30, 5, 0x30, 3, 2, 1, 0])),
        "sent no token",
    );
}

#[test]
fn an_answer_that_is_lost_or_no_http_is_told() {
    says(asked(Vec::new()), "cannot reach the timestamp authority");
    says(asked(b"SSH-2.0-x\r\n".to_vec()), "cannot reach");
    let head = format!("HTTP/1.1 {GOOD}\r\ncontent-length: 10\r\n\r\n12345");
    says(asked(head.into_bytes()), "cannot reach");
    // Nobody listens.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url: TsaUrl = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    drop(listener);
    says(
        fetch(&url, &SIGNATURE, &Nonce::new([1; 8]), PATIENCE),
        "refused",
    );
}

#[test]
fn whoever_takes_too_long_is_not_waited_for() {
    // Never answers, and one that starts and never ends.
    for started in [
        String::new(),
        format!("HTTP/1.1 {GOOD}\r\ncontent-length: 9\r\n\r\n1"),
    ] {
        let (over, wait) = std::sync::mpsc::channel::<()>();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            read(&mut stream);
            stream.write_all(started.as_bytes()).unwrap();
            // Held open until the other side has given up.
            let _closed = wait.recv();
        });
        let url: TsaUrl = url.parse().unwrap();
        let result = fetch(
            &url,
            &SIGNATURE,
            &Nonce::new([1; 8]),
            Duration::from_millis(300),
        );
        says(result, "timed out");
        drop(over);
        server.join().unwrap();
    }
}
