//! Why a change was refused: told to who asks, in a form that carries nothing else.

use backplane_client::{
    Answer, Auth, Body, Call, Client, ClientError, Header, MAX_REFUSAL_BYTES, Method, Never,
    Object, Refusal, RefusalCode, Token,
};

use crate::support::{BASE, Fixed, client};

fn body(code: &str, message: &str) -> String {
    format!(
        r#"{{"protocol_version":"1","error":{{"code":"{code}","message":"{message}","retryable":false}}}}"#
    )
}

fn call<T>(client: &Client<T>, method: Method) -> Call<Object> {
    client.request_call(method, "/releases", None).unwrap()
}

fn answered(call: Call<Object>, status: u16, body: &[u8]) -> ClientError {
    let answer = Answer::new(status, Body::Bytes(body.to_vec()));
    call.finish(Ok(answer), &Never).unwrap_err()
}

fn refusal(status: u16, body: &[u8]) -> Option<Refusal> {
    let client = client(Fixed::bytes(200, b"{}"));
    match answered(call(&client, Method::Post).asking_why(), status, body) {
        ClientError::Refused(refusal) => Some(refusal),
        ClientError::HttpStatus { status: same } if same == status => None,
        other => panic!("{other}"),
    }
}

#[test]
fn nobody_is_told_who_did_not_ask_and_no_read_can_ask() {
    let client = client(Fixed::bytes(200, b"{}"));
    let said = body("conflict", "no");
    let error = answered(call(&client, Method::Post), 409, said.as_bytes());
    assert!(
        matches!(error, ClientError::HttpStatus { status: 409 }),
        "{error}"
    );
    let read = call(&client, Method::Get).asking_why();
    assert_eq!(read.request().refusal_limit(), 0);
    let error = answered(read, 409, said.as_bytes());
    assert!(
        matches!(error, ClientError::HttpStatus { status: 409 }),
        "{error}"
    );
    assert_eq!(call(&client, Method::Put).request().refusal_limit(), 0);
}

#[test]
fn a_change_that_asks_is_told_the_code_in_our_words_and_the_sentence_apart() {
    let said = body("invalid_package", "entry `a/b`: \\u001b[31mtoo \\u202elong");
    let said = refusal(422, said.as_bytes()).unwrap();
    assert_eq!(
        (said.status(), said.code()),
        (422, RefusalCode::InvalidPackage)
    );
    assert_eq!(
        said.sentence(),
        Some("entry `a/b`: \\u{1b}[31mtoo \\u{202e}long")
    );
    let error = ClientError::Refused(said);
    assert_eq!(
        error.to_string(),
        "the provider refused it: the artifact holds no valid package (`invalid_package`, status 422)"
    );
    assert!(!format!("{error:?} {error:#?} {error}").contains("entry"));
}

#[test]
fn every_code_is_read_and_no_other() {
    for code in RefusalCode::ALL {
        let said = refusal(400, body(code.as_str(), "x").as_bytes()).unwrap();
        assert_eq!(said.code(), *code);
    }
    for code in ["", "Conflict", "conflict ", "teapot"] {
        assert_eq!(refusal(409, body(code, "x").as_bytes()), None, "{code}");
    }
}

#[test]
fn what_is_not_the_documented_object_says_nothing() {
    for other in [
        "",
        "<html>conflict</html>",
        "[]",
        r#"{"error":{"code":"conflict","message":"x"}}"#,
        r#"{"protocol_version":"2","error":{"code":"conflict","message":"x"}}"#,
        r#"{"protocol_version":"1","error":"conflict"}"#,
        r#"{"protocol_version":"1","error":{"code":"conflict"}}"#,
        r#"{"protocol_version":"1","error":{"code":"conflict","message":7}}"#,
        r#"{"protocol_version":"1","error":{"code":"conflict","code":"forbidden","message":"x"}}"#,
        r#"{"protocol_version":"1","error":{"code":"conflict","message":"x"}} x"#,
    ] {
        assert_eq!(refusal(409, other.as_bytes()), None, "{other}");
    }
    let later =
        r#"{"protocol_version":"1","error":{"code":"conflict","message":"x","new":[]},"trace":1}"#;
    assert!(refusal(409, later.as_bytes()).is_some());
    assert_eq!(refusal(302, body("conflict", "x").as_bytes()), None);
}

#[test]
fn length_is_bounded_before_and_after_reading() {
    let padded = |n: usize| body("conflict", &"x".repeat(n - body("conflict", "").len()));
    let said = refusal(409, padded(MAX_REFUSAL_BYTES).as_bytes()).unwrap();
    assert_eq!(said.sentence().map(str::len), Some(1024));
    assert_eq!(refusal(409, padded(MAX_REFUSAL_BYTES + 1).as_bytes()), None);
    assert_eq!(
        refusal(409, body("conflict", "").as_bytes())
            .unwrap()
            .sentence(),
        None
    );
}

#[test]
fn a_sentence_that_repeats_a_credential_is_dropped() {
    let auth = Auth::Token(Token::new("hunter2").unwrap());
    let extra = vec![Header::new("x-key", "swordfish").unwrap()];
    let client = Client::new(BASE, auth, extra, ()).unwrap();
    for (message, shown) in [
        ("you sent Bearer hunter2", false),
        ("hunter2?", false),
        ("key swordfish", false),
        ("a Bearer token is needed", true),
    ] {
        let asked = call(&client, Method::Put).asking_why();
        let error = answered(asked, 401, body("unauthorized", message).as_bytes());
        let ClientError::Refused(said) = error else {
            panic!("{error}");
        };
        assert_eq!(said.sentence().is_some(), shown, "{message}");
    }
}
