//! Bodies on their way out.

use backplane_client::{ClientError, Json, Method, Never, Object};
use digest_text::Sha256Text;

use crate::server::{Server, Step};
use crate::support::{answer, client, patient};

fn confirmed(bytes: &[u8]) -> Vec<u8> {
    let body = format!("{{\"artifact_digest\":\"{}\"}}", Sha256Text::of(bytes));
    answer(201, &[], body.as_bytes())
}

#[test]
fn an_upload_arrives_whole_with_its_length() {
    for length in [1, 64 * 1024, 64 * 1024 + 1, 32 * 1024 * 1024] {
        let bytes: Vec<u8> = (0..length)
            .map(|n: u32| n.to_be_bytes()[1] ^ n.to_be_bytes()[3])
            .collect();
        let server = Server::plain(vec![Step::Send(confirmed(&bytes))]);
        client(&server.url(), patient())
            .upload(bytes.clone(), &Never)
            .unwrap();
        let seen = &server.seen()[0];
        assert_eq!(
            seen.header("content-length"),
            Some(&*bytes.len().to_string())
        );
        assert_eq!(seen.header("transfer-encoding"), None);
        assert_eq!(seen.header("content-type"), Some("application/x-tar+gzip"));
        assert!(
            seen.line()
                .starts_with("PUT /plugin-protocol/v1/artifacts/sha256:")
        );
        assert!(seen.body == bytes);
    }
}

#[test]
fn an_upload_that_breaks_off_is_sent_again_from_the_start() {
    let bytes = vec![3; 1_000_000];
    let steps = vec![
        Step::Send(Vec::new()),
        Step::Send(answer(500, &[], b"")),
        Step::Send(confirmed(&bytes)),
    ];
    let server = Server::plain(steps);
    client(&server.url(), patient())
        .upload(bytes.clone(), &Never)
        .unwrap();
    assert!(server.seen().iter().all(|seen| seen.body == bytes));
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn an_upload_that_is_refused_is_not_sent_again() {
    let server = Server::plain(vec![Step::Send(answer(413, &[], b""))]);
    let outcome = client(&server.url(), patient()).upload(vec![3; 1000], &Never);
    assert!(
        matches!(outcome, Err(ClientError::HttpStatus { status: 413 })),
        "{outcome:?}"
    );
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_report_is_json_with_its_type() {
    let server = Server::plain(vec![Step::Send(answer(200, &[], b"{}"))]);
    let body = Json::Object(Object::default());
    let client = client(&server.url(), patient());
    client
        .request(Method::Post, "/installations", Some(&body), &Never)
        .unwrap();
    let seen = &server.seen()[0];
    assert_eq!(
        seen.line(),
        "POST /plugin-protocol/v1/installations HTTP/1.1"
    );
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.body, b"{}");
}
