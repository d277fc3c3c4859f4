//! What is believed of an answer: lengths, forms and failures.

use backplane_client::{AnswerError, ClientError, Fault, Json, Method, Never};

use crate::server::{Server, Step};
use crate::support::{
    TOKEN, answer, artifact, client, fault, get, is_fault, is_status, ok, patient,
};

#[test]
fn a_request_says_who_asks_and_for_stored_bytes() {
    let server = Server::plain(vec![Step::Send(ok())]);
    get(&client(&server.url(), patient())).unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.line(), "GET /plugin-protocol/v1/x HTTP/1.1");
    let agent = seen.header("user-agent").unwrap();
    assert_eq!(agent, format!("backplane/{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert_eq!(
        seen.header("authorization"),
        Some(&*format!("Bearer {TOKEN}"))
    );
    assert_eq!(seen.header("range"), None);
    assert_eq!(seen.header("referer"), None);
}

#[test]
fn m57_a_length_that_is_too_great_is_an_answer_that_broke_off() {
    let lie = || Step::Send(answer(200, &["content-length: 100"], b"{}"));
    let server = Server::plain(vec![lie(), lie(), lie()]);
    is_fault(get(&client(&server.url(), patient())), Fault::Unreachable);
    assert_eq!(server.connections(), 3);
}

#[test]
fn m57_a_length_that_is_too_small_cuts_the_answer() {
    let (bytes, digest) = artifact();
    let short = answer(200, &["content-length: 1000"], &bytes);
    let server = Server::plain(vec![Step::Send(short)]);
    let outcome = client(&server.url(), patient()).download(&digest, &Never);
    assert!(
        matches!(outcome, Err(ClientError::DigestMismatch { .. })),
        "{outcome:?}"
    );
}

#[test]
fn m57_an_announced_length_over_the_limit_is_refused_before_the_body() {
    let head = answer(200, &["content-length: 4194305"], b"");
    let server = Server::plain(vec![Step::Hold(head)]);
    is_fault(get(&client(&server.url(), patient())), Fault::TooLong);
    server.wait_for_leaving(1);
}

#[test]
fn m57_a_body_without_length_is_read_to_the_limit_and_no_further() {
    for head in [
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
    ] {
        let piece = match head.contains("chunked") {
            true => [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat(),
            false => vec![b' '; 0x10000],
        };
        let server = Server::plain(vec![Step::Endless(head.into(), piece)]);
        is_fault(get(&client(&server.url(), patient())), Fault::TooLong);
        server.wait_for_leaving(1);
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn m57_chunked_bodies_without_a_length_arrive_whole() {
    let (bytes, digest) = artifact();
    let mut body = Vec::new();
    for piece in bytes.chunks(10_000) {
        body.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        body.extend_from_slice(piece);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let whole = answer(200, &["transfer-encoding: chunked"], &body);
    let server = Server::plain(vec![Step::Send(whole)]);
    let download = client(&server.url(), patient()).download(&digest, &Never);
    assert_eq!(download.unwrap().artifact, bytes);
}

#[test]
fn m57_a_part_that_nobody_asked_for_is_refused() {
    let part = answer(206, &["content-range: bytes 0-1/9"], b"{}");
    let server = Server::plain(vec![Step::Send(part)]);
    is_fault(get(&client(&server.url(), patient())), Fault::Answer);
    assert_eq!(server.connections(), 1);
}

#[test]
fn m57_an_encoded_answer_is_refused_and_nothing_is_decoded() {
    let (bytes, digest) = artifact();
    let encoded = || Step::Send(answer(200, &["content-encoding: gzip"], &bytes));
    let server = Server::plain(vec![encoded(), encoded()]);
    let client = client(&server.url(), patient());
    is_fault(client.download(&digest, &Never), Fault::Answer);
    is_fault(get(&client), Fault::Answer);
}

#[test]
fn m57_an_artifact_with_coding_identity_is_the_artifact() {
    let (bytes, digest) = artifact();
    let same = answer(200, &["content-encoding: identity"], &bytes);
    let server = Server::plain(vec![Step::Send(same)]);
    client(&server.url(), patient())
        .download(&digest, &Never)
        .unwrap();
}

#[test]
fn m57_a_page_of_html_is_no_answer_and_no_artifact() {
    let page = || {
        Step::Send(answer(
            200,
            &["content-type: text/html"],
            b"<h1>Log in</h1>",
        ))
    };
    let server = Server::plain(vec![page(), page()]);
    let client = client(&server.url(), patient());
    let outcome = get(&client);
    assert!(
        matches!(
            outcome,
            Err(ClientError::Answer(AnswerError::NotJson { .. }))
        ),
        "{outcome:?}"
    );
    let outcome = client.download(&artifact().1, &Never);
    assert!(matches!(outcome, Err(ClientError::DigestMismatch { .. })));
}

#[test]
fn m57_an_artifact_over_the_limit_of_archives_is_refused() {
    let (bytes, digest) = artifact();
    let limits = plugin_archive::Limits {
        archive_bytes: bytes.len() as u64 - 1,
        ..plugin_archive::Limits::default()
    };
    let chunked = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".as_bytes();
    let server = Server::plain(vec![Step::Send([chunked, &bytes].concat())]);
    let client = client(&server.url(), patient()).with_limits(limits);
    is_fault(client.download(&digest, &Never), Fault::TooLong);
}

#[test]
fn m59_the_body_of_a_failure_is_not_read() {
    let length = "content-length: 10000000";
    for status in [400, 401, 403, 404, 410] {
        // The rest of these 10 MB never comes: who waits for it waits for ever.
        let server = Server::plain(vec![Step::Hold(answer(status, &[length], b"<"))]);
        is_status(get(&client(&server.url(), patient())), status);
        server.wait_for_leaving(1);
        assert_eq!(server.connections(), 1);
    }
    for status in [429, 500, 503] {
        let step = || Step::Endless(answer(status, &[length], b"<"), vec![b'x'; 0x10000]);
        let server = Server::plain(vec![step(), step(), step()]);
        is_status(get(&client(&server.url(), patient())), status);
        server.wait_for_leaving(3);
        assert_eq!(server.connections(), 3);
    }
}

#[test]
fn who_asks_why_gets_a_short_reason_and_no_long_one() {
    let reason =
        br#"{"protocol_version":"1","error":{"code":"conflict","message":"x","retryable":false}}"#;
    let long = [reason.as_slice(), &[b' '; 20_000]].concat();
    let steps = [
        answer(409, &[], reason),
        answer(409, &[], &long),
        answer(409, &["content-length: 500"], reason),
        answer(409, &["content-encoding: gzip"], reason),
    ];
    let server = Server::plain(steps.map(Step::Send).into());
    let client = client(&server.url(), patient());
    let ask = || {
        let body = Json::Object(backplane_client::Object::default());
        let call = client
            .request_call(Method::Post, "/x", Some(&body))
            .unwrap();
        client.carry_out(call.asking_why(), &Never)
    };
    let outcome = ask();
    assert!(
        matches!(outcome, Err(ClientError::Refused(_))),
        "{outcome:?}"
    );
    for _ in 0..3 {
        is_status(ask(), 409);
    }
}

#[test]
fn a_server_that_speaks_no_http_is_an_error_that_does_not_quote_it() {
    let noise = || Step::Send(b"220 mail.example ESMTP\r\n".to_vec());
    let server = Server::plain(vec![noise(), noise(), noise()]);
    let error = fault(get(&client(&server.url(), patient())));
    assert_eq!(error.fault(), Fault::Unreachable);
    assert!(!error.to_string().contains("ESMTP"), "{error}");
}

#[test]
fn a_head_without_end_is_given_up() {
    let line = b"x-a: 0123456789012345678901234567890123456789012345678901234\r\n".to_vec();
    let step = || Step::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), line.clone());
    let server = Server::plain(vec![step(), step(), step()]);
    is_fault(get(&client(&server.url(), patient())), Fault::Unreachable);
    server.wait_for_leaving(3);
}

#[test]
fn nobody_at_the_address_is_an_error_that_names_it() {
    let server = Server::plain(vec![]);
    let url = server.url();
    drop(server);
    let error = fault(get(&client(&url, patient())));
    assert_eq!(error.fault(), Fault::Unreachable);
    assert!(error.to_string().contains(&url), "{error}");
}
