//! What is made of answers.

use std::sync::atomic::{AtomicBool, Ordering};

use backplane_client::{
    Answer, AnswerError, Auth, Body, Cancel, Client, ClientError, Fault, Json, MAX_JSON_BYTES,
    Method, Never, Object, Request, Selection, TransportError,
};

use crate::support::{BASE, Fixed, client};

fn refused(body: &[u8]) -> AnswerError {
    match client(Fixed::bytes(200, body)).catalog(&Never) {
        Err(ClientError::Answer(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn catalog_and_resolve_give_the_object_with_members_that_nobody_knows() {
    let text = br#" {"artifact_digest":"sha256:0","new":{"x":[1,null,1.5]},"": ""} "#;
    let client = client(Fixed::bytes(200, text));
    for object in [
        client.catalog(&Never).unwrap(),
        client.resolve(&Selection::plugin("a"), &Never).unwrap(),
    ] {
        let names: Vec<_> = object.iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["artifact_digest", "new", ""]);
        let written = strict_json::to_line(object.get("new").unwrap());
        assert_eq!(written, br#"{"x":[1,null,1.5]}"#);
    }
}

#[test]
fn a_transport_may_have_decoded_the_object() {
    let decoded = || Object::from_members(vec![("a".to_owned(), Json::Null)]).unwrap();
    let client = client(Fixed::new(move || {
        Ok(Answer::new(200, Body::Object(decoded())))
    }));
    assert_eq!(client.catalog(&Never).unwrap(), decoded());
}

#[test]
fn an_answer_that_is_no_object_is_an_error() {
    for (body, found) in [
        (&b"[]"[..], "an array"),
        (b"null", "null"),
        (b"\"x\"", "a string"),
        (b"1", "an integer"),
        (b"true", "a boolean"),
    ] {
        assert_eq!(refused(body), AnswerError::NotAnObject { found });
    }
    for body in [
        &b""[..],
        b"{",
        b"{}{}",
        b"{'a':1}",
        b"<html>",
        b"\xef\xbb\xbf{}",
        b"{\"\xff\":1}",
    ] {
        assert!(
            matches!(refused(body), AnswerError::NotJson { .. }),
            "{body:?}"
        );
    }
    assert!(matches!(
        refused(br#"{"a":1,"a":1}"#),
        AnswerError::NotJson { .. }
    ));
    assert!(matches!(
        refused(&[b'['; 4096]),
        AnswerError::NotJson { .. }
    ));
}

#[test]
fn an_answer_may_have_4_mib() {
    let of = |length: usize| {
        let mut body = b"{}".to_vec();
        body.resize(length, b' ');
        client(Fixed::bytes(200, &body)).catalog(&Never)
    };
    assert!(of(MAX_JSON_BYTES).is_ok());
    let limit = MAX_JSON_BYTES;
    let over = of(limit + 1);
    assert!(
        matches!(over, Err(ClientError::Answer(AnswerError::TooLong { limit: l })) if l == limit)
    );
}

#[test]
fn m59_a_status_that_is_no_success_is_an_error_without_the_body() {
    for status in [
        0, 100, 199, 300, 301, 304, 400, 401, 403, 404, 410, 429, 500, 503, 599, 999,
    ] {
        let client = client(Fixed::bytes(
            status,
            br#"{"error":"a-secret-of-the-provider"}"#,
        ));
        let error = client.catalog(&Never).unwrap_err();
        assert!(matches!(error, ClientError::HttpStatus { status: s } if s == status));
        assert!(
            !format!("{error} {error:?}").contains("secret"),
            "{error:?}"
        );
    }
    for status in [200, 201, 202, 299] {
        assert!(
            client(Fixed::bytes(status, b"{}")).catalog(&Never).is_ok(),
            "{status}"
        );
    }
}

#[test]
fn m59_a_body_of_10_mb_of_a_failure_is_not_looked_at() {
    let client = client(Fixed::bytes(500, &vec![b'x'; 10_000_000]));
    let error = client.request(Method::Get, "/x", None, &Never).unwrap_err();
    assert_eq!(error.to_string(), "the provider answered with status 500");
}

#[test]
fn no_error_shows_what_the_provider_sent() {
    for body in [
        &br#"{"hunter2":1,"hunter2":2}"#[..],
        br#""hunter2""#,
        b"hunter2",
        br#"{"a":"hunter2}"#,
        br#"{"a":hunter2}"#,
    ] {
        let error = client(Fixed::bytes(200, body)).catalog(&Never).unwrap_err();
        assert!(
            !format!("{error} {error:?} {error:#?}").contains("hunter2"),
            "{error:?}"
        );
    }
    let answer = Answer::new(200, Body::Bytes(b"hunter2".to_vec()));
    assert!(!format!("{answer:?} {:?}", answer.body).contains("hunter2"));
}

#[test]
fn a_transport_that_fails_is_an_error_of_its_kind() {
    let fail = |fault| Fixed::new(move || Err(TransportError::new(fault, "no route")));
    let error = client(fail(Fault::Tls)).catalog(&Never).unwrap_err();
    assert!(matches!(&error, ClientError::Transport(error) if error.fault() == Fault::Tls));
    assert_eq!(error.to_string(), "no route");
    let error = client(fail(Fault::Cancelled)).catalog(&Never).unwrap_err();
    assert!(matches!(error, ClientError::Cancelled), "{error:?}");
}

#[test]
fn who_has_cancelled_sends_nothing_and_gets_nothing() {
    let cancelled = AtomicBool::new(true);
    let before = client(Fixed::bytes(200, b"{}"));
    assert!(matches!(
        before.catalog(&cancelled),
        Err(ClientError::Cancelled)
    ));
    assert_eq!(before.transport().count(), 0);
    // Cancelled while the answer was on its way: it is thrown away.
    let late = std::sync::Arc::new(AtomicBool::new(false));
    let setter = std::sync::Arc::clone(&late);
    let transport = move |_: &Request, cancel: &dyn Cancel| {
        assert!(!cancel.is_cancelled());
        setter.store(true, Ordering::SeqCst);
        Ok(Answer::new(200, Body::Bytes(b"{}".to_vec())))
    };
    let client = Client::new(BASE, Auth::None, Vec::new(), transport).unwrap();
    assert!(matches!(
        client.catalog(&*late),
        Err(ClientError::Cancelled)
    ));
}

#[test]
fn a_call_can_be_carried_out_by_somebody_else() {
    let client = Client::new(BASE, Auth::None, Vec::new(), ()).unwrap();
    let call = client.resolve_call(&Selection::plugin("a")).unwrap();
    assert!(call.request().url().ends_with("/resolve?plugin_id=a"));
    assert_eq!(call.request().answer_limit(), MAX_JSON_BYTES);
    let answer = Ok(Answer::new(200, Body::Bytes(b"{}".to_vec())));
    assert!(call.finish(answer, &Never).unwrap().is_empty());
}
