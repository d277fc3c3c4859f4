//! What a host does before a launch.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::collections::BTreeMap;

use agent_plugin::launch::{Host, Launch, LaunchError, Process, Remote, prepare, prepare_all};
use agent_plugin::{Files, MCP_SCHEMA, Options, PLUGIN_SCHEMA, Package, load};
use strict_json::{Layout, Limits, parse_object};

type Prepared = BTreeMap<String, Result<Launch, LaunchError>>;

/// Resolves `.` and `..` by the text, and one link: `/plugin/link` leads to `/etc`.
fn resolve(path: &str) -> Result<String, String> {
    if path.contains("gone") {
        return Err("no such file".to_owned());
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
        if parts == ["plugin", "link"] {
            parts = vec!["etc"];
        }
    }
    Ok(format!("/{}", parts.join("/")))
}

fn package(servers: &str) -> Package {
    let manifest = format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"example"}}"#);
    let mcp = format!(r#"{{"$schema":"{MCP_SCHEMA}","mcpServers":{servers}}}"#);
    let files = Files::from([
        ("plugin.json".to_owned(), manifest.into_bytes()),
        ("mcp.json".to_owned(), mcp.into_bytes()),
    ]);
    let package = load(files, &Options::default()).unwrap();
    assert_eq!(package.diagnostics, []);
    package
}

fn prepared(servers: &str, env: &[(&str, &str)]) -> Prepared {
    let package = package(servers);
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let host = Host {
        root: "/plugin",
        data: "/data/${PLUGIN_ROOT}",
        env: &env,
        resolve: &resolve,
    };
    prepare_all(&package, &host)
}

fn process(servers: &str, env: &[(&str, &str)]) -> Process {
    match prepared(servers, env).remove("a") {
        Some(Ok(Launch::Process(process))) => process,
        other => panic!("a process: {other:?}"),
    }
}

fn remote(servers: &str) -> Remote {
    match prepared(servers, &[]).remove("a") {
        Some(Ok(Launch::Remote(remote))) => remote,
        other => panic!("a URL: {other:?}"),
    }
}

#[test]
fn both_placeholders_are_replaced_once_and_everywhere_they_may_be() {
    let process = process(
        r#"{"a":{"type":"stdio","command":"./${PLUGIN_ROOT}/x",
            "args":["${PLUGIN_ROOT}${PLUGIN_ROOT}","","${PLUGIN_DATA}","${PLUGIN_ROOT_SUFFIX} $X ${X}","${${PLUGIN_ROOT}"],
            "env":{"${PLUGIN_ROOT}":"is ${PLUGIN_ROOT}"},"cwd":"${PLUGIN_ROOT}/w"}}"#,
        &[],
    );
    // A value is not looked at again: the data directory's own text stays.
    assert_eq!(
        process.args,
        [
            "/plugin/plugin",
            "",
            "/data/${PLUGIN_ROOT}",
            "${PLUGIN_ROOT_SUFFIX} $X ${X}",
            "${/plugin"
        ]
    );
    assert_eq!(process.command, "/plugin/${PLUGIN_ROOT}/x");
    assert_eq!(process.env["${PLUGIN_ROOT}"], "is /plugin");
    assert_eq!(process.cwd, "/plugin/w");
}

#[test]
fn the_hosts_variables_are_set_last_over_what_is_inherited() {
    let inherited = [("PLUGIN_ROOT", "/evil"), ("A", "inherited"), ("B", "kept")];
    let servers = r#"{"a":{"type":"stdio","command":"x","env":{"A":"configured"}}}"#;
    let process = process(servers, &inherited);
    let expected = [
        ("A", "configured"),
        ("B", "kept"),
        ("PLUGIN_DATA", "/data/${PLUGIN_ROOT}"),
        ("PLUGIN_ROOT", "/plugin"),
    ];
    let found: Vec<_> = process
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(process.cwd, "/plugin", "the default");
    assert_eq!(process.command, "x", "left to the search of the platform");
}

#[test]
fn containment_is_checked_again_and_each_server_fails_alone() {
    let found = prepared(
        r#"{"command":{"type":"stdio","command":"./link/env"},
            "cwd":{"type":"stdio","command":"x","cwd":"./link"},
            "data":{"type":"stdio","command":"x","cwd":"${PLUGIN_DATA}/w"},
            "gone":{"type":"stdio","command":"./gone"},
            "good":{"type":"stdio","command":"./bin/x"}}"#,
        &[],
    );
    assert_eq!(
        found["command"],
        Err(LaunchError::Escapes { field: "command" })
    );
    assert_eq!(found["cwd"], Err(LaunchError::Escapes { field: "cwd" }));
    assert!(matches!(
        &found["gone"],
        Err(LaunchError::Resolve {
            field: "command",
            ..
        })
    ));
    assert!(matches!(&found["good"], Ok(Launch::Process(it)) if it.command == "/plugin/bin/x"));
    assert!(
        matches!(&found["data"], Ok(Launch::Process(it)) if it.cwd == "/data/${PLUGIN_ROOT}/w")
    );
}

#[test]
fn what_only_begins_like_the_root_or_is_not_resolved_is_outside() {
    let mut package = package(r#"{"a":{"type":"stdio","command":"./x"}}"#);
    let server = package.mcp_servers.remove("a").unwrap();
    let run = |root: &str, answer: &str| {
        let resolve = |_: &str| Ok(answer.to_owned());
        let host = Host {
            root,
            data: "/data",
            env: &BTreeMap::new(),
            resolve: &resolve,
        };
        prepare(&server, &host).map(drop)
    };
    let field = "command";
    for outside in [
        "/plugin-other/x",
        "/plugin/../etc/x",
        "/plugin/..",
        "/",
        "plugin/x",
        "",
    ] {
        assert_eq!(
            run("/plugin", outside),
            Err(LaunchError::Escapes { field }),
            "{outside}"
        );
    }
    for inside in ["/plugin/x", "/plugin/..x/y"] {
        assert_eq!(run("/plugin", inside), Ok(()), "{inside}");
        assert_eq!(run("/plugin/", inside), Ok(()), "{inside}");
        assert_eq!(run("/", inside), Ok(()), "{inside}");
    }
}

#[test]
fn a_server_that_the_loader_would_refuse_is_not_used() {
    for (field, config) in [
        ("command", r#"{"command":"../x"}"#),
        ("command", r#"{"command":1}"#),
        ("command", "{}"),
        ("args", r#"{"command":"x","args":[1]}"#),
        ("args", r#"{"command":"x","args":{}}"#),
        ("env", r#"{"command":"x","env":{"A":1}}"#),
        ("env", r#"{"command":"x","env":[]}"#),
        ("cwd", r#"{"command":"x","cwd":"/etc"}"#),
        ("cwd", r#"{"command":"x","cwd":1}"#),
        ("url", r#"{"url":"http://h.example/"}"#),
        ("url", "{\"headers\":{}}"),
        (
            "headers",
            r#"{"url":"https://h.example/","headers":{"a b":"x"}}"#,
        ),
        (
            "headers",
            r#"{"url":"https://h.example/","headers":{"a":"x\r\ny"}}"#,
        ),
    ] {
        let is_remote = matches!(field, "url" | "headers");
        let kind = match is_remote {
            true => r#"{"type":"sse","url":"https://h.example/"}"#,
            false => r#"{"type":"stdio","command":"x"}"#,
        };
        let mut package = package(&format!(r#"{{"a":{kind}}}"#));
        let limits = Limits {
            bytes: 1 << 10,
            depth: 8,
        };
        let changed = parse_object(config.as_bytes(), &limits, Layout::Compact).unwrap();
        package.mcp_servers.get_mut("a").unwrap().config = changed;
        let host = Host {
            root: "/plugin",
            data: "/data",
            env: &BTreeMap::new(),
            resolve: &resolve,
        };
        let found = prepare_all(&package, &host).remove("a");
        assert_eq!(found, Some(Err(LaunchError::Config { field })), "{config}");
    }
}

#[test]
fn configured_headers_stay_at_their_origin_and_below_generated_ones() {
    let remote = remote(
        r#"{"a":{"type":"sse","url":"https://h.example/sse","headers":{"Accept":"x","X-Key":"${PLUGIN_ROOT}"}}}"#,
    );
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let generated = [pair("accept", "text/event-stream")];
    assert_eq!(
        remote.headers_for("https://h.example:443/messages", &generated),
        [
            pair("X-Key", "${PLUGIN_ROOT}"),
            pair("accept", "text/event-stream")
        ]
    );
    for other in [
        "https://other.example/",
        "http://h.example/",
        "https://h.example:444/",
        "//h.example/",
        "data:,x",
        "",
    ] {
        assert_eq!(remote.headers_for(other, &generated), generated, "{other}");
    }
    assert!(
        !format!("{remote:?}").contains("PLUGIN"),
        "a header may be a secret"
    );
}
