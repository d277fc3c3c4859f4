//! Proxies: a tunnel for `https`, nothing for this machine, and passwords nowhere.

use std::convert::Infallible;

use backplane_client::Fault;
use backplane_http::{HttpTransport, Options, Proxies};

use crate::server::{ProxyServer, Server, Step};
use crate::support::{Authority, TOKEN, answer, client, fault, get, is_fault, ok, patient};
use crate::trust::trusting;

fn proxies(pairs: &[(&str, &str)]) -> Proxies {
    let read = |name: &str| {
        let found = pairs.iter().find(|(n, _)| *n == name);
        Ok::<_, Infallible>(found.map(|(_, value)| (*value).to_owned()))
    };
    Proxies::from_variables(read).unwrap()
}

#[test]
fn https_goes_through_a_tunnel_in_which_the_proxy_sees_nothing() {
    let authority = Authority::new();
    let server = Server::tls(
        vec![Step::Send(ok())],
        authority.acceptor("registry.example"),
    );
    let proxy = ProxyServer::start(server.address, Vec::new());
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        let server = Server::tls(
            vec![Step::Send(ok())],
            authority.acceptor("registry.example"),
        );
        let proxy = ProxyServer::start(server.address, Vec::new());
        let address = format!("http://user:p%40ss@{}", proxy.address);
        let options = Options {
            proxies: proxies(&[(name, &address)]),
            ..trusting(&authority)
        };
        get(&client("https://registry.example", options)).unwrap();
        let seen = proxy.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].line(), "CONNECT registry.example:443 HTTP/1.1");
        assert_eq!(seen[0].header("authorization"), None);
        let password = seen[0].header("proxy-authorization");
        assert_eq!(password, Some("Basic dXNlcjpwQHNz"));
        let tunnelled = String::from_utf8_lossy(&proxy.tunnelled()).into_owned();
        assert!(!seen[0].head.contains(TOKEN) && !tunnelled.contains(TOKEN));
        assert!(!tunnelled.contains("plugin-protocol"));
        let asked = &server.seen()[0];
        assert!(asked.head.contains(TOKEN));
        assert_eq!(asked.header("proxy-authorization"), None);
    }
    assert_eq!((server.connections(), proxy.seen().len()), (0, 0));
}

#[test]
fn a_certificate_is_verified_through_a_tunnel_too() {
    let authority = Authority::new();
    let server = Server::tls(vec![], authority.acceptor("other.example"));
    let proxy = ProxyServer::start(server.address, Vec::new());
    let options = Options {
        proxies: proxies(&[("HTTPS_PROXY", &proxy.address.to_string())]),
        ..trusting(&authority)
    };
    is_fault(
        get(&client("https://registry.example", options)),
        Fault::Tls,
    );
    assert!(server.seen().is_empty());
}

#[test]
fn a_proxy_that_refuses_gets_no_request() {
    let authority = Authority::new();
    let server = Server::tls(vec![], authority.acceptor("registry.example"));
    for status in [407, 403, 502] {
        let proxy = ProxyServer::start(server.address, answer(status, &[], b"<no>"));
        let options = Options {
            proxies: proxies(&[("HTTPS_PROXY", &format!("http://{}", proxy.address))]),
            ..trusting(&authority)
        };
        let error = fault(get(&client("https://registry.example", options)));
        assert_eq!(error.fault(), Fault::Unreachable);
        assert!(!error.to_string().contains("<no>"), "{error}");
        assert!(proxy.seen().iter().all(|seen| !seen.head.contains(TOKEN)));
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn nothing_for_this_machine_goes_to_a_proxy() {
    let authority = Authority::new();
    let dead = ProxyServer::start("127.0.0.1:9".parse().unwrap(), Vec::new());
    let address = format!("http://{}", dead.address);
    let all = proxies(&[
        ("HTTPS_PROXY", &address),
        ("HTTP_PROXY", &address),
        ("ALL_PROXY", &address),
    ]);
    let plain = Server::plain(vec![Step::Send(ok()), Step::Send(ok())]);
    let tls = Server::tls(vec![Step::Send(ok())], authority.acceptor("localhost"));
    for url in [
        plain.url(),
        format!("http://localhost:{}", plain.address.port()),
        format!("https://localhost:{}", tls.address.port()),
    ] {
        let options = Options {
            proxies: all.clone(),
            ..trusting(&authority)
        };
        get(&client(&url, options)).unwrap();
    }
    assert!(dead.seen().is_empty());
}

#[test]
fn plain_http_that_somebody_wished_for_goes_to_its_proxy() {
    let proxy = ProxyServer::start("127.0.0.1:9".parse().unwrap(), ok());
    let options = Options {
        allow_plain_http: true,
        proxies: proxies(&[("HTTP_PROXY", &format!("http://{}", proxy.address))]),
        ..patient()
    };
    get(&client("http://registry.example", options)).unwrap();
    let line = "GET http://registry.example/plugin-protocol/v1/x HTTP/1.1";
    assert_eq!(proxy.seen()[0].line(), line);
}

#[test]
fn no_proxy_names_whom_to_ask_directly() {
    let proxy = ProxyServer::start("127.0.0.1:9".parse().unwrap(), answer(500, &[], b""));
    let address = format!("http://{}", proxy.address);
    for except in ["0.0.0.0", "registry.example, 0.0.0.0/8", "*"] {
        let server = Server::plain(vec![Step::Send(ok())]);
        let options = Options {
            allow_plain_http: true,
            proxies: proxies(&[("HTTP_PROXY", &address), ("no_proxy", except)]),
            ..patient()
        };
        let url = format!("http://0.0.0.0:{}", server.address.port());
        get(&client(&url, options)).unwrap();
        assert_eq!(server.connections(), 1);
    }
    assert!(proxy.seen().is_empty());
}

#[test]
fn an_address_that_is_none_is_named_by_its_variable_and_not_quoted() {
    for bad in [
        "socks5://user:secret@127.0.0.1:1080",
        "http://user:secret@",
        "http://user:secret@127.0.0.1:99999",
        "http://user:secret@host/path",
        "http://user:secret@host/?q",
    ] {
        let options = Options {
            proxies: proxies(&[("HTTPS_PROXY", bad)]),
            ..patient()
        };
        let shown = format!("{options:?}");
        let error = HttpTransport::new(options).unwrap_err();
        let said = format!("{error} {error:?} {shown}");
        assert!(error.to_string().contains("HTTPS_PROXY"), "{said}");
        assert!(!said.contains("secret") && !said.contains("user"), "{said}");
    }
}

#[test]
fn what_a_visitor_of_the_web_sent_is_no_proxy() {
    let found = proxies(&[("HTTP_PROXY", "http://evil"), ("REQUEST_METHOD", "GET")]);
    assert_eq!(found, Proxies::none());
    assert_eq!(proxies(&[("HTTP_PROXY", "")]), Proxies::none());
    let lower = proxies(&[("http_proxy", "http://a"), ("HTTP_PROXY", "")]);
    assert_eq!(lower, proxies(&[("HTTP_PROXY", "http://a")]));
}
