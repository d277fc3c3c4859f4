//! Artifacts: the digest first, then everything else.

use agent_plugin::{Code, MANIFEST, PLUGIN_SCHEMA};
use backplane_client::{
    Answer, AnswerError, Auth, Body, Client, ClientError, Method, Never, Object,
};
use plugin_archive::{Files, Limits, Modes, digest, pack};

use crate::support::{BASE, Fixed, client, pair};

fn files() -> Files {
    let manifest = format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"example","new":1}}"#);
    Files::from([
        (MANIFEST.to_owned(), manifest.into_bytes()),
        ("bin/run".to_owned(), b"#!/bin/sh\n".to_vec()),
    ])
}

fn packed(files: &Files) -> Vec<u8> {
    let modes = Modes::from([("bin/run".to_owned(), 0o755)]);
    pack(files, &modes, &Limits::default()).unwrap()
}

#[test]
fn a_download_gives_artifact_digest_files_modes_and_package() {
    let artifact = packed(&files());
    let wanted = digest(&artifact).to_string();
    let client = client(Fixed::bytes(200, &artifact));
    let download = client.download(&wanted, &Never).unwrap();
    assert_eq!(download.artifact, artifact);
    assert_eq!(download.artifact_digest.to_string(), wanted);
    assert_eq!(download.files(), &files());
    assert_eq!(download.modes["bin/run"], 0o755);
    assert_eq!(download.modes[MANIFEST], 0o644);
    assert_eq!(download.package.name(), "example");
    assert!(!format!("{download:?}").contains("/bin/sh"));
    let sent = client.transport().last();
    assert_eq!(sent.method, Method::Get);
    assert_eq!(
        sent.url,
        format!("{BASE}/plugin-protocol/v1/artifacts/{wanted}")
    );
    let (name, accept) = sent.headers.first().unwrap();
    assert_eq!(name, "accept");
    assert!(accept.starts_with("application/x-tar+gzip"), "{accept}");
}

#[test]
fn m56_a_digest_in_any_other_form_is_refused_before_anything_is_sent() {
    let hex = "0123456789abcdef".repeat(4);
    let client = client(Fixed::bytes(200, b""));
    for form in [
        String::new(),
        hex.clone(),
        format!("sha256:{}", hex.to_uppercase()),
        format!("sha256:{}", &hex[1..]),
        format!("sha256:{hex}0"),
        format!("SHA256:{hex}"),
        format!("blake3:{hex}"),
        format!("sha512:{hex}{hex}"),
        format!("sha256:../{hex}"),
        format!("sha256:{hex}/../x"),
        format!("sha256:{hex}?x"),
        format!(" sha256:{hex}"),
        format!("sha256:{hex}\n"),
        format!("sha256%3A{hex}"),
    ] {
        let refused = client.download(&form, &Never);
        assert!(matches!(refused, Err(ClientError::Digest(_))), "{form:?}");
    }
    assert_eq!(client.transport().count(), 0);
}

#[test]
fn m57_bytes_with_another_digest_are_never_unpacked_or_loaded() {
    // No archive and no package: whichever were tried would give another error.
    let hostile = b"<!doctype html><title>hunter2</title>".to_vec();
    let wanted = digest(&packed(&files()));
    let mut changed = packed(&files());
    *changed.last_mut().unwrap() ^= 1;
    let mut longer = packed(&files());
    longer.push(0);
    let mut shorter = packed(&files());
    shorter.pop();
    for body in [hostile, changed, longer, shorter, Vec::new()] {
        let error = client(Fixed::bytes(200, &body)).download(&wanted.to_string(), &Never);
        let error = error.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        match error {
            ClientError::DigestMismatch { expected, actual } => {
                assert_eq!(expected, wanted);
                assert_eq!(actual, digest(&body));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn m57_a_part_of_an_artifact_and_every_other_status_is_refused() {
    let artifact = packed(&files());
    let wanted = digest(&artifact).to_string();
    for status in [201, 204, 206, 301, 304, 401, 403, 404, 410, 429, 500] {
        let refused = client(Fixed::bytes(status, &artifact)).download(&wanted, &Never);
        assert!(
            matches!(refused, Err(ClientError::HttpStatus { status: s }) if s == status),
            "{status}"
        );
    }
}

#[test]
fn m57_an_artifact_may_be_as_long_as_the_limit() {
    let artifact = packed(&files());
    let wanted = digest(&artifact).to_string();
    let with = |bytes: usize| {
        let limits = Limits {
            archive_bytes: bytes.try_into().unwrap(),
            ..Limits::default()
        };
        let client = client(Fixed::bytes(200, &artifact)).with_limits(limits);
        let asked = client
            .download_call(&wanted)
            .unwrap()
            .request()
            .answer_limit();
        assert_eq!(asked, bytes, "the transport is told");
        client.download(&wanted, &Never)
    };
    assert!(with(artifact.len()).is_ok());
    let limit = artifact.len() - 1;
    let over = with(limit);
    assert!(
        matches!(over, Err(ClientError::Answer(AnswerError::TooLong { limit: l })) if l == limit)
    );
}

#[test]
fn a_decoded_object_is_no_artifact() {
    let object = || Ok(Answer::new(200, Body::Object(Object::default())));
    let wanted = digest(b"").to_string();
    let refused = client(Fixed::new(object)).download(&wanted, &Never);
    assert!(matches!(
        refused,
        Err(ClientError::Answer(AnswerError::NotBytes))
    ));
}

#[test]
fn an_artifact_that_is_no_archive_is_refused_by_its_rule() {
    let bytes = b"not gzip";
    let wanted = digest(bytes).to_string();
    let refused = client(Fixed::bytes(200, bytes)).download(&wanted, &Never);
    assert!(
        matches!(refused, Err(ClientError::Archive(_))),
        "{refused:?}"
    );
}

#[test]
fn an_archive_without_a_valid_package_is_refused_with_what_was_found() {
    let mut files = files();
    files.remove(MANIFEST);
    let artifact = packed(&files);
    let wanted = digest(&artifact).to_string();
    match client(Fixed::bytes(200, &artifact)).download(&wanted, &Never) {
        Err(ClientError::Rejected { found }) => {
            assert!(
                found
                    .iter()
                    .any(|found| found.code == Code::ManifestMissing),
                "{found:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_download_carries_what_authorizes_it() {
    let artifact = packed(&files());
    let wanted = digest(&artifact).to_string();
    let token = backplane_client::Token::new("t").unwrap();
    let transport = Fixed::bytes(200, &artifact);
    let client = Client::new(BASE, Auth::Token(token), Vec::new(), transport).unwrap();
    client.download(&wanted, &Never).unwrap();
    let sent = client.transport().last();
    assert_eq!(
        sent.headers.last(),
        Some(&pair("authorization", "Bearer t"))
    );
    assert_eq!(sent.body, None);
}
