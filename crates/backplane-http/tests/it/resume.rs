//! A download that breaks off goes on where it stopped, if those are surely the same bytes.

use std::path::Path;

use backplane_client::{Client, ClientError, Download, Fault, Never};
use backplane_http::{HttpTransport, ResumeFile};

use crate::server::{Server, Step};
use crate::support::{answer, artifact, client, is_fault, is_status, patient};

const KEPT: usize = 100_000;
const TAG: &str = "etag: \"one\"";
const RANGES: &str = "accept-ranges: bytes";

/// Sends the first bytes of what it says is the whole.
fn broken(bytes: &[u8], headers: &[&str]) -> Step {
    let length = format!("content-length: {}", bytes.len());
    let headers = [headers, &[length.as_str()]].concat();
    Step::Send(answer(200, &headers, &bytes[..KEPT]))
}

fn whole(bytes: &[u8]) -> Step {
    Step::Send(answer(200, &[TAG, RANGES], bytes))
}

/// Sends the rest from where the first part ended.
fn rest(bytes: &[u8], range: &str, tag: &str) -> Step {
    Step::Send(answer(206, &[tag, range], &bytes[KEPT..]))
}

fn range(bytes: &[u8]) -> String {
    format!(
        "content-range: bytes {KEPT}-{}/{}",
        bytes.len() - 1,
        bytes.len()
    )
}

fn keeping(
    client: &Client<HttpTransport>,
    digest: &str,
    part: &Path,
) -> Result<Download, ClientError> {
    let call = client.download_call(digest)?;
    let file = ResumeFile::open(part).unwrap();
    client.transport().download(call, file, &Never)
}

#[test]
fn m57_the_rest_of_the_same_bytes_is_asked_for_and_taken() {
    let (bytes, digest) = artifact();
    let steps = vec![
        broken(&bytes, &[TAG, RANGES]),
        rest(&bytes, &range(&bytes), TAG),
    ];
    let server = Server::plain(steps);
    let download = client(&server.url(), patient())
        .download(&digest, &Never)
        .unwrap();
    assert_eq!(download.artifact, bytes);
    let seen = server.seen();
    assert_eq!(
        (seen[0].header("range"), seen[0].header("if-range")),
        (None, None)
    );
    assert_eq!(seen[1].header("range"), Some(&*format!("bytes={KEPT}-")));
    assert_eq!(seen[1].header("if-range"), Some("\"one\""));
}

#[test]
fn a_failure_between_does_not_lose_what_is_there() {
    let (bytes, digest) = artifact();
    let steps = vec![
        broken(&bytes, &[TAG, RANGES]),
        Step::Send(answer(503, &[], b"")),
        rest(&bytes, &range(&bytes), TAG),
    ];
    let server = Server::plain(steps);
    client(&server.url(), patient())
        .download(&digest, &Never)
        .unwrap();
    assert!(server.seen()[2].header("range").is_some());
}

#[test]
fn m57_the_whole_in_answer_to_a_range_starts_anew() {
    let (bytes, digest) = artifact();
    let mut other = bytes.clone();
    other[0] ^= 1;
    let server = Server::plain(vec![broken(&other, &[TAG, RANGES]), whole(&bytes)]);
    let download = client(&server.url(), patient())
        .download(&digest, &Never)
        .unwrap();
    assert_eq!(download.artifact, bytes);
}

#[test]
fn m57_another_part_than_the_missing_one_is_thrown_away_and_the_download_starts_anew() {
    let (bytes, digest) = artifact();
    let (last, all) = (bytes.len() - 1, bytes.len());
    for wrong in [
        rest(&bytes, &format!("content-range: bytes 0-{last}/{all}"), TAG),
        rest(
            &bytes,
            &format!("content-range: bytes {KEPT}-{last}/*"),
            TAG,
        ),
        rest(
            &bytes,
            &format!("content-range: bytes {KEPT}-{}/{all}", last - 1),
            TAG,
        ),
        rest(&bytes, "x-no: range", TAG),
        rest(&bytes, &range(&bytes), "etag: \"two\""),
        Step::Send(answer(
            206,
            &[TAG, &range(&bytes), "content-encoding: gzip"],
            &bytes[KEPT..],
        )),
        // Fewer and more bytes than the range has.
        Step::Send(answer(206, &[TAG, &range(&bytes)], &bytes[KEPT + 1..])),
        Step::Send(answer(206, &[TAG, &range(&bytes)], &bytes[KEPT - 1..])),
        Step::Send(answer(416, &[], b"")),
    ] {
        let server = Server::plain(vec![broken(&bytes, &[TAG, RANGES]), wrong, whole(&bytes)]);
        let download = client(&server.url(), patient())
            .download(&digest, &Never)
            .unwrap();
        assert_eq!(download.artifact, bytes);
        let seen = server.seen();
        assert!(seen[1].header("range").is_some());
        assert_eq!(
            (seen[2].header("range"), seen[2].header("if-range")),
            (None, None)
        );
    }
}

#[test]
fn without_a_strong_tag_and_ranges_of_bytes_everything_is_asked_for_again() {
    let (bytes, digest) = artifact();
    for headers in [
        &["etag: W/\"one\"", RANGES][..],
        &[RANGES],
        &[TAG],
        &[TAG, "accept-ranges: none"],
        &[TAG, TAG, RANGES],
    ] {
        let server = Server::plain(vec![broken(&bytes, headers), whole(&bytes)]);
        client(&server.url(), patient())
            .download(&digest, &Never)
            .unwrap();
        assert_eq!(server.seen()[1].header("range"), None, "{headers:?}");
    }
}

#[test]
fn a_file_keeps_the_beginning_for_the_next_process_and_is_gone_in_the_end() {
    let (bytes, digest) = artifact();
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("x.tar.gz.part");
    let gone = || Step::Send(Vec::new());
    let steps = vec![
        broken(&bytes, &[TAG, RANGES]),
        gone(),
        gone(),
        rest(&bytes, &range(&bytes), TAG),
    ];
    let server = Server::plain(steps);
    let outcome = keeping(&client(&server.url(), patient()), &digest, &part);
    is_fault(outcome, Fault::Unreachable);
    let kept = fs_err::read(&part).unwrap();
    assert!(kept.ends_with(&bytes[..KEPT]) && kept.len() < KEPT + 1000);
    assert!(!String::from_utf8_lossy(&kept).contains(crate::support::TOKEN));

    let next = client(&server.url(), patient());
    let download = keeping(&next, &digest, &part).unwrap();
    assert_eq!(download.artifact, bytes);
    assert_eq!(
        server.seen()[3].header("range"),
        Some(&*format!("bytes={KEPT}-"))
    );
    assert!(!part.exists());
}

#[test]
fn a_file_of_another_digest_or_beyond_the_limit_is_not_gone_on_with() {
    let (bytes, digest) = artifact();
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("x.part");
    let other = format!("sha256:{}", "0".repeat(64));
    let again = || broken(&bytes, &[TAG, RANGES]);
    let server = Server::plain(vec![
        again(),
        Step::Send(answer(403, &[], b"")),
        whole(&bytes),
        again(),
        Step::Send(answer(401, &[], b"")),
        Step::Send(answer(404, &[], b"")),
    ]);
    let client = client(&server.url(), patient());
    is_status(keeping(&client, &other, &part), 403);
    assert!(part.exists());
    keeping(&client, &digest, &part).unwrap();
    assert_eq!(server.seen()[2].header("range"), None);

    is_status(keeping(&client, &digest, &part), 401);
    assert!(part.exists());
    let limits = plugin_archive::Limits {
        archive_bytes: KEPT as u64 - 1,
        ..plugin_archive::Limits::default()
    };
    let client = client.with_limits(limits);
    is_status(keeping(&client, &digest, &part), 404);
    assert_eq!(server.seen()[5].header("range"), None);
}

#[test]
fn bytes_of_another_digest_are_removed_with_their_file() {
    let (bytes, digest) = artifact();
    let mut other = bytes.clone();
    other[KEPT + 1] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("x.part");
    let server = Server::plain(vec![whole(&other), whole(&bytes)]);
    let client = client(&server.url(), patient());
    let outcome = keeping(&client, &digest, &part);
    assert!(
        matches!(outcome, Err(ClientError::DigestMismatch { .. })),
        "{outcome:?}"
    );
    assert!(!part.exists());
    keeping(&client, &digest, &part).unwrap();
    assert_eq!(server.seen()[1].header("range"), None);
}

#[test]
fn a_file_with_nothing_to_go_on_with_is_removed() {
    let (bytes, digest) = artifact();
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("x.part");
    let steps = vec![
        Step::Send(answer(404, &[], b"")),
        broken(&bytes, &[RANGES]),
        Step::Send(answer(404, &[], b"")),
    ];
    let server = Server::plain(steps);
    let client = client(&server.url(), patient());
    for _ in 0..2 {
        is_status(keeping(&client, &digest, &part), 404);
        assert!(!part.exists());
    }
}

#[test]
fn a_body_over_the_limit_leaves_no_file() {
    let (bytes, digest) = artifact();
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("x.part");
    let limits = plugin_archive::Limits {
        archive_bytes: KEPT as u64,
        ..plugin_archive::Limits::default()
    };
    let head = format!("HTTP/1.1 200 OK\r\n{TAG}\r\n{RANGES}\r\nconnection: close\r\n\r\n");
    let endless = Step::Endless(head.into_bytes(), bytes);
    let server = Server::plain(vec![endless]);
    let client = client(&server.url(), patient()).with_limits(limits);
    is_fault(keeping(&client, &digest, &part), Fault::TooLong);
    assert!(!part.exists());
    server.wait_for_leaving(1);
}

#[test]
fn a_file_is_never_longer_than_the_limit_and_the_head() {
    let (bytes, digest) = artifact();
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("x.part");
    let gone = || Step::Send(Vec::new());
    let wrong = format!(
        "content-range: bytes {KEPT}-{}/{}",
        usize::MAX - 1,
        usize::MAX
    );
    let steps = vec![
        broken(&bytes, &[TAG, RANGES]),
        gone(),
        gone(),
        rest(&bytes, &wrong, TAG),
    ];
    let server = Server::plain(steps);
    let client = client(&server.url(), patient());
    is_fault(keeping(&client, &digest, &part), Fault::Unreachable);
    is_fault(keeping(&client, &digest, &part), Fault::TooLong);
    assert!(!part.exists());
}
