//! Every message that the documentation shows is one that this crate reads and writes, to the byte.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use attest_plugin_protocol::{
        AfterStep, Announcement, BeforeStep, Expected, Hook, HostEvent, HostSession, Payload,
        PipelinePayload, PluginEvent, PluginSession, StepOutput, StepPlan, Verdict, encode,
    };
    use serde_json::Value;

    /// Some instant; nothing here waits.
    fn epoch() -> Instant {
        #[expect(
            clippy::disallowed_methods,
            reason = "an origin for a clock that stands still"
        )]
        Instant::now()
    }

    fn page() -> String {
        let page =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols/attest-plugin-1.md");
        std::fs::read_to_string(page).unwrap()
    }

    /// The messages in the page's `json` blocks.
    fn samples(page: &str) -> Vec<&str> {
        let blocks = page.split("\n```json\n").skip(1);
        blocks
            .flat_map(|block| block.split("\n```").next().unwrap().lines())
            .collect()
    }

    fn plugin(announcement: &Announcement) -> PluginSession {
        let mut session = PluginSession::new();
        session.receive(&encode::hello(1, "1.0.0")).unwrap();
        session.poll_event().unwrap();
        session.accept(announcement.clone()).unwrap();
        session
    }

    fn announcement() -> Announcement {
        Announcement::new("policy".parse().unwrap(), "1", &Hook::ALL, true)
    }

    /// A host whose plugin announced `announcement`, and the event that came of it.
    fn host(announcement: &Announcement) -> (HostSession, HostEvent) {
        let hooks = announcement.hooks.iter();
        let expected = Expected {
            name: announcement.name.clone(),
            hooks: hooks.map(|hook| hook.parse().unwrap()).collect(),
            deterministic: announcement.deterministic,
        };
        let now = epoch();
        let mut session = HostSession::new(expected, "1.0.0", Duration::from_secs(30), now);
        session.poll_transmit().unwrap();
        session.receive(now, &encode::hello_ok(1, announcement));
        let event = session.poll_event().unwrap();
        (session, event)
    }

    fn read_by_a_host(line: &str, id: u64) -> Verdict {
        let (mut session, _) = host(&announcement());
        let payload = Payload::BeforeStep(BeforeStep::default());
        let now = epoch();
        for before in 2..=id {
            session.request(now, &payload).unwrap();
            session.poll_transmit().unwrap();
            let answer = if before == id {
                line.as_bytes().to_vec()
            } else {
                encode::verdict(before, &Verdict::allow())
            };
            session.receive(now, &answer);
            match session.poll_event() {
                Some(HostEvent::Verdict(verdict)) if before == id => return verdict,
                Some(HostEvent::Verdict(_)) => {}
                other => panic!("{line}: {other:?}"),
            }
        }
        panic!("no answer has the id {id}");
    }

    /// What our own side writes for a message that it has read.
    fn rewritten(line: &str) -> Vec<u8> {
        let message: Value = serde_json::from_str(line).unwrap();
        let id = message["id"].as_u64().unwrap();
        let whole = format!("{line}\n");
        let kind = message["kind"].as_str().unwrap();
        match kind {
            "hello" => {
                let mut session = PluginSession::new();
                session.receive(whole.as_bytes()).unwrap();
                match session.poll_event() {
                    Some(PluginEvent::Hello { attest_version, .. }) => {
                        encode::hello(id, &attest_version)
                    }
                    other => panic!("{line}: {other:?}"),
                }
            }
            "hello_ok" => {
                let text = |name: &str| message[name].as_str().unwrap().to_owned();
                let hooks = message["hooks"].as_array().unwrap().iter();
                let hooks: Vec<Hook> = hooks
                    .map(|hook| hook.as_str().unwrap().parse().unwrap())
                    .collect();
                let shown = Announcement::new(
                    text("name").parse().unwrap(),
                    text("version"),
                    &hooks,
                    message["deterministic"].as_bool().unwrap(),
                );
                let (_, event) = host(&shown);
                assert_eq!(event, HostEvent::Ready(shown.clone()));
                encode::hello_ok(id, &shown)
            }
            "verdict" => encode::verdict(id, &read_by_a_host(&whole, id)),
            "shutdown" => {
                let mut session = plugin(&announcement());
                session.receive(whole.as_bytes()).unwrap();
                assert_eq!(session.poll_event(), Some(PluginEvent::Shutdown));
                encode::shutdown(id)
            }
            _ => {
                let mut session = plugin(&announcement());
                session.receive(whole.as_bytes()).unwrap();
                match session.poll_event() {
                    Some(PluginEvent::Request { id: found, payload }) => {
                        assert_eq!((found, payload.hook().as_str()), (id, kind));
                        encode::request(id, &payload)
                    }
                    other => panic!("{line}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn every_sample_of_the_documentation_is_what_the_code_writes() {
        let page = page();
        let mut kinds = BTreeSet::new();
        for line in samples(&page) {
            let again = String::from_utf8(rewritten(line)).unwrap();
            assert_eq!(again.strip_suffix('\n'), Some(line));
            let message: Value = serde_json::from_str(line).unwrap();
            kinds.insert(message["kind"].as_str().unwrap().to_owned());
        }
        let mut all: BTreeSet<String> = Hook::ALL.map(|hook| hook.to_string()).into();
        all.extend(["hello", "hello_ok", "verdict", "shutdown"].map(str::to_owned));
        assert_eq!(kinds, all);
    }

    /// A payload with everything in it has no field that the page does not name.
    #[test]
    fn every_field_of_the_samples_is_explained() {
        let page = page();
        let prose: String = page.split("\n```").step_by(2).collect();
        let mut fields = BTreeSet::new();
        for line in samples(&page) {
            let message: Value = serde_json::from_str(line).unwrap();
            // The fields of a receipt have a page of their own.
            if message["kind"] != "receipt.finalize" {
                names(&message, &mut fields);
            }
        }
        let text = || Some("x".to_owned());
        let plan = StepPlan {
            working_dir: text(),
            capsule: text(),
            timeout_secs: Some(1),
            ..StepPlan::default()
        };
        let whole = [
            Payload::Pipeline(PipelinePayload {
                path: text(),
                name: text(),
                version: text(),
                steps: vec![plan],
                ..PipelinePayload::default()
            }),
            Payload::BeforeStep(BeforeStep {
                capsule_hash: Some("0".repeat(64)),
                ..BeforeStep::default()
            }),
            Payload::AfterStep(AfterStep {
                output: Some(StepOutput::default()),
                ..AfterStep::default()
            }),
        ];
        let mut of_the_code = BTreeSet::new();
        for payload in whole {
            names(&serde_json::to_value(payload).unwrap(), &mut of_the_code);
        }
        let missing: Vec<&String> = of_the_code.difference(&fields).collect();
        assert!(missing.is_empty(), "no sample shows {missing:?}");
        // Names of variables and what an annotation holds are the user's own.
        for own in ["MODE", "compiler", "rules"] {
            fields.remove(own);
        }
        for field in fields {
            let named = format!("`{field}`");
            let of_a_finding = format!("`findings[].{field}`");
            assert!(
                prose.contains(&named) || prose.contains(&of_a_finding),
                "{field} is not explained"
            );
        }
    }

    fn names(value: &Value, fields: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let digits = value.as_str().unwrap_or_default().len();
                    assert!(
                        !name.ends_with("_hash") || matches!(digits, 0 | 64),
                        "{name}: {value}"
                    );
                    fields.insert(name.clone());
                    names(value, fields);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| names(item, fields)),
            _ => {}
        }
    }

    /// The page shows the file that the tests run.
    #[test]
    fn the_plugin_of_the_documentation_is_the_example() {
        let page = page();
        let shown = page.split("\n```sh\n").nth(1).unwrap();
        let shown = shown.split("```").next().unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/attest-noop.sh");
        let file = std::fs::read_to_string(file).unwrap();
        let code = shown.strip_prefix("#!/bin/sh\n").unwrap();
        assert!(code.contains("hello") && file.ends_with(code), "{code}");
    }

    /// The numbers of the page are those of the code.
    #[test]
    fn every_limit_of_the_documentation_is_the_one_of_the_code() {
        use attest_plugin_protocol as code;
        let page = page();
        let spaced = |number: usize| match number {
            0..1000 => number.to_string(),
            1000..1_000_000 => format!("{} {:03}", number / 1000, number % 1000),
            _ => format!(
                "{} {:03} {:03}",
                number / 1_000_000,
                number / 1000 % 1000,
                number % 1000
            ),
        };
        for (words, number) in [
            ("at most {} bytes before the line feed", code::MESSAGE_BYTES),
            ("at most {}; may be absent", code::FINDINGS),
            ("rule` | text of at most {} bytes |", code::RULE_BYTES),
            (
                "message` | text of at most {} bytes |",
                code::FINDING_MESSAGE_BYTES,
            ),
            (
                "resource` | text of at most {} bytes;",
                code::RESOURCE_BYTES,
            ),
            (
                "at most {} bytes in its compact form",
                code::ANNOTATION_BYTES,
            ),
            ("receipt stores it; {} levels", code::ANNOTATION_DEPTH),
            ("at most the last {} bytes each", code::OUTPUT_BYTES),
            ("version` | text of at most {} bytes;", code::VERSION_BYTES),
        ] {
            let words = words.replace("{}", &spaced(number));
            assert!(page.contains(&words), "{words}");
        }
        for (words, time) in [
            ("After {} s it gets SIGTERM", code::SHUTDOWN_GRACE),
            ("after {} s more it and all", code::TERMINATE_GRACE),
        ] {
            let words = words.replace("{}", &time.as_secs().to_string());
            assert!(page.contains(&words), "{words}");
        }
        let grace = format!("has {} ms in which", code::END_GRACE.as_millis());
        assert!(page.contains(&grace), "{grace}");
    }
}
