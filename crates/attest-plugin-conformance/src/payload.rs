//! Payloads as a run sends them: full, bare, and with the texts that real pipelines have.
//!
//! They are written out, with their members in the order of the core's, and not made by the crate
//! that plugins may be built on.

/// The hooks of this major version, in the order of a run.
pub(crate) const HOOKS: [&str; 4] = [
    "pipeline.validate",
    "step.pre",
    "step.post",
    "receipt.finalize",
];

/// A hook of this major version.
pub(crate) type Hook = &'static str;

macro_rules! hash {
    ($digit:literal) => {
        concat!(
            "\"", $digit, $digit, $digit, $digit, $digit, $digit, $digit, $digit, $digit, $digit,
            $digit, $digit, $digit, $digit, $digit, $digit, "\""
        )
    };
}

const PIPELINES: &[&str] = &[
    concat!(
        r#"{"pipeline":{"path":"attest.yaml","pipeline_hash":"#,
        hash!("1f0c"),
        r#","name":"release","version":"1.4.0","steps":["#,
        r#"{"name":"build","run":"cargo build --release","needs":[],"inputs":["src","Cargo.toml"],"#,
        r#""outputs":["target/release/app"],"env":{"CARGO_TERM_COLOR":"never","RUSTFLAGS":"-D warnings"},"#,
        r#""working_dir":"crates/app","capsule":"sealed","cache":true,"timeout_secs":600},"#,
        r#"{"name":"test","run":"cargo test","needs":["build"],"inputs":["src"],"outputs":[],"#,
        r#""env":{},"cache":false}]}}"#
    ),
    // A wrapped command: no file, no name, one step that declares nothing.
    concat!(
        r#"{"pipeline":{"pipeline_hash":"#,
        hash!("77aa"),
        r#","steps":[{"name":"wrapped","run":"make","needs":[],"inputs":[],"outputs":[],"env":{},"#,
        r#""cache":false}]}}"#
    ),
    concat!(
        r#"{"pipeline":{"path":"ci/größe.yaml","pipeline_hash":"#,
        hash!("0b2e"),
        r#","name":"größe \"x\" \\ 試験","version":"","steps":[{"name":"bauen-ü","#,
        r#""run":"printf '%s\\n' \"ü 試験 🚀\"\n\techo \u0001 'done'","needs":[],"inputs":["src/ä b.txt"],"#,
        r#""outputs":["out/ü"],"env":{"GREETING":"grüße"#,
        "\u{2028}",
        r#"x"},"cache":true}]}}"#
    ),
];

const BEFORE: &[&str] = &[
    concat!(
        r#"{"step":{"name":"build","run":"cargo build --release","needs":["fetch","check"],"#,
        r#""inputs":["src","Cargo.toml"],"outputs":["target/release/app"],"input_hash":"#,
        hash!("a1b2"),
        r#","command_hash":"#,
        hash!("c3d4"),
        r#","capsule_hash":"#,
        hash!("e5f6"),
        r#","cache_hit":false}}"#
    ),
    concat!(
        r#"{"step":{"name":"lint","run":"true","needs":[],"inputs":[],"outputs":[],"input_hash":"#,
        hash!("0000"),
        r#","command_hash":"#,
        hash!("ffff"),
        r#","cache_hit":true}}"#
    ),
    concat!(
        r#"{"step":{"name":"prüfen 試験","run":"printf '%s' \"ü🚀\\n\"\n\techo \u0001"#,
        "\u{2028}",
        r#" \"$X\"","needs":["bauen-ü"],"#,
        r#""inputs":["src/ä b.txt"],"outputs":["out/ü"],"input_hash":"#,
        hash!("9d8c"),
        r#","command_hash":"#,
        hash!("7b6a"),
        r#","cache_hit":false}}"#
    ),
];

const AFTER: &[&str] = &[
    concat!(
        r#"{"step":{"name":"build","input_hash":"#,
        hash!("a1b2"),
        r#","output_hash":"#,
        hash!("5a5a"),
        r#","duration_secs":12,"exit_code":0,"cache_hit":false,"capsule_hash":"#,
        hash!("e5f6"),
        r#","stdout":"Compiling app\nFinished ü 🚀\n","stderr":"","stdout_truncated":false,"stderr_truncated":true}}"#
    ),
    concat!(
        r#"{"step":{"name":"lint","input_hash":"#,
        hash!("0000"),
        r#","output_hash":"#,
        hash!("abab"),
        r#","duration_secs":0,"exit_code":0,"cache_hit":true}}"#
    ),
    concat!(
        r#"{"step":{"name":"prüfen 試験","input_hash":"#,
        hash!("9d8c"),
        r#","output_hash":"#,
        hash!("cdcd"),
        r#","duration_secs":86400,"exit_code":-1,"cache_hit":false}}"#
    ),
];

const RECEIPTS: &[&str] = &[
    concat!(
        r#"{"receipt":{"schema_version":2,"pipeline_hash":"#,
        hash!("1f0c"),
        r#","steps":[{"name":"build","input_hash":"#,
        hash!("a1b2"),
        r#","output_hash":"#,
        hash!("5a5a"),
        r#","duration_secs":12,"exit_code":0,"cache_hit":false,"stdout":"","stderr":"","capsule_hash":"#,
        hash!("e5f6"),
        r#"}],"timestamp":"2026-11-30T12:00:00Z","total_duration_secs":13,"signature":null,"#,
        r#""signer_public_key":null,"attest_version":"1.0.0","causal_events":["#,
        hash!("2468"),
        r#"],"causal_chain_hash":"#,
        hash!("2468"),
        r#","provenance":{"invocation_id":"01930000-0000-7000-8000-000000000000","pipeline_name":"release","#,
        r#""started_at":"2026-11-30T11:59:47Z","source":{"repository":"https://example.test/größe.git","#,
        r#""commit":"0123456789abcdef0123456789abcdef01234567","branch":"main","tracked_dirty":false},"#,
        r#""runner_os":"linux","runner_arch":"x86_64","ci":null,"steps":[{"name":"build","needs":[],"#,
        r#""command_hash":"#,
        hash!("c3d4"),
        r#","inputs":["src"],"outputs":["out"]}],"artifacts":[{"step":"build","path":"out/ü","kind":"file","#,
        r#""digest":"#,
        hash!("1357"),
        r#","algorithm":"blake3"}],"execution":{"mode":"native"}}}}"#
    ),
    // No provenance, no ledger, nothing optional.
    concat!(
        r#"{"receipt":{"schema_version":2,"pipeline_hash":"#,
        hash!("77aa"),
        r#","steps":[{"name":"wrapped","input_hash":"#,
        hash!("0000"),
        r#","output_hash":"#,
        hash!("abab"),
        r#","duration_secs":0,"exit_code":3,"cache_hit":false,"stdout":"","stderr":""}],"#,
        r#""timestamp":"2024-01-01T00:00:00Z","total_duration_secs":0,"signature":null,"signer_public_key":null,"#,
        r#""attest_version":"1.0.0","causal_events":[],"causal_chain_hash":null}}"#
    ),
];

/// All payloads of a hook.
pub(crate) fn all(hook: Hook) -> &'static [&'static str] {
    match hook {
        "pipeline.validate" => PIPELINES,
        "step.pre" => BEFORE,
        "step.post" => AFTER,
        _ => RECEIPTS,
    }
}

/// The first payload of a hook, which lacks nothing.
pub(crate) fn full(hook: Hook) -> &'static str {
    all(hook).first().copied().unwrap_or_default()
}

/// A whole request, without its line feed.
pub(crate) fn request(id: u64, kind: &str, payload: &str) -> String {
    format!(r#"{{"v":1,"id":{id},"kind":"{kind}","payload":{payload}}}"#)
}

/// The full payload with members of a later minor version at every level.
pub(crate) fn with_unknown(hook: Hook) -> String {
    const LATER: &str = concat!(
        r#""later":{"a":[null,true,[],{"b":"ü"}],"id":0,"kind":"shutdown"},"later_number":-1.5e300,"#,
        r#""later_list":[[1,"x"],{}],"later_text":"","later_null":null,"#
    );
    let mut text = full(hook).to_owned();
    for level in [
        r#"{"pipeline":{"#,
        r#"{"step":{"#,
        r#"{"receipt":{"#,
        r#""steps":[{"#,
        r#""provenance":{"#,
    ] {
        text = text.replace(level, &format!("{level}{LATER}"));
    }
    format!("{{{LATER}{}", text.trim_start_matches('{'))
}

/// A payload that makes a request of exactly this size, or as large as real ones of its kind get.
pub(crate) fn padded(hook: Hook, id: u64, bytes: usize) -> String {
    let text = full(hook);
    if hook == "step.post" {
        // Two streams of 64 KiB in which every byte has to be escaped.
        let stream = r"\u0001".repeat(65_536);
        return text
            .replace(r#""stdout":""#, &format!(r#""stdout":"{stream}"#))
            .replace(r#"Compiling app\nFinished ü 🚀\n"#, "")
            .replace(r#""stderr":"""#, &format!(r#""stderr":"{stream}""#));
    }
    let room = bytes.saturating_sub(request(id, hook, text).len());
    let padding = "x".repeat(room);
    let (from, to) = match hook {
        "receipt.finalize" => (r#""stdout":""#, format!(r#""stdout":"{padding}"#)),
        _ => (r#""run":""#, format!(r#""run":"{padding}"#)),
    };
    text.replacen(from, &to, 1)
}

#[cfg(test)]
mod tests {
    use attest_plugin_protocol::{Announcement, Hook, PluginEvent, PluginSession};

    use super::{HOOKS, all, padded, request, with_unknown};
    use crate::limits::MESSAGE_BYTES;

    #[test]
    fn every_payload_is_compact_json_and_named_as_its_hook_says() {
        for hook in HOOKS {
            let texts = all(hook).iter().map(|text| (*text).to_owned());
            let padded = padded(hook, 9, MESSAGE_BYTES);
            for text in texts.chain([with_unknown(hook), padded]) {
                let limits = strict_json::Limits {
                    bytes: MESSAGE_BYTES,
                    depth: 64,
                };
                let object = strict_json::parse_object(
                    text.as_bytes(),
                    &limits,
                    strict_json::Layout::Compact,
                )
                .unwrap_or_else(|error| panic!("{hook}: {error}: {text:.300}"));
                let name = match hook {
                    "pipeline.validate" => "pipeline",
                    "receipt.finalize" => "receipt",
                    _ => "step",
                };
                assert!(object.get(name).is_some(), "{hook}");
            }
        }
    }

    /// What is written out here is what the core writes: its own types give the same bytes.
    #[test]
    fn s63_every_request_is_written_as_the_core_writes_it() {
        for hook in HOOKS {
            let hook_text = hook;
            let hook: Hook = hook.parse().unwrap();
            for text in all(hook_text) {
                let mut session = PluginSession::new();
                let hello = attest_plugin_protocol::encode::hello(1, "1.0.0");
                session.receive(&hello).unwrap();
                let name = "noop".parse().unwrap();
                let announcement = Announcement::new(name, "1", &[hook], true);
                session.accept(announcement).unwrap();
                let line = request(2, hook_text, text) + "\n";
                session.receive(line.as_bytes()).unwrap();
                let Some(PluginEvent::Request { payload, .. }) =
                    std::iter::from_fn(|| session.poll_event()).last()
                else {
                    panic!("{hook_text}: {text}");
                };
                let written = attest_plugin_protocol::encode::request(2, &payload);
                assert_eq!(String::from_utf8(written).unwrap(), line);
            }
        }
    }

    #[test]
    fn s63_every_receipt_is_one() {
        for text in all("receipt.finalize") {
            let limits = strict_json::Limits {
                bytes: MESSAGE_BYTES,
                depth: 64,
            };
            let layout = strict_json::Layout::Compact;
            let payload = strict_json::parse_object(text.as_bytes(), &limits, layout).unwrap();
            let receipt = payload.get("receipt").unwrap().clone();
            let receipt = attest_receipt::receipt::Receipt::from_tree(receipt).unwrap();
            assert_eq!(receipt.signature, None);
            assert_eq!(receipt.plugins, None);
        }
    }

    #[test]
    fn the_largest_request_is_as_large_as_a_message_may_be() {
        for hook in ["pipeline.validate", "step.pre", "receipt.finalize"] {
            let text = request(9, hook, &padded(hook, 9, MESSAGE_BYTES));
            assert_eq!(text.len(), MESSAGE_BYTES, "{hook}");
        }
        let text = request(9, "step.post", &padded("step.post", 9, MESSAGE_BYTES));
        assert!(text.len() > 750_000 && text.len() < MESSAGE_BYTES);
    }

    #[test]
    fn later_members_stand_at_every_level() {
        assert_eq!(
            with_unknown("pipeline.validate")
                .matches("later_list")
                .count(),
            3
        );
        assert_eq!(with_unknown("step.pre").matches("later_list").count(), 2);
        assert_eq!(
            with_unknown("receipt.finalize")
                .matches("later_list")
                .count(),
            5
        );
    }
}
