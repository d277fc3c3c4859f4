//! What is sent: endpoints, queries, headers and bodies.

use backplane_client::{
    Auth, CatalogPage, Client, ClientError, Header, HeaderError, InstallationsPage, Json,
    MAX_JSON_BYTES, Method, Never, Object, PathError, ReleasesPage, Selection, SelectionError,
    Token,
};
use proptest::prelude::*;

use crate::support::{BASE, Fixed, client, pair};

fn header(name: &str, value: &str) -> Header {
    Header::new(name, value).unwrap()
}

#[test]
fn the_catalog_is_one_get_under_the_prefix() {
    let client = client(Fixed::bytes(200, b"{}"));
    client.catalog(&Never).unwrap();
    let sent = client.transport().last();
    assert_eq!(sent.method, Method::Get);
    assert_eq!(sent.url, format!("{BASE}/plugin-protocol/v1/catalog"));
    assert_eq!(sent.headers, [pair("accept", "application/json")]);
    assert_eq!(sent.body, None);
    assert_eq!(client.transport().count(), 1);
}

#[test]
fn a_page_of_the_catalog_is_asked_for_by_cursor_limit_and_search() {
    let client = client(Fixed::bytes(200, b"{}"));
    let page = CatalogPage {
        cursor: Some("a+b/c==".to_owned()),
        limit: Some(20),
        search: Some("two words".to_owned()),
    };
    client.catalog_page(&page, &Never).unwrap();
    let wanted = "/plugin-protocol/v1/catalog?cursor=a%2Bb%2Fc%3D%3D&limit=20&q=two+words";
    assert_eq!(client.transport().last().url, format!("{BASE}{wanted}"));
}

#[test]
fn resolving_names_plugin_release_and_channel_in_the_query() {
    let client = client(Fixed::bytes(200, b"{}"));
    for (selection, query) in [
        (Selection::plugin("demo"), "plugin_id=demo"),
        (Selection::release("r-0f"), "release_id=r-0f"),
        (Selection::channel("stable"), "channel=stable"),
        (
            Selection::plugin("acme/a b+c").with_channel("stable"),
            "plugin_id=acme%2Fa+b%2Bc&channel=stable",
        ),
        (
            Selection::channel("c").with_release("r").with_plugin("é%"),
            "plugin_id=%C3%A9%25&release_id=r&channel=c",
        ),
    ] {
        client.resolve(&selection, &Never).unwrap();
        let sent = client.transport().last();
        assert_eq!(
            sent.url,
            format!("{BASE}/plugin-protocol/v1/resolve?{query}")
        );
        assert_eq!(sent.method, Method::Get);
    }
}

#[test]
fn nothing_to_resolve_and_empty_values_are_refused_before_anything_is_sent() {
    let client = client(Fixed::bytes(200, b"{}"));
    let says = |selection: &Selection| match client.resolve(selection, &Never) {
        Err(ClientError::Selection(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(says(&Selection::default()), SelectionError::Nothing);
    let name = "channel";
    let empty = Selection::plugin("a").with_channel("");
    assert_eq!(says(&empty), SelectionError::Empty { name });
    let limit = backplane_client::LONGEST_URL;
    let long = Selection::plugin("é".repeat(limit / 4));
    assert_eq!(says(&long), SelectionError::TooLong { limit });
    assert_eq!(client.transport().count(), 0);
}

#[test]
fn a_base_url_with_a_path_keeps_it() {
    let transport = Fixed::bytes(200, b"{}");
    let client = Client::new("https://h.example/one/", Auth::None, Vec::new(), transport);
    let client = client.unwrap();
    client.catalog(&Never).unwrap();
    let wanted = "https://h.example/one/plugin-protocol/v1/catalog";
    assert_eq!(client.transport().last().url, wanted);
}

#[test]
fn a_request_encodes_its_body_as_json_and_says_so() {
    let client = client(Fixed::bytes(201, br#"{"ok":true}"#));
    let members = vec![("name".to_owned(), Json::Text("é\"".to_owned()))];
    let body = Json::Object(Object::from_members(members).unwrap());
    let answer = client.request(Method::Post, "/installations", Some(&body), &Never);
    assert_eq!(answer.unwrap().get("ok"), Some(&Json::Bool(true)));
    let sent = client.transport().last();
    assert_eq!(sent.method, Method::Post);
    assert_eq!(sent.url, format!("{BASE}/plugin-protocol/v1/installations"));
    assert_eq!(
        sent.body.as_deref(),
        Some("{\"name\":\"é\\\"\"}".as_bytes())
    );
    let json = "application/json";
    assert_eq!(
        sent.headers,
        [pair("accept", json), pair("content-type", json)]
    );
    client
        .request(Method::Get, "/installations/1", None, &Never)
        .unwrap();
    let sent = client.transport().last();
    assert_eq!(
        (sent.body, sent.headers),
        (None, vec![pair("accept", json)])
    );
}

#[test]
fn a_path_with_traversal_a_query_or_another_origin_is_never_sent() {
    let client = client(Fixed::bytes(200, b"{}"));
    for (path, rule) in [
        ("installations", PathError::NotAbsolute),
        ("/../../admin", PathError::Traversal),
        ("/a/%2E%2e/b", PathError::Traversal),
        ("/a?b=c", PathError::Query),
        ("//evil.example/", PathError::EmptySegment),
        ("https://evil.example/", PathError::NotAbsolute),
        ("/\\evil.example", PathError::Backslash),
    ] {
        match client.request(Method::Get, path, None, &Never) {
            Err(ClientError::Path(error)) => assert_eq!(error, rule, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
    assert_eq!(client.transport().count(), 0);
}

#[test]
fn a_body_may_have_4_mib() {
    let client = client(Fixed::bytes(200, b"{}"));
    let send = |length: usize| {
        let body = Json::Text("x".repeat(length - 2));
        client.request(Method::Put, "/x", Some(&body), &Never)
    };
    assert!(send(MAX_JSON_BYTES).is_ok());
    assert!(matches!(
        send(MAX_JSON_BYTES + 1),
        Err(ClientError::BodyTooLong { limit, actual }) if actual == limit + 1
    ));
    assert_eq!(client.transport().count(), 1);
}

#[test]
fn a_token_and_extra_pairs_are_sent_with_every_request() {
    let auth = Auth::Token(Token::new("s3cret~token").unwrap());
    let extra = vec![header("X-Trace", "one two")];
    let client = Client::new(BASE, auth, extra, Fixed::bytes(200, b"{}")).unwrap();
    client.catalog(&Never).unwrap();
    client.request(Method::Get, "/x", None, &Never).unwrap();
    let wanted = [
        pair("accept", "application/json"),
        pair("authorization", "Bearer s3cret~token"),
        pair("x-trace", "one two"),
    ];
    assert_eq!(client.transport().last().headers, wanted);
}

#[test]
fn a_provider_of_headers_is_asked_before_each_request() {
    let calls = std::sync::atomic::AtomicU32::new(0);
    let auth = Auth::provider(move || {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(vec![Header::new(
            "authorization",
            format!("Custom {call}"),
        )?])
    });
    let client = Client::new(BASE, auth, Vec::new(), Fixed::bytes(200, b"{}")).unwrap();
    for call in 0..3 {
        client.catalog(&Never).unwrap();
        let sent = client.transport().last().headers;
        assert_eq!(
            sent.last(),
            Some(&pair("authorization", &format!("Custom {call}")))
        );
    }
}

#[test]
fn a_provider_that_fails_sends_nothing() {
    let auth = Auth::provider(|| Err("the token file is gone".into()));
    let client = Client::new(BASE, auth, Vec::new(), Fixed::bytes(200, b"{}")).unwrap();
    let error = client.catalog(&Never).unwrap_err();
    assert!(matches!(error, ClientError::Provider(_)), "{error:?}");
    assert_eq!(client.transport().count(), 0);
}

#[test]
fn headers_that_could_split_or_reframe_a_request_are_refused() {
    for value in ["a\r\nb: c", "a\nb", "a\0", "\u{7f}"] {
        assert!(
            matches!(Header::new("x", value), Err(HeaderError::Value { .. })),
            "{value:?}"
        );
    }
    for name in ["", "a b", "a:", "a\r\n", "é"] {
        assert_eq!(
            Header::new(name, "v").unwrap_err(),
            HeaderError::Name,
            "{name:?}"
        );
    }
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Accept",
        "range",
    ] {
        let refused = Header::new(name, "v");
        assert!(
            matches!(refused, Err(HeaderError::Reserved { .. })),
            "{name}"
        );
    }
    for token in ["", "a b", "a\r\nx: y", "é", &"x".repeat(8 * 1024)] {
        assert!(matches!(Token::new(token), Err(HeaderError::Token { .. })));
    }
    assert!(Header::new("x", "tab\tspace é").is_ok());
}

#[test]
fn no_header_is_sent_twice() {
    let twice = vec![header("X-A", "1"), header("x-a", "2")];
    let refused = Client::new(BASE, Auth::None, twice, Fixed::bytes(200, b"{}"));
    assert!(
        matches!(refused, Err(ClientError::Header(HeaderError::Twice { name })) if name == "x-a")
    );
    let auth = Auth::Token(Token::new("t").unwrap());
    let extra = vec![header("Authorization", "Basic x")];
    let client = Client::new(BASE, auth, extra, Fixed::bytes(200, b"{}")).unwrap();
    let refused = client.catalog(&Never);
    assert!(matches!(
        refused,
        Err(ClientError::Header(HeaderError::Twice { .. }))
    ));
    let many = |n: usize| (0..n).map(|i| header(&format!("x-{i}"), "")).collect();
    assert!(Client::new(BASE, Auth::None, many(64), ()).is_ok());
    assert!(Client::new(BASE, Auth::None, many(65), ()).is_err());
}

proptest! {
    #[test]
    fn any_id_survives_the_query(plugin in "\\PC{1,40}|[/ +%&=#?\\\\.]{1,9}", channel in ".{1,20}") {
        let client = client(Fixed::bytes(200, b"{}"));
        let selection = Selection::plugin(&plugin).with_channel(&channel);
        client.resolve(&selection, &Never).unwrap();
        let url = url::Url::parse(&client.transport().last().url).unwrap();
        prop_assert_eq!(url.path(), "/plugin-protocol/v1/resolve");
        let pairs: Vec<_> = url.query_pairs().into_owned().collect();
        prop_assert_eq!(pairs, vec![pair("plugin_id", &plugin), pair("channel", &channel)]);
        prop_assert_eq!(url.fragment(), None);
    }
}

#[test]
fn lists_of_releases_and_installations_take_pages_and_filters() {
    let client = client(Fixed::bytes(200, b"{}"));
    let url = |query: &str| format!("{BASE}/plugin-protocol/v1{query}");
    let page = ReleasesPage {
        cursor: Some("a b".to_owned()),
        limit: Some(5),
    };
    client.releases("acme.x", &page, &Never).unwrap();
    assert_eq!(
        client.transport().last().url,
        url("/plugins/acme.x/releases?cursor=a+b&limit=5")
    );
    client
        .releases("ä?", &ReleasesPage::default(), &Never)
        .unwrap();
    assert_eq!(
        client.transport().last().url,
        url("/plugins/%C3%A4%3F/releases")
    );
    let page = InstallationsPage {
        plugin_id: Some("a/b".to_owned()),
        host: Some("h".to_owned()),
        ..InstallationsPage::default()
    };
    client.installations(&page, &Never).unwrap();
    assert_eq!(
        client.transport().last().url,
        url("/installations?plugin_id=a%2Fb&host=h")
    );
    client
        .installations(&InstallationsPage::default(), &Never)
        .unwrap();
    assert_eq!(client.transport().last().url, url("/installations"));
    let sent = client.transport().count();
    for id in ["", "..", "a/b", "a\\b"] {
        let error = client
            .releases(id, &ReleasesPage::default(), &Never)
            .unwrap_err();
        assert!(matches!(error, ClientError::Path(_)), "{id}: {error}");
    }
    assert_eq!(client.transport().count(), sent);
}
