//! Base URLs and paths: what passes, what is refused and for which rule.

use proptest::prelude::*;

use super::*;

fn base(text: &str) -> Result<String, AddressError> {
    text.parse::<BaseUrl>().map(|base| base.to_string())
}

fn path(text: &str) -> Result<String, PathError> {
    text.parse::<RequestPath>().map(|path| path.encoded)
}

#[test]
fn a_base_url_has_scheme_host_and_perhaps_a_path() {
    for (given, shown) in [
        ("https://backplane.example", "https://backplane.example"),
        ("https://backplane.example/", "https://backplane.example"),
        (
            "https://Backplane.EXAMPLE:443/",
            "https://backplane.example",
        ),
        (
            "https://backplane.example/a/b//",
            "https://backplane.example/a/b",
        ),
        ("http://[::1]:4000/", "http://[::1]:4000"),
    ] {
        assert_eq!(base(given).as_deref(), Ok(shown), "{given}");
    }
}

#[test]
fn a_base_url_holds_no_password_query_or_fragment() {
    for secret in [
        "https://me:hunter2@host.example/",
        "https://me@host.example",
        "https://@host.example",
        "https:/:@host.example",
    ] {
        assert_eq!(base(secret), Err(AddressError::Password), "{secret}");
        let shown = base(secret).unwrap_err().to_string();
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    assert_eq!(base("https://host.example?"), Err(AddressError::Query));
    assert_eq!(base("https://host.example/#"), Err(AddressError::Fragment));
    for scheme in [
        "file:///etc",
        "ftp://host.example",
        "data:,x",
        "wss://host.example",
    ] {
        assert_eq!(base(scheme), Err(AddressError::Scheme), "{scheme}");
    }
    for broken in ["", "host.example", "https://", "https://[::1", "/x"] {
        assert!(
            matches!(base(broken), Err(AddressError::Syntax { .. })),
            "{broken}"
        );
    }
    for mended in [
        " https://h.example",
        "https://h.exa\nmple",
        "https:\\\\h.example",
        "https://h.example/a\tb",
    ] {
        assert_eq!(base(mended), Err(AddressError::Character), "{mended:?}");
    }
    // An `@` of the path is nobody's password.
    assert!(base("https://host.example/@scope").is_ok());
}

#[test]
fn a_base_url_may_be_as_long_as_a_url() {
    let fits = format!("https://h.example/{}", "x".repeat(LONGEST_URL - 18));
    assert_eq!(fits.len(), LONGEST_URL);
    assert!(base(&fits).is_ok());
    let limit = LONGEST_URL;
    assert_eq!(
        base(&format!("{fits}x")),
        Err(AddressError::TooLong { limit })
    );
}

#[test]
fn a_path_starts_with_a_slash_and_stays_under_the_prefix() {
    for (given, encoded) in [
        ("/", "/"),
        ("/installations", "/installations"),
        ("/installations/", "/installations/"),
        ("/a.b/..c/...", "/a.b/..c/..."),
        ("/a/sha256:0f", "/a/sha256:0f"),
        ("/a b+c", "/a%20b+c"),
        ("/é/🦀", "/%C3%A9/%F0%9F%A6%80"),
        ("/%25%20%7E%3f", "/%25%20%7E%3f"),
        ("/[a]{b}|^`\"<>", "/%5Ba%5D%7Bb%7D%7C%5E%60%22%3C%3E"),
    ] {
        assert_eq!(path(given).as_deref(), Ok(encoded), "{given}");
    }
}

#[test]
fn a_path_without_a_slash_with_traversal_query_or_origin_is_refused() {
    for (given, rule) in [
        ("", PathError::NotAbsolute),
        ("installations", PathError::NotAbsolute),
        ("https://evil.example/x", PathError::NotAbsolute),
        ("@evil.example/x", PathError::NotAbsolute),
        ("//evil.example/x", PathError::EmptySegment),
        ("/a//b", PathError::EmptySegment),
        ("/..", PathError::Traversal),
        ("/.", PathError::Traversal),
        ("/a/../b", PathError::Traversal),
        ("/a/./b", PathError::Traversal),
        ("/a/%2e%2E/b", PathError::Traversal),
        ("/a/.%2e/b", PathError::Traversal),
        ("/a%2e", PathError::Traversal),
        ("/a%2Fb", PathError::EncodedSlash),
        ("/a%2f..%2fb", PathError::EncodedSlash),
        ("/a\\b", PathError::Backslash),
        ("/\\evil.example", PathError::Backslash),
        ("/a%5Cb", PathError::Backslash),
        ("/a?b", PathError::Query),
        ("/a?", PathError::Query),
        ("/a#b", PathError::Fragment),
        ("/a%", PathError::Percent),
        ("/a%4", PathError::Percent),
        ("/a%4g", PathError::Percent),
        ("/a%é", PathError::Percent),
        ("/a\nb", PathError::Control),
        ("/a\tb", PathError::Control),
        ("/a\u{85}b", PathError::Control),
        ("/a%0d%0Ab", PathError::Control),
        ("/a%00", PathError::Control),
        ("/a%7f", PathError::Control),
    ] {
        assert_eq!(path(given), Err(rule), "{given:?}");
    }
}

#[test]
fn a_segment_carries_an_id_that_no_server_could_take_for_structure() {
    assert_eq!(
        RequestPath::segment("100% sure?#1").as_deref(),
        Ok("100%25 sure%3F%231")
    );
    for (id, rule) in [
        ("", PathError::EmptySegment),
        ("..", PathError::Traversal),
        ("a/b", PathError::EncodedSlash),
        ("a\\b", PathError::Backslash),
        ("a\nb", PathError::Control),
    ] {
        assert_eq!(RequestPath::segment(id), Err(rule), "{id:?}");
    }
}

/// Text with many of the characters that URLs give a meaning to.
fn awkward() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("/".to_owned()),
        Just("..".to_owned()),
        Just("%2e".to_owned()),
        Just("//h.example".to_owned()),
        "[%+ ?#&=:@\\\\.;,~a-c\u{e9}\u{202e}\u{1f980}]{0,4}",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_path_that_passes_stays_on_the_origin_and_under_the_prefix(rest in awkward()) {
        let base: BaseUrl = "https://host.example/base".parse().unwrap();
        if let Ok(path) = format!("/{rest}").parse::<RequestPath>() {
            let whole = base.endpoint(path.as_str()).unwrap();
            let url = Url::parse(&whole).unwrap();
            prop_assert_eq!(url.as_str(), &whole);
            prop_assert_eq!(url.host_str(), Some("host.example"));
            prop_assert!(url.path().starts_with("/base/plugin-protocol/v1/"));
            prop_assert!(url.query().is_none() && url.fragment().is_none());
            let decoded = url.path().to_ascii_lowercase();
            prop_assert!(!decoded.contains("%2e") && !decoded.contains("%2f"));
            prop_assert_eq!(path.as_str().parse::<RequestPath>(), Ok(path.clone()));
        }
    }

    #[test]
    fn any_id_that_fits_a_segment_survives(id in awkward()) {
        if let Ok(segment) = RequestPath::segment(&id) {
            let path: RequestPath = format!("/x/{segment}").parse().unwrap();
            let last = path.as_str().rsplit('/').next().unwrap();
            let pair = format!("a={}", last.replace('+', "%2B").replace('&', "%26"));
            let (_, back) = url::form_urlencoded::parse(pair.as_bytes()).next().unwrap();
            prop_assert_eq!(back, id);
        }
    }
}
