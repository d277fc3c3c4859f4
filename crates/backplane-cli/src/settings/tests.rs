//! Which layer wins, and what a layer about another registry does not give.

use super::places::SYSTEM_FILE;
use super::*;

fn said(layer: Layer, registry: Option<&str>, token: Option<&str>) -> Said {
    Said {
        layer,
        registry: registry.map(str::to_owned),
        token: token.map(|path| TokenPlace::File(path.into())),
        ca_file: None,
        allow_plain_http: false,
    }
}

fn flag(registry: Option<&str>, token: Option<&str>) -> Said {
    said(Layer::Flag("registry".to_owned()), registry, token)
}

fn variable(registry: Option<&str>, token: Option<&str>) -> Said {
    said(Layer::Environment(URL.to_owned()), registry, token)
}

fn file(path: &str, registry: Option<&str>, token: Option<&str>) -> Said {
    said(Layer::File(path.into()), registry, token)
}

fn places() -> Places {
    Places {
        user: Some("/home/u/.config/backplane/config.toml".into()),
        system: SYSTEM_FILE.into(),
        credentials: None,
    }
}

fn settled(layers: &[Said]) -> Settings {
    settle(layers, &places()).unwrap()
}

fn token(path: &str) -> Option<TokenPlace> {
    Some(TokenPlace::File(path.into()))
}

#[test]
fn the_strongest_layer_that_names_a_registry_wins() {
    let user = file("/u", Some("https://user"), None);
    let system = file("/etc", Some("https://system"), None);
    let all = [
        flag(Some("https://flag"), None),
        variable(Some("https://var"), None),
        user,
        system,
    ];
    for (from, url) in [
        "https://flag",
        "https://var",
        "https://user",
        "https://system",
    ]
    .iter()
    .enumerate()
    {
        let settings = settled(&all[from..]);
        assert_eq!(settings.registry.to_string(), *url);
        assert_eq!(settings.named_by, all[from].layer);
    }
}

#[test]
fn a_token_goes_with_the_registry_of_its_layer_and_with_no_other() {
    let user = file("/u", Some("https://user/"), Some("/user-token"));
    let settings = settled(&[flag(None, None), variable(None, None), user.clone()]);
    assert_eq!(settings.token, token("/user-token"));
    let settings = settled(&[flag(Some("https://user"), None), user.clone()]);
    assert_eq!(
        settings.token,
        token("/user-token"),
        "the same, named twice"
    );
    let settings = settled(&[flag(Some("https://other"), None), user.clone()]);
    assert_eq!(settings.token, None);
    let variables = variable(Some("https://user"), Some("/variable"));
    let settings = settled(&[flag(Some("https://other"), None), variables, user]);
    assert_eq!(settings.token, None);
    let variables = variable(None, Some("/variable"));
    let settings = settled(&[flag(Some("https://other"), None), variables]);
    assert_eq!(settings.token, token("/variable"), "it names no registry");
}

#[test]
fn a_layer_about_another_registry_gives_no_authority_and_allows_nothing() {
    let mut user = file("/u", Some("https://user"), None);
    user.ca_file = Some("/ca".into());
    user.allow_plain_http = true;
    let settings = settled(&[flag(Some("https://other"), None), user.clone()]);
    assert_eq!((settings.ca_file, settings.allow_plain_http), (None, false));
    let settings = settled(&[user]);
    assert_eq!(settings.ca_file, Some("/ca".into()));
    assert!(settings.allow_plain_http);
}

#[test]
fn without_a_registry_the_three_ways_to_name_one_are_said() {
    let error = settle(&[flag(None, Some("/t"))], &places()).unwrap_err();
    let hints = error.hints().join("\n");
    for way in ["--registry", URL, "/home/u/.config/backplane/config.toml"] {
        assert!(hints.contains(way), "{way} in {hints}");
    }
}

#[test]
fn what_is_no_registry_is_refused_with_its_layer() {
    let error = settle(&[variable(Some("ftp://x"), None)], &places()).unwrap_err();
    let messages = error.messages();
    assert!(
        messages[0].contains("variable `BACKPLANE_URL`"),
        "{messages:?}"
    );
}

#[test]
fn a_file_is_read_strictly_and_its_paths_start_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    assert_eq!(file::read(&path).unwrap(), None);
    let text = "registry = \"https://x\"\ntoken_file = \"token\"\nca_file = \"/ca.pem\"\n";
    fs_err::write(&path, text).unwrap();
    let read = file::read(&path).unwrap().unwrap();
    assert_eq!(read.registry.as_deref(), Some("https://x"));
    assert_eq!(
        read.token,
        Some(TokenPlace::File(folder.path().join("token")))
    );
    assert_eq!(read.ca_file, Some("/ca.pem".into()));
    for refused in [
        "token = \"t\"\n",
        "registry = 1\n",
        "registry = \"a\"\nregistry = \"b\"\n",
        "allow_plain_http = \"yes\"\n",
        "no toml",
    ] {
        fs_err::write(&path, refused).unwrap();
        let error = file::read(&path).unwrap_err();
        let messages = error.messages().join("\n");
        assert!(messages.contains("config.toml"), "{messages}");
        assert!(error.hints()[0].contains("token_file"));
    }
}
