//! Tokens and values of headers show up in no text.

use backplane_client::{Auth, Client, Header, Method, Never, Token};

use crate::support::{BASE, Fixed};

#[test]
fn no_debug_and_no_error_shows_a_token_or_the_value_of_a_header() {
    let token = Token::new("hunter2").unwrap();
    let extra = vec![Header::new("x-key", "hunter2").unwrap()];
    let mut shown = format!("{token:?} {extra:?}");
    let auth = Auth::Token(token);
    shown += &format!("{auth:?}");
    let client = Client::new(BASE, auth, extra, Fixed::bytes(401, b"hunter2")).unwrap();
    shown += &format!("{client:?} {client:#?}");
    let call = client.request_call(Method::Get, "/x", None).unwrap();
    shown += &format!("{call:?} {:#?}", call.request());
    let error = client.catalog(&Never).unwrap_err();
    shown += &format!("{error} {error:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("authorization"), "names are shown: {shown}");
    for refused in ["hunter2 hunter2", "hunter2\r\n"] {
        let error = Token::new(refused).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
    let error = Header::new("x-key", "hunter2\n").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn what_a_caller_supplies_is_marked_so_that_no_redirect_carries_it_away() {
    let auth = Auth::Token(Token::new("t").unwrap());
    let extra = vec![Header::new("x-key", "k").unwrap()];
    let client = Client::new(BASE, auth, extra, ()).unwrap();
    let call = client.request_call(Method::Get, "/x", None).unwrap();
    let marked = |header: &Header| (header.name().to_owned(), header.is_credential());
    let marks: Vec<_> = call.request().headers().iter().map(marked).collect();
    assert_eq!(
        marks,
        [
            ("accept".to_owned(), false),
            ("authorization".to_owned(), true),
            ("x-key".to_owned(), true)
        ]
    );
}
