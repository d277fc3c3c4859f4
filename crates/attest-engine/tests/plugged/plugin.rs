//! Plugins as shell scripts, and the runs that they are asked about.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use attest_engine::hooks::Hooks;
use attest_engine::layout::State;
use attest_engine::output::Record;
use attest_engine::plugins::PluginHooks;
use attest_engine::repro::{self, ReproError, ReproOutcome};
use attest_engine::run::{Environment, Place, RunError, RunOptions, RunOutcome, pipeline};
use attest_engine::step::Input;
use attest_engine::wrap::{self, WrapOptions, WrapOutcome};
use attest_plugin_host::{HostOptions, Plugins, RunLog, SearchPath, StartError, Strictness};
use attest_receipt::receipt::{PluginRecord, Receipt};
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

use crate::support::{Seen, World, runtime};

/// Every hook.
pub(crate) const ALL: &[&str] = &[
    "pipeline.validate",
    "step.pre",
    "step.post",
    "receipt.finalize",
];

/// What every script begins with; each request is kept in a file as it came.
const START: &str = r#"#!/bin/sh
note() { printf '%s\n' "$*" >> "$ATTEST_PLUGIN_NAME.log"; }
hello_ok() { printf '{"v":1,"id":%s,"kind":"hello_ok","name":"%s","version":"1.2.3","protocol":1,"hooks":[%s],"deterministic":%s}\n' "$id" "$ATTEST_PLUGIN_NAME" "$hooks" "$deterministic"; }
verdict() { printf '{"v":1,"id":%s,"kind":"verdict","decision":"%s"%s}\n' "$id" "$1" "$2"; }
on_request() { verdict allow; }
on_shutdown() { exit 0; }
"#;

const LOOP: &str = r#"
echo $$ > "$ATTEST_PLUGIN_NAME.pid"
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  kind=${line#*'"kind":"'}; kind=${kind%%\"*}
  note "$line"
  case $kind in
    hello) hello_ok ;;
    shutdown) on_shutdown ;;
    *) on_request ;;
  esac
done
"#;

/// A plugin to be declared.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    pub(crate) name: &'static str,
    pub(crate) hooks: &'static [&'static str],
    pub(crate) deterministic: bool,
    /// What it does with a request, in place of allowing it.
    pub(crate) answer: &'static str,
    /// More lines of its declaration.
    pub(crate) more: &'static str,
    /// Another command than its script.
    pub(crate) command: Option<&'static str>,
}

impl Plugin {
    /// A plugin that answers every hook by these lines of shell.
    pub(crate) const fn new(name: &'static str, answer: &'static str) -> Self {
        Self {
            name,
            hooks: ALL,
            deterministic: true,
            answer,
            more: "",
            command: None,
        }
    }

    pub(crate) const fn fail_open(self) -> Self {
        Self {
            more: "on_failure = \"fail-open\"\n",
            ..self
        }
    }

    fn script(&self) -> String {
        let hooks: Vec<_> = self
            .hooks
            .iter()
            .map(|hook| format!("\"{hook}\""))
            .collect();
        let (hooks, deterministic) = (hooks.join(","), self.deterministic);
        let answer = match self.answer {
            "" => String::new(),
            answer => format!("on_request() {{\n{answer}\n}}\n"),
        };
        format!("{START}hooks='{hooks}'\ndeterministic={deterministic}\n{answer}{LOOP}")
    }

    fn declaration(&self, world: &World) -> String {
        let script = self.script();
        let path = format!("plugins/{}", self.name);
        world.write(&path, &script);
        let mode = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(world.path(&path), mode).unwrap();
        let command = world.path(&path).display().to_string();
        let command = self.command.map_or(command, str::to_owned);
        format!(
            "[[plugin]]\nname = {:?}\ncommand = {command:?}\ndigest = {:?}\nprotocol = \"1\"\n\
             hooks = {:?}\ndeterministic = {}\n{}",
            self.name,
            digest(&script),
            self.hooks,
            self.deterministic,
            self.more
        )
    }
}

pub(crate) fn digest(text: &str) -> String {
    format!("blake3:{}", blake3::hash(text.as_bytes()).to_hex())
}

impl World {
    pub(crate) fn declare(&self, plugins: &[Plugin]) {
        let plugins: Vec<_> = plugins.iter().map(|one| one.declaration(self)).collect();
        let text = format!("schema_version = 1\n{}", plugins.concat());
        self.write(".attest/plugins.toml", &text);
    }

    /// What a plugin was sent, one message a line.
    pub(crate) fn sent(&self, plugin: &str) -> Vec<serde_json::Value> {
        let log = fs_err::read_to_string(self.path(&format!("{plugin}.log"))).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The kinds of the messages that a plugin was sent, with the names of steps.
    pub(crate) fn kinds(&self, plugin: &str) -> Vec<String> {
        let sent = self.sent(plugin);
        let kind = |message: &serde_json::Value| {
            let kind = message["kind"].as_str().unwrap();
            match message["payload"]["step"]["name"].as_str() {
                Some(step) => format!("{kind} {step}"),
                None => kind.to_owned(),
            }
        };
        sent.iter().map(kind).collect()
    }

    pub(crate) fn payloads(&self, plugin: &str, kind: &str) -> Vec<serde_json::Value> {
        let mut sent = self.sent(plugin);
        sent.retain(|message| message["kind"] == kind);
        sent.into_iter()
            .map(|mut message| message["payload"].take())
            .collect()
    }

    /// Whether the process of a plugin is there.
    pub(crate) fn lives(&self, plugin: &str) -> bool {
        let pid = self.read(&format!("{plugin}.pid"));
        std::path::Path::new("/proc").join(pid.trim()).exists()
    }

    pub(crate) fn wrapped(&self, command: &[&str]) -> WrapOptions<'static> {
        WrapOptions {
            state: State::choose(&self.path(""), None, None),
            name: "build".into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            environment: Environment(cli_shell::env::pick(["PATH"])),
            secrets: Vec::new(),
            input: Input::Nothing,
            wrapper: wrapper(),
            record: Record::Tail,
            signing: None,
            place: Place::Receipts,
            attest_version: "1.2.3".into(),
            now: || "2026-11-30T12:00:00Z".parse().unwrap(),
            cancel: CancellationToken::new(),
        }
    }
}

fn wrapper() -> Wrapper {
    Wrapper::new(env!("CARGO_BIN_EXE_attest-engine-fixture"))
}

/// The lines of the run log.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl RunLog for Lines {
    fn line(&self, plugin: &str, line: &str) {
        self.0.lock().unwrap().push(format!("{plugin}: {line}"));
    }
}

async fn hooks(world: &World, cancel: &CancellationToken) -> Result<PluginHooks, StartError> {
    let plugins = Plugins::load(&world.path(""), Strictness::Run).unwrap();
    let options = HostOptions {
        workspace: world.path(""),
        attest_version: "1.2.3".into(),
        search: SearchPath::new(cli_shell::env::required("PATH").unwrap()),
        wrapper: wrapper(),
        log: Arc::new(Lines::default()),
        cancel: cancel.clone(),
    };
    PluginHooks::start(&plugins.unwrap_or_default(), options).await
}

/// Runs a pipeline with the declared plugins.
pub(crate) fn run(world: &World, options: &RunOptions<'_>) -> Result<RunOutcome, RunError> {
    runtime().block_on(async {
        let mut hooks = hooks(world, &options.cancel).await.unwrap();
        let done = pipeline(options, &Seen::default(), &mut hooks).await;
        // As the command line does, also where the run ended early.
        hooks.finish().await;
        done
    })
}

/// Builds twice with the declared plugins.
pub(crate) fn check(world: &World, options: &RunOptions<'_>) -> Result<ReproOutcome, ReproError> {
    runtime().block_on(async {
        let mut hooks = hooks(world, &options.cancel).await.unwrap();
        let done = repro::check(options, &Seen::default(), &mut hooks).await;
        // As the command line does, also where the run ended early.
        hooks.finish().await;
        done
    })
}

/// Wraps a command with the declared plugins.
pub(crate) fn wrap(world: &World, options: &WrapOptions<'_>) -> WrapOutcome {
    runtime().block_on(async {
        let mut hooks = hooks(world, &options.cancel).await.unwrap();
        let done = wrap::run(options, &Seen::default(), &mut hooks).await;
        // As the command line does, also where the run ended early.
        hooks.finish().await;
        done
    })
}

/// Runs a pipeline with the declared plugins, and interrupts it once something is so.
pub(crate) fn asked_while(
    world: &World,
    options: &RunOptions<'_>,
    so: impl Future<Output = ()>,
) -> Result<RunOutcome, RunError> {
    runtime().block_on(async {
        let mut hooks = hooks(world, &options.cancel).await.unwrap();
        let seen = Seen::default();
        let interrupt = async {
            so.await;
            options.cancel.cancel();
        };
        let (done, ()) = tokio::join!(pipeline(options, &seen, &mut hooks), interrupt);
        hooks.finish().await;
        done
    })
}

/// Does the same with a wrapped command.
pub(crate) fn wrapped_while(
    world: &World,
    options: &WrapOptions<'_>,
    so: impl Future<Output = ()>,
) -> WrapOutcome {
    runtime().block_on(async {
        let mut hooks = hooks(world, &options.cancel).await.unwrap();
        let seen = Seen::default();
        let interrupt = async {
            so.await;
            options.cancel.cancel();
        };
        let (done, ()) = tokio::join!(wrap::run(options, &seen, &mut hooks), interrupt);
        hooks.finish().await;
        done
    })
}

/// The record of a plugin.
#[track_caller]
pub(crate) fn record<'a>(receipt: &'a Receipt, name: &str) -> &'a PluginRecord {
    assert_eq!(receipt.schema_version, Some(3));
    let records = receipt.plugins.iter().flatten();
    let mut found = records.filter(|record| record.name == name);
    found.next().unwrap_or_else(|| panic!("no {name}"))
}
