//! The configuration file: what it may say, and that the page about it says the same.

use std::error::Error as _;
use std::time::Duration;

use backplane_registry::{Artifacts, RegistryConfig, Scope, SecretSource};
use cli_shell::config::load_toml;
use test_case::test_case;

const PAGE: &str = include_str!("../../../../docs/reference/config-registry.md");

fn read(text: &str) -> Result<RegistryConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry.toml");
    fs_err::write(&path, text).unwrap();
    load_toml(&path, RegistryConfig::read).map_err(|error| {
        let cause = error.source().map(ToString::to_string);
        format!("{error}: {}", cause.unwrap_or_default())
    })
}

fn example() -> &'static str {
    let (_, rest) = PAGE.split_once("```toml\n").unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_example_of_the_page_is_read() {
    let config = read(example()).unwrap();
    assert_eq!(config.listen.unwrap().to_string(), "0.0.0.0:8790");
    assert!(config.allowed_hosts.unwrap().contains("plugins.example"));
    let [ci, fleet] = &config.tokens[..] else {
        panic!("two tokens");
    };
    assert_eq!(ci.name.as_str(), "ci");
    assert!(ci.scopes.contains(&Scope::Publish) && !ci.scopes.contains(&Scope::Yank));
    assert!(ci.plugins.as_ref().unwrap()[0].matches("acme-x"));
    assert!(matches!(&fleet.secret, SecretSource::Env(name) if name.as_str() == "FLEET_TOKEN"));
    let Artifacts::S3(s3) = &config.artifacts else {
        panic!("a bucket");
    };
    assert_eq!(s3.bucket, "plugins");
    assert_eq!(config.limits.upload_timeout, Duration::from_secs(300));
}

#[test]
fn the_limits_of_the_example_are_the_defaults() {
    assert_eq!(
        read(example()).unwrap().limits,
        read("").unwrap().limits,
        "the page shows the defaults"
    );
}

#[test]
fn every_key_of_the_example_is_explained() {
    let mut table = String::new();
    for line in example().lines() {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_matches(['[', ']']);
            let list = line.starts_with("[[");
            table = format!("{name}{}.", if list { "[]" } else { "" });
        } else if let Some((key, _)) = line.split_once(" = ") {
            let named = format!("`{table}{key}`");
            assert!(PAGE.contains(&named), "{named} is not in the table");
        }
    }
}

#[test]
fn nothing_is_needed() {
    let config = read("").unwrap();
    assert_eq!(config, RegistryConfig::default());
    assert_eq!(config.artifacts, Artifacts::Disk);
}

#[test_case("listen = 1", "listen")]
#[test_case("listen = \"8790\"", "listen")]
#[test_case("listen = \"0.0.0.0:1\"", "insecure_listen")]
#[test_case("listen = \":1\"", "insecure_listen")]
#[test_case("unknown = 1", "unknown")]
#[test_case("anonymous_read = \"yes\"", "anonymous_read")]
#[test_case("allowed_hosts = []", "allowed_hosts")]
#[test_case("allowed_hosts = [\"a:1\"]", "allowed_hosts[0]")]
#[test_case("log_format = \"xml\"", "log_format")]
#[test_case("tls = {cert_file = \"a\"}", "tls.key_file")]
#[test_case("tls = {cert_file = \"a\", key_file = \"b\", x = 1}", "tls.x")]
#[test_case("tokens = [{}]", "tokens[0].name")]
#[test_case(
    "tokens = [{name = \"A\", scopes = [\"*\"], token_env = \"T\"}]",
    "tokens[0].name"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [], token_env = \"T\"}]",
    "tokens[0].scopes"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"write\"], token_env = \"T\"}]",
    "tokens[0].scopes[0]"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"read\", \"read\"], token_env = \"T\"}]",
    "tokens[0].scopes[1]"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"read\", \"*\"], token_env = \"T\"}]",
    "tokens[0].scopes[1]"
)]
#[test_case("tokens = [{name = \"a\", scopes = [\"*\"]}]", "tokens[0].token_file")]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"*\"], token_env = \"T\", token_file = \"f\"}]",
    "tokens[0].token_file"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"*\"], token = \"canary\"}]",
    "tokens[0]"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"*\"], token_env = \"T\", plugins = []}]",
    "tokens[0].plugins"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"*\"], token_env = \"T\", plugins = [\"[a]\"]}]",
    "tokens[0].plugins[0]"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"*\"], token_env = \"T\", plugins = [\"a**\"]}]",
    "tokens[0].plugins[0]"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"*\"], token_env = \"T\"}, {name = \"a\", scopes = [\"*\"], token_env = \"U\"}]",
    "tokens[1].name"
)]
#[test_case(
    "tokens = [{name = \"a\", scopes = [\"*\"], token_env = \"T\"}, {name = \"b\", scopes = [\"*\"], token_env = \"T\"}]",
    "tokens[1]"
)]
#[test_case("artifacts = {}", "artifacts.kind")]
#[test_case("artifacts = {kind = \"tape\"}", "artifacts.kind")]
#[test_case("artifacts = {kind = \"disk\", bucket = \"b\"}", "artifacts.bucket")]
#[test_case("artifacts = {kind = \"s3\"}", "artifacts.bucket")]
#[test_case(
    "artifacts = {kind = \"s3\", bucket = \"b\", region = \"r\", endpoint = \"ftp://x\", access_key_id_env = \"A\", secret_access_key_env = \"B\"}",
    "artifacts.endpoint"
)]
#[test_case("limits = {max_files = 0}", "limits.max_files")]
#[test_case("limits = {max_depth = 129}", "limits.max_depth")]
#[test_case("limits = {uploads = 65}", "limits.uploads")]
#[test_case("limits = {upload_timeout = \"1ms\"}", "limits.upload_timeout")]
#[test_case("limits = {upload_timeout = 5}", "limits.upload_timeout")]
#[test_case("limits = {x = 5}", "limits.x")]
fn a_wrong_key_is_named(text: &str, key: &str) {
    let error = read(text).unwrap_err();
    assert!(
        error.contains(&format!("`{key}`")) || error.contains(key),
        "{error}"
    );
    assert!(!error.contains("canary"), "{error}");
}

#[test]
fn plain_http_beyond_loopback_has_to_be_asked_for() {
    assert!(read("listen = \"0.0.0.0:1\"\ninsecure_listen = true").is_ok());
    let tls = "[tls]\ncert_file = \"a\"\nkey_file = \"b\"";
    assert!(read(&format!("listen = \"0.0.0.0:1\"\n{tls}")).is_ok());
    assert!(read("listen = \"127.0.0.1:1\"").is_ok());
    // What a name leads to is found out at the start.
    assert!(read("listen = \"localhost:1\"").is_ok());
}

#[test_case("bucket", "plug ins/.."; "a bucket of an address")]
#[test_case("bucket", ".."; "a bucket above")]
#[test_case("region", "eu.example/x"; "a region with a host")]
#[test_case("prefix", "a//b"; "a prefix with an empty part")]
fn what_would_change_the_address_of_a_bucket_is_refused(key: &str, value: &str) {
    let mut keys = std::collections::BTreeMap::from([
        ("bucket", "plugins"),
        ("region", "eu-central-1"),
        ("prefix", "registry/one"),
    ]);
    let text = |keys: &std::collections::BTreeMap<&str, &str>| {
        keys.iter()
            .map(|(key, value)| format!("{key} = \"{value}\"\n"))
            .collect::<String>()
    };
    let rest =
        "[artifacts]\nkind = \"s3\"\naccess_key_id_env = \"A\"\nsecret_access_key_env = \"B\"\n";
    assert!(read(&format!("{rest}{}", text(&keys))).is_ok());
    keys.insert(key, value);
    let error = read(&format!("{rest}{}", text(&keys))).unwrap_err();
    assert!(error.contains(&format!("artifacts.{key}")), "{error}");
}

#[test]
fn a_bucket_is_reached_over_tls_or_on_this_machine_or_on_a_word() {
    let bucket = |endpoint: &str, more: &str| {
        read(&format!(
            "[artifacts]\nkind = \"s3\"\nbucket = \"b\"\nregion = \"r\"\nendpoint = \"{endpoint}\"\naccess_key_id_env = \"A\"\nsecret_access_key_env = \"B\"\n{more}"
        ))
    };
    for good in [
        "https://s3.example",
        "https://s3.example:9000/x",
        "http://127.0.0.1:9000",
    ] {
        assert!(bucket(good, "").is_ok(), "{good}");
    }
    for bad in [
        "http://s3.example",
        "https://user:canary@s3.example",
        "https://s3.example?x=1",
        "https://",
        "s3.example",
    ] {
        let error = bucket(bad, "").unwrap_err();
        assert!(error.contains("artifacts.endpoint"), "{error}");
        assert!(!error.contains("canary"), "{error}");
    }
    let asked = bucket("http://s3.example", "insecure_endpoint = true");
    assert!(asked.is_ok(), "{asked:?}");
}
