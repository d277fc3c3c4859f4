//! From a package to an installation report with the real client over TLS: published, found,
//! resolved, downloaded, attested, promoted and withdrawn.

use backplane_client::{
    Auth, CatalogPage, Client, ClientError, InstallationsPage, Method, Never, ReleasesPage,
    Selection, Token,
};
use backplane_http::{HttpTransport, Options, Roots};
use serde_json::{Value, json};
use strict_json::{Json, Layout, Limits, Object};

use crate::sockets::Served;
use crate::support::{digest, package, receipt_of};

fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    match object.get(key) {
        Some(Json::Text(text)) => text,
        other => panic!("{key}: {other:?}"),
    }
}

fn plain(object: &Object) -> Value {
    serde_json::from_slice(&strict_json::to_line(object)).unwrap()
}

fn body(value: &Value) -> Json {
    let limits = Limits {
        bytes: 1 << 16,
        depth: 8,
    };
    strict_json::parse_value(value.to_string().as_bytes(), &limits, Layout::Spaced).unwrap()
}

fn client(served: &Served, token: &str) -> Client<HttpTransport> {
    let http = HttpTransport::new(Options {
        roots: Roots::Only(served.certificate()),
        ..Options::default()
    });
    let auth = Auth::Token(Token::new(token.to_owned()).unwrap());
    let base = format!("https://{}", served.address);
    Client::new(&base, auth, Vec::new(), http.unwrap()).unwrap()
}

fn publish(client: &Client<HttpTransport>, archive: &[u8]) -> Object {
    client.upload(archive.to_vec(), &Never).unwrap();
    let release = json!({"artifact_digest": digest(archive), "channel": "stable"});
    let posted = client.request(Method::Post, "/releases", Some(&body(&release)), &Never);
    posted.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_is_published_found_downloaded_and_withdrawn_over_tls() {
    let served = Served::over_tls().await;
    let (ours, nobody) = (client(&served, &served.token), client(&served, "canary"));
    tokio::task::spawn_blocking(move || {
        journey(&ours);
        for refused in [
            nobody.catalog(&Never).map(drop),
            nobody.upload(package("acme-tools", "9"), &Never).map(drop),
        ] {
            assert!(
                matches!(refused, Err(ClientError::HttpStatus { status: 401, .. })),
                "{refused:?}"
            );
        }
    })
    .await
    .unwrap();
    served.stop().await;
}

fn journey(client: &Client<HttpTransport>) {
    let (first, second) = (package("acme-tools", "1"), package("acme-tools", "2"));
    let one = publish(client, &first);
    let two = publish(client, &second);
    let page = client
        .catalog_page(&CatalogPage::default(), &Never)
        .unwrap();
    let page = plain(&page);
    assert_eq!(page["data"][0]["plugin_id"], "acme-tools");
    let stable = client
        .resolve(&Selection::plugin("acme-tools"), &Never)
        .unwrap();
    assert_eq!(text(&stable, "release_id"), text(&two, "release_id"));
    let download = client
        .download(text(&stable, "artifact_digest"), &Never)
        .unwrap();
    assert_eq!(download.artifact, second);
    assert_eq!(download.package.name(), "acme-tools");

    let receipt = receipt_of(&second, "1").into_bytes();
    client
        .put_receipt(&digest(&second), receipt.clone(), &Never)
        .unwrap();
    assert_eq!(client.receipt(&digest(&second), &Never).unwrap(), receipt);

    let to = json!({"release_id": text(&one, "release_id"), "expected_release_id": text(&two, "release_id")});
    let path = "/plugins/acme-tools/channels/stable";
    client
        .request(Method::Put, path, Some(&body(&to)), &Never)
        .unwrap();
    let moved = client
        .resolve(&Selection::plugin("acme-tools"), &Never)
        .unwrap();
    assert_eq!(text(&moved, "version"), "1");

    let report = json!({
        "installation_id": "0f".repeat(16), "host": "build-1", "plugin_id": "acme-tools",
        "release_id": text(&one, "release_id"), "artifact_digest": digest(&first), "status": "installed",
    });
    client
        .request(Method::Post, "/installations", Some(&body(&report)), &Never)
        .unwrap();
    let list = client
        .installations(&InstallationsPage::default(), &Never)
        .unwrap();
    assert_eq!(plain(&list)["data"][0]["host"], "build-1");

    let yank = format!("/releases/{}/yank", text(&one, "release_id"));
    client.request(Method::Post, &yank, None, &Never).unwrap();
    let gone = client.resolve(&Selection::plugin("acme-tools"), &Never);
    assert!(
        matches!(gone, Err(ClientError::HttpStatus { status: 410, .. })),
        "{gone:?}"
    );
    let by_id = Selection::release(text(&one, "release_id"));
    assert_eq!(
        text(&client.resolve(&by_id, &Never).unwrap(), "status"),
        "yanked"
    );
    assert_eq!(
        client.download(&digest(&first), &Never).unwrap().artifact,
        first
    );
    let all = client
        .releases("acme-tools", &ReleasesPage::default(), &Never)
        .unwrap();
    assert_eq!(plain(&all)["data"].as_array().unwrap().len(), 2);
}
