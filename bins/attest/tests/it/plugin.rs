//! Plugins as shell scripts, declared in a workspace: each test says what differs from one that
//! allows everything.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::bed::{Bed, Ran};

/// Every hook.
pub(crate) const ALL: [&str; 4] = [
    "pipeline.validate",
    "step.pre",
    "step.post",
    "receipt.finalize",
];

const PIPELINE: &str = "\
version: '1'
name: good
steps:
  make:
    run: cat in > out; echo made
    inputs: [in]
    outputs: [out]
";

/// What every script begins with. `$line` is the message, `$kind` and `$id` are in it.
const FUNCTIONS: &str = r#"#!/bin/sh
hello_ok() {
  printf '{"v":1,"id":%s,"kind":"hello_ok","name":"%s","version":"1.2.3","protocol":1,"hooks":[%s],"deterministic":%s}\n' \
    "$id" "$ATTEST_PLUGIN_NAME" "$hooks" "$deterministic"
}
verdict() { printf '{"v":1,"id":%s,"kind":"verdict","decision":"%s"%s}\n' "$id" "$1" "$2"; }
finding() { printf ',"findings":[{"rule":"%s","severity":"high","message":"%s"}]' "$1" "$2"; }
note() { printf '%s\n' "$*" >&2; }
on_hello() { hello_ok; }
on_request() { verdict allow; }
on_shutdown() { exit 0; }
"#;

/// What every script ends with.
const LOOP: &str = r#"
while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  kind=${line#*'"kind":"'}
  kind=${kind%%\"*}
  case $kind in
    hello) on_hello ;;
    shutdown) on_shutdown ;;
    *) on_request ;;
  esac
done
"#;

/// A plugin to be declared.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    pub(crate) name: String,
    pub(crate) hooks: Vec<&'static str>,
    pub(crate) deterministic: bool,
    /// What it announces in place of the hooks.
    pub(crate) announces: Option<Vec<&'static str>>,
    /// Functions that take the place of those that allow everything.
    pub(crate) body: String,
    /// More lines of its declaration.
    pub(crate) more: String,
}

impl Plugin {
    pub(crate) fn new(name: &str, hooks: &[&'static str]) -> Self {
        Self {
            name: name.to_owned(),
            hooks: hooks.to_vec(),
            deterministic: true,
            announces: None,
            body: String::new(),
            more: String::new(),
        }
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body.push_str(body);
        self.body.push('\n');
        self
    }

    pub(crate) fn more(mut self, line: &str) -> Self {
        self.more.push_str(line);
        self.more.push('\n');
        self
    }

    pub(crate) fn fail_open(self) -> Self {
        self.more("on_failure = \"fail-open\"")
    }

    /// The command of its declaration.
    pub(crate) fn command(&self, bed: &Bed) -> String {
        let path = bed.path(&format!("plugins/{}", self.name));
        path.to_str().unwrap().to_owned()
    }

    fn script(&self) -> String {
        let hooks = self.announces.as_ref().unwrap_or(&self.hooks);
        let hooks: Vec<_> = hooks.iter().map(|hook| format!("\"{hook}\"")).collect();
        let (hooks, deterministic) = (hooks.join(","), self.deterministic);
        let (name, body) = (&self.name, &self.body);
        // The name makes the digests of plugins differ.
        format!("{FUNCTIONS}# {name}\nhooks='{hooks}'\ndeterministic={deterministic}\n{body}{LOOP}")
    }

    pub(crate) fn declaration(&self, command: &str, digest: &str) -> String {
        let Self {
            name,
            hooks,
            deterministic,
            more,
            ..
        } = self;
        format!(
            "[[plugin]]\nname = \"{name}\"\ncommand = \"{command}\"\ndigest = \"{digest}\"\n\
             protocol = \"1\"\nhooks = {hooks:?}\ndeterministic = {deterministic}\n{more}"
        )
    }
}

/// Makes a program of the text.
pub(crate) fn program(bed: &Bed, name: &str, text: &str) {
    let path = bed.write(name, text);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The digest of a text as declarations have it.
pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> String {
    format!("blake3:{}", blake3::hash(bytes.as_ref()).to_hex())
}

/// Writes the scripts of the plugins and declares them in their order.
pub(crate) fn declare(bed: &Bed, plugins: &[Plugin]) {
    let mut text = "schema_version = 1\n".to_owned();
    for plugin in plugins {
        let script = plugin.script();
        program(bed, &format!("plugins/{}", plugin.name), &script);
        text += &plugin.declaration(&plugin.command(bed), &digest(script));
    }
    bed.write(".attest/plugins.toml", text);
}

/// A workspace with a pipeline of one step and the plugins.
pub(crate) fn bed(plugins: &[Plugin]) -> Bed {
    let bed = Bed::new();
    bed.write("attest.yaml", PIPELINE);
    bed.write("in", "source");
    declare(&bed, plugins);
    bed
}

/// The two ways of running something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Pipeline,
    Wrap,
}

pub(crate) const BOTH: [Way; 2] = [Way::Pipeline, Way::Wrap];

impl Way {
    /// Runs what makes `out` of `in`, with the receipt in `r.yaml`.
    pub(crate) fn run(self, bed: &Bed, more: &[&str]) -> Ran {
        bed.attest(&self.args(more))
    }

    pub(crate) fn args<'a>(self, more: &[&'a str]) -> Vec<&'a str> {
        let (first, last) = match self {
            Self::Pipeline => (&["run", "--receipt", "r.yaml"][..], &[][..]),
            Self::Wrap => (
                &[
                    "run",
                    "--wrap",
                    "--name",
                    "make",
                    "--input",
                    "in",
                    "--output",
                    "out",
                    "--receipt",
                    "r.yaml",
                ][..],
                &["--", "sh", "-c", "cat in > out; echo made"][..],
            ),
        };
        [first, more, last].concat()
    }
}

/// The receipt that a run left, as JSON; none if it left none.
pub(crate) fn receipt(bed: &Bed) -> Option<Value> {
    if !bed.path("r.yaml").exists() {
        return None;
    }
    let shown = bed
        .attest(&["show", "--format", "json", "r.yaml"])
        .expect(0);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    Some(shown["document"].clone())
}

/// The records of the receipt that a run left.
#[track_caller]
pub(crate) fn records(bed: &Bed) -> Vec<Value> {
    let receipt = receipt(bed).expect("a receipt");
    assert_eq!(receipt["schema_version"], 3, "{receipt}");
    receipt["plugins"].as_array().expect("records").clone()
}

/// The record of a plugin in the receipt that a run left.
#[track_caller]
pub(crate) fn record(bed: &Bed, name: &str) -> Value {
    let records = records(bed);
    let found = records.iter().find(|record| record["name"] == name);
    found
        .unwrap_or_else(|| panic!("{name} in {records:?}"))
        .clone()
}

/// Writes down every message.
pub(crate) const TELLS: &str = "\
on_any() { printf '%s\\n' \"$line\" >> \"$ATTEST_WORKSPACE/told.$ATTEST_PLUGIN_NAME\"; }
on_hello() { on_any; hello_ok; }
on_request() { on_any; verdict allow; }
on_shutdown() { on_any; exit 0; }";

/// The messages that a plugin was sent.
pub(crate) fn told(bed: &Bed, name: &str) -> Vec<Value> {
    let text = bed.read(&format!("told.{name}"));
    let parsed = text.lines().map(|line| serde_json::from_str(line).unwrap());
    parsed.collect()
}

/// The hooks and, where there is one, the name of the step.
pub(crate) fn kinds(messages: &[Value]) -> Vec<String> {
    let kinds = messages.iter().map(|message| {
        let kind = message["kind"].as_str().unwrap().to_owned();
        match message["payload"]["step"]["name"].as_str() {
            Some(step) => format!("{kind} {step}"),
            None => kind,
        }
    });
    kinds.collect()
}

pub(crate) fn denies(hook: &'static str) -> Plugin {
    Plugin::new("gate", &[hook])
        .body("on_request() { verdict deny \"$(finding no-go \"not $kind\")\"; }")
}
