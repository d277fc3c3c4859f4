//! Redirects that a transport may follow, and those that it may not.

use backplane_client::{
    Auth, Client, Fault, MOST_REDIRECTS, Method, Redirects, Selection, TransportError,
};

fn from(method: Method) -> Redirects {
    let client = Client::new("https://host.example/base", Auth::None, Vec::new(), ()).unwrap();
    let call = client.request_call(method, "/x", None).unwrap();
    Redirects::of(call.request()).unwrap()
}

fn refusal(outcome: Result<String, TransportError>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.fault(), Fault::Redirect);
    assert!(!error.to_string().contains("evil"), "{error}");
    error.to_string()
}

#[test]
fn a_redirect_within_the_origin_is_followed() {
    for (location, next) in [
        ("/elsewhere", "https://host.example/elsewhere"),
        (
            "y?z=1",
            "https://host.example/base/plugin-protocol/v1/y?z=1",
        ),
        ("https://HOST.example:443/a#part", "https://host.example/a"),
    ] {
        for status in [301, 302, 303, 307, 308] {
            let followed = from(Method::Get).follow(status, location);
            assert_eq!(followed.as_deref(), Ok(next), "{status} {location}");
        }
    }
}

#[test]
fn m58_a_redirect_to_another_origin_is_refused() {
    for location in [
        "https://evil.example/",
        "//evil.example/x",
        "\\\\evil.example/x",
        "https://host.example.evil.example/",
        "https://host.example:8443/",
        "http://host.example/",
        "https://evil@other.example/",
        "file:///etc/evil",
        "data:text/plain,evil",
        "javascript:evil",
    ] {
        let says = refusal(from(Method::Get).follow(302, location));
        assert!(says.contains("another origin"), "{location}: {says}");
    }
    for location in [
        "https://evil:pw@host.example/",
        "",
        "https://[evil/",
        &"e".repeat(9000),
    ] {
        let says = refusal(from(Method::Get).follow(302, location));
        assert!(says.contains("no usable URL"), "{location}: {says}");
    }
}

#[test]
fn m58_redirects_in_a_circle_and_without_end_are_refused() {
    let mut circle = from(Method::Get);
    circle.follow(302, "/a").unwrap();
    circle.follow(302, "/b").unwrap();
    assert!(refusal(circle.follow(302, "/a#other")).contains("circle"));
    let mut itself = from(Method::Get);
    assert!(refusal(itself.follow(302, "x")).contains("circle"));
    let mut endless = from(Method::Get);
    for hop in 0..MOST_REDIRECTS {
        endless.follow(307, &format!("/{hop}")).unwrap();
    }
    assert!(refusal(endless.follow(307, "/more")).contains("too often"));
}

#[test]
fn m58_nothing_but_a_get_is_redirected() {
    for method in [Method::Post, Method::Put, Method::Patch, Method::Delete] {
        refusal(from(method).follow(307, "/a"));
    }
    for status in [200, 300, 304, 305, 306, 399, 404] {
        refusal(from(Method::Get).follow(status, "/a"));
    }
}

#[test]
fn a_query_is_not_carried_to_the_next_place() {
    let client = Client::new("https://host.example", Auth::None, Vec::new(), ()).unwrap();
    let call = client.resolve_call(&Selection::plugin("a")).unwrap();
    let next = Redirects::of(call.request()).unwrap().follow(308, "/r");
    assert_eq!(next.as_deref(), Ok("https://host.example/r"));
}
