//! M58: redirects.

use backplane_client::{ClientError, Fault, Json, Method, Never, Object};

use crate::server::{Server, Step};
use crate::support::{TOKEN, answer, artifact, client, get, is_fault, ok, patient};

fn to(location: &str) -> Step {
    Step::Send(answer(302, &[&format!("location: {location}")], b""))
}

#[test]
fn m58_a_redirect_within_the_origin_is_followed_with_the_token() {
    let (bytes, digest) = artifact();
    let steps = vec![to("/elsewhere"), Step::Send(answer(200, &[], &bytes))];
    let server = Server::plain(steps);
    client(&server.url(), patient())
        .download(&digest, &Never)
        .unwrap();
    let seen = server.seen();
    assert_eq!(seen[1].line(), "GET /elsewhere HTTP/1.1");
    assert_eq!(
        seen[1].header("authorization"),
        Some(&*format!("Bearer {TOKEN}"))
    );
    assert_eq!(seen[1].header("referer"), None);
}

#[test]
fn m58_a_redirect_to_another_origin_is_never_asked() {
    let other = Server::plain(vec![Step::Send(ok())]);
    let port = other.address.port();
    for location in [
        other.url(),
        format!("https://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("//127.0.0.1:{port}/"),
        "file:///etc/passwd".to_owned(),
        "data:application/json,{}".to_owned(),
        "http://".to_owned(),
        String::new(),
    ] {
        let server = Server::plain(vec![to(&location)]);
        is_fault(get(&client(&server.url(), patient())), Fault::Redirect);
        assert_eq!(server.connections(), 1, "{location}");
    }
    assert_eq!(other.connections(), 0);
}

#[test]
fn m58_a_redirect_from_https_to_http_is_refused() {
    let authority = crate::support::Authority::new();
    let plain = Server::plain(vec![Step::Send(ok())]);
    let down = format!("http://localhost:{}/", plain.address.port());
    let server = Server::tls(vec![to(&down)], authority.acceptor("localhost"));
    let options = crate::trust::trusting(&authority);
    let url = format!("https://localhost:{}", server.address.port());
    is_fault(get(&client(&url, options)), Fault::Redirect);
    assert_eq!((server.seen().len(), plain.connections()), (1, 0));
}

#[test]
fn m58_a_circle_and_a_chain_without_end_are_refused() {
    let circle = Server::plain(vec![to("/a"), to("/b"), to("/a"), Step::Send(ok())]);
    is_fault(get(&client(&circle.url(), patient())), Fault::Redirect);
    assert_eq!(circle.connections(), 3);
    let chain = (0..9).map(|n| to(&format!("/{n}"))).collect();
    let chain = Server::plain(chain);
    is_fault(get(&client(&chain.url(), patient())), Fault::Redirect);
    assert_eq!(chain.connections(), 1 + backplane_client::MOST_REDIRECTS);
}

#[test]
fn m58_two_places_are_none() {
    let twice = answer(302, &["location: /a", "location: /b"], b"");
    let server = Server::plain(vec![Step::Send(twice), Step::Send(ok())]);
    is_fault(get(&client(&server.url(), patient())), Fault::Redirect);
    assert_eq!(server.connections(), 1);
}

#[test]
fn m58_nothing_but_a_get_is_redirected() {
    let body = Json::Object(Object::default());
    for status in [301, 302, 303, 307, 308] {
        let step = Step::Send(answer(status, &["location: /y"], b""));
        let server = Server::plain(vec![step, Step::Send(ok())]);
        let client = client(&server.url(), patient());
        let outcome = client.request(Method::Post, "/x", Some(&body), &Never);
        is_fault(outcome, Fault::Redirect);
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn a_status_that_is_no_redirect_is_not_followed() {
    let server = Server::plain(vec![Step::Send(answer(300, &["location: /y"], b""))]);
    let outcome = get(&client(&server.url(), patient()));
    assert!(
        matches!(outcome, Err(ClientError::HttpStatus { status: 300 })),
        "{outcome:?}"
    );
}
