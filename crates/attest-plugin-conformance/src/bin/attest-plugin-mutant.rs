//! The plugin that the tests of this crate run: a good one, with the one fault that it is told.
//!
//! Also their wrapper. It is built with the package, yet belongs to no product. It is written
//! without the protocol crate, which would not let it be wrong.

use std::io::{self, BufRead, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use strict_json::{Layout, Limits, parse_object};

const HOOKS: [&str; 4] = [
    "pipeline.validate",
    "step.pre",
    "step.post",
    "receipt.finalize",
];

const MESSAGE_BYTES: usize = 1_048_576;

fn main() -> ExitCode {
    if let Some(code) = process_tree::run_wrapper_if_asked() {
        return code;
    }
    let fault = std::env::args().nth(1).unwrap_or_default();
    let mut plugin = Plugin {
        fault,
        greeted: false,
        asked: 0,
    };
    match plugin.serve() {
        Ok(code) => ExitCode::from(code),
        Err(_) => ExitCode::from(1),
    }
}

struct Plugin {
    fault: String,
    greeted: bool,
    asked: u64,
}

impl Plugin {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn serve(&mut self) -> io::Result<u8> {
        self.begin()?;
        let mut input = io::stdin().lock();
        loop {
            let line = self.line(&mut input)?;
            if line.is_empty() {
                if self.has("outlives-input") {
                    forever();
                }
                return Ok(1);
            }
            let Some(message) = self.read(&line)? else {
                return Ok(1);
            };
            if let Some(code) = self.act(&message)? {
                return Ok(code);
            }
        }
    }

    fn begin(&self) -> io::Result<()> {
        match self.fault.as_str() {
            "banner" => say(b"ready\n")?,
            "ends-at-once" => return Err(io::ErrorKind::Other.into()),
            "needs-home" if variable("HOME").is_empty() => {
                return Err(io::ErrorKind::Other.into());
            }
            "ignores-sigterm" => {
                // A handler that does nothing; it stays when the runtime is gone.
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_io()
                    .build()?;
                let _guard = runtime.enter();
                drop(tokio::signal::unix::signal(
                    tokio::signal::unix::SignalKind::terminate(),
                )?);
            }
            _ => {}
        }
        Ok(())
    }

    fn line(&self, input: &mut impl BufRead) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        match self.fault.as_str() {
            "reads-once" => {
                let mut buffer = [0; 65_536];
                let count = input.read(&mut buffer)?;
                line.extend_from_slice(buffer.get(..count).unwrap_or_default());
            }
            "accepts-oversized" => drop(input.read_until(b'\n', &mut line)?),
            "small-buffer" => drop(input.take(65_536).read_until(b'\n', &mut line)?),
            _ => {
                let most = MESSAGE_BYTES as u64 + 1;
                input.take(most).read_until(b'\n', &mut line)?;
            }
        }
        let whole = line.ends_with(b"\n") || self.has("accepts-unterminated");
        Ok(if whole { line } else { Vec::new() })
    }

    /// Reads a message; nothing if there is no use in going on.
    fn read(&self, line: &[u8]) -> io::Result<Option<Value>> {
        let text = String::from_utf8_lossy(line);
        let line = match self.fault.as_str() {
            "accepts-invalid-utf8" => text.as_bytes(),
            _ => line,
        };
        let limits = Limits {
            bytes: 4 * MESSAGE_BYTES,
            depth: 128,
        };
        let strict = self.has("accepts-duplicate-keys")
            || parse_object(line, &limits, Layout::Spaced).is_ok();
        let message: Option<Value> = serde_json::from_slice(line).ok();
        match message.filter(|_| strict) {
            Some(message) => {
                let known = message.get("v") == Some(&json!(1)) || self.has("accepts-v2");
                Ok(known.then_some(message))
            }
            None if self.has("answers-garbage") => {
                say(b"{\"v\":1,\"id\":0,\"kind\":\"verdict\",\"decision\":\"allow\"}\n")?;
                Ok(None)
            }
            None if self.has("noise-on-garbage") => {
                say(b"{\"v\":1,\"id\":,\"kind\":\"verdict\",\"decision\":\"allow\"}\n")?;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Does what a message wants; returns the exit code if that was the last.
    fn act(&mut self, message: &Value) -> io::Result<Option<u8>> {
        let kind = message.get("kind").and_then(Value::as_str);
        match kind.unwrap_or_default() {
            "hello" if !self.greeted => self.hello(message),
            "shutdown" => self.leave(),
            kind if HOOKS.contains(&kind) => {
                if !self.greeted && !self.has("accepts-before-hello") {
                    return Ok(Some(1));
                }
                self.judge(kind, message)
            }
            _ => match self.fault.as_str() {
                "dies-on-unknown-kinds" => Ok(Some(1)),
                "answers-unknown-kinds-oddly" => {
                    write(&json!({"v": 1, "id": message["id"], "kind": "error"}))?;
                    Ok(None)
                }
                "answers-unknown-kinds" => {
                    let id = &message["id"];
                    write(&json!({"v": 1, "id": id, "kind": "verdict", "decision": "allow"}))?;
                    Ok(None)
                }
                _ => Ok(None),
            },
        }
    }

    fn hello(&mut self, message: &Value) -> io::Result<Option<u8>> {
        let offered = message["protocols"].as_array().cloned().unwrap_or_default();
        let known = 5;
        match self.fault.as_str() {
            "never-answers-hello" => forever(),
            "wants-one-major" if offered.len() != 1 => return Ok(Some(2)),
            "refuses-unknown-fields-of-hello"
                if message.as_object().is_some_and(|all| all.len() != known) =>
            {
                return Ok(Some(1));
            }
            "ignores-the-offer" | "claims-any-major" | "claims-two" => {}
            "leaves-other-majors-in-peace" if !offered.contains(&json!(1)) => return Ok(Some(0)),
            _ if !offered.contains(&json!(1)) => return Ok(Some(2)),
            _ => {}
        }
        self.greeted = true;
        let mut answer = json!({
            "v": 1, "id": 1, "kind": "hello_ok", "name": "mutant", "version": "1.0.0",
            "protocol": 1, "hooks": HOOKS, "deterministic": true,
        });
        let set = |answer: &mut Value, name: &str, value: Value| answer[name] = value;
        match self.fault.as_str() {
            "name-number" => set(&mut answer, "name", json!(7)),
            "name-upper-case" => set(&mut answer, "name", json!("Mutant")),
            "name-33" => set(&mut answer, "name", json!("x".repeat(33))),
            "name-varies" => set(
                &mut answer,
                "name",
                json!(format!("m{}", std::process::id())),
            ),
            "name-of-the-environment" => {
                let name = variable("ATTEST_PLUGIN_NAME");
                set(&mut answer, "name", json!(name));
            }
            "no-version" => drop(answer.as_object_mut().and_then(|all| all.remove("version"))),
            "no-version-to-tell" => set(&mut answer, "version", json!("")),
            "version-257" => set(&mut answer, "version", json!("x".repeat(257))),
            "protocol-text" => set(&mut answer, "protocol", json!("1")),
            "claims-two" => set(&mut answer, "protocol", json!(2)),
            "claims-any-major" => {
                let last = offered.last().cloned().unwrap_or_default();
                set(&mut answer, "protocol", last);
            }
            "hooks-of-numbers" => {
                let hooks = json!([
                    "pipeline.validate",
                    "step.pre",
                    "step.post",
                    "receipt.finalize",
                    1
                ]);
                set(&mut answer, "hooks", hooks);
            }
            "no-hooks" => set(&mut answer, "hooks", json!([])),
            "one-hook" => set(&mut answer, "hooks", json!(["receipt.finalize"])),
            "unknown-hook" => {
                let hooks: Vec<&str> = HOOKS.into_iter().chain(["step.later"]).collect();
                set(&mut answer, "hooks", json!(hooks));
            }
            "hook-twice" => {
                let hooks: Vec<&str> = HOOKS.into_iter().chain(["step.pre"]).collect();
                set(&mut answer, "hooks", json!(hooks));
            }
            "deterministic-text" => set(&mut answer, "deterministic", json!("true")),
            "counts-and-says-so" => set(&mut answer, "deterministic", json!(false)),
            "hello-v2" => set(&mut answer, "v", json!(2)),
            "hello-id-2" => set(&mut answer, "id", json!(2)),
            "hello-unknown-field" => set(&mut answer, "later", json!({"a": [null]})),
            "hello-duplicate-key" => {
                let line = answer.to_string().replacen('{', "{\"name\":\"mutant\",", 1);
                say(format!("{line}\n").as_bytes())?;
                return Ok(None);
            }
            _ => {}
        }
        self.answer(&answer)?;
        if self.has("speaks-up") {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                say(b"{\"v\":1,\"id\":1,\"kind\":\"verdict\",\"decision\":\"allow\"}\n")
            });
        }
        Ok(None)
    }

    fn judge(&mut self, kind: &str, message: &Value) -> io::Result<Option<u8>> {
        self.asked += 1;
        match self.fault.as_str() {
            "dies-after-50" if self.asked > 50 => return Ok(Some(1)),
            "late-at-step-post" if kind == "step.post" => forever(),
            "leaves-a-child" if self.asked == 1 => child(Stdio::null())?,
            "leaves-a-child-with-stdout" if self.asked == 1 => child(Stdio::inherit())?,
            "refuses-unknown-fields" if message.to_string().contains("later") => {
                return Ok(Some(1));
            }
            "debug-output" => say(b"debug: asked\n")?,
            _ => {}
        }
        let mut answer = json!({
            "v": 1, "id": message["id"], "kind": "verdict", "decision": "allow",
            "findings": [{
                "rule": "seen", "severity": "info", "message": "größe 試験", "resource": "step:x",
            }],
            "annotation": {"hook": kind, "numbers": [1, 1.5]},
        });
        self.spoil(kind, message, &mut answer);
        if self.has("duplicate-key") && kind == "step.pre" {
            let line = answer
                .to_string()
                .replacen('{', "{\"decision\":\"deny\",", 1);
            say(format!("{line}\n").as_bytes())?;
            return Ok(None);
        }
        self.answer(&answer)?;
        Ok(None)
    }

    fn spoil(&self, kind: &str, message: &Value, answer: &mut Value) {
        let id = message["id"].as_u64().unwrap_or_default();
        let finding = json!({"rule": "r", "severity": "low", "message": "m"});
        let with = |name: &str, value: Value| {
            let mut finding = finding.as_object().cloned().unwrap_or_default();
            finding.insert(name.to_owned(), value);
            json!([finding])
        };
        match self.fault.as_str() {
            "wrong-id" => answer["id"] = json!(id + 1),
            "text-id" => answer["id"] = json!(id.to_string()),
            "float-id" => answer["id"] = json!(id as f64),
            "forgets-large-ids" if id > 65_535 => answer["id"] = json!(id % 65_536),
            "verdict-v2" if kind == "step.pre" => answer["v"] = json!(2),
            "unknown-decision" if kind == "step.pre" => answer["decision"] = json!("permit"),
            "unknown-severity" if kind == "step.post" => {
                answer["findings"] = with("severity", json!("fatal"));
            }
            "other-kind" if kind == "pipeline.validate" => answer["kind"] = json!("answer"),
            "null-annotation" if kind == "receipt.finalize" => answer["annotation"] = Value::Null,
            "list-annotation" if kind == "step.pre" => answer["annotation"] = json!([]),
            "findings-object" if kind == "step.pre" => answer["findings"] = json!({}),
            "null-resource" if kind == "step.pre" => {
                answer["findings"] = with("resource", Value::Null);
            }
            "obeys-unknown-fields" => {
                if let Some(decision) = message.get("decision") {
                    answer["decision"] = decision.clone();
                }
            }
            "says-little" => {
                *answer = json!({"v": 1, "id": id, "kind": "verdict", "decision": "allow"})
            }
            "denies" => answer["decision"] = json!("deny"),
            "unknown-fields-of-its-own" => {
                answer["later"] = json!([1]);
                answer["findings"] = with("later", json!({"a": null}));
            }
            "findings-257" => answer["findings"] = json!(vec![finding; 257]),
            "rule-257" => answer["findings"] = with("rule", json!("x".repeat(257))),
            "resource-257" => answer["findings"] = with("resource", json!("x".repeat(257))),
            "message-4097" => answer["findings"] = with("message", json!("x".repeat(4_097))),
            "annotation-65537" => answer["annotation"] = json!({"a": "x".repeat(65_537 - 8)}),
            "annotation-depth-65" => answer["annotation"] = nested(65),
            "answer-over-1-mib" if kind == "receipt.finalize" => {
                answer["later"] = json!("x".repeat(MESSAGE_BYTES))
            }
            "at-every-limit" if kind != "step.pre" => {
                let text = |bytes: usize| "x".repeat(bytes);
                let largest = |message| {
                    json!({
                        "rule": text(256), "severity": "low", "message": text(message),
                        "resource": text(256),
                    })
                };
                let mut findings = vec![largest(1_024); 255];
                findings.push(largest(4_096));
                answer["findings"] = json!(findings);
                answer["annotation"] = match kind {
                    "step.post" => nested(64),
                    _ => json!({"a": text(65_536 - 8)}),
                };
            }
            "counts" | "counts-and-says-so" => answer["annotation"] = json!({"asked": self.asked}),
            "changes-its-mind" if self.asked > 15 => answer["decision"] = json!("warn"),
            "tells-the-process" => answer["annotation"] = json!({"pid": std::process::id()}),
            "tells-the-folder" => {
                let folder = variable("ATTEST_WORKSPACE");
                answer["annotation"] = json!({"folder": folder});
            }
            "tells-the-time" => answer["annotation"] = json!({"time": seconds()}),
            _ => {}
        }
    }

    /// Writes an answer in the manner of the fault.
    fn answer(&self, answer: &Value) -> io::Result<()> {
        let line = answer.to_string();
        let text = match self.fault.as_str() {
            "pretty" => format!("{answer:#}\n"),
            "spaced" => line.replacen("\"v\":", "\"v\": ", 1) + "\n",
            "crlf" => format!("{line}\r\n"),
            "two-lines" => format!("{line}\n{line}\n"),
            _ => format!("{line}\n"),
        };
        say(text.as_bytes())
    }

    fn leave(&self) -> io::Result<Option<u8>> {
        match self.fault.as_str() {
            "ignores-shutdown" => return Ok(None),
            "answers-shutdown" => say(b"{\"v\":1,\"id\":0,\"kind\":\"bye\"}\n")?,
            "says-goodbye" => say(b"bye\n")?,
            "leaves-with-3" => return Ok(Some(3)),
            "leaves-with-1-if-never-asked" if self.asked == 0 => return Ok(Some(1)),
            "half-a-line" => say(b"{\"v\":1")?,
            _ => {}
        }
        Ok(Some(0))
    }
}

fn say(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

fn write(answer: &Value) -> io::Result<()> {
    say(format!("{answer}\n").as_bytes())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a plugin reads the variables that it is given"
)]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!({}), |inner, _| json!({"a": inner}))
}

fn forever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(600));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "to leave a process behind is the fault"
)]
fn child(output: Stdio) -> io::Result<()> {
    Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "to read the clock is the fault")]
fn seconds() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
