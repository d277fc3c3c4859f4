//! What a scenario stands on: the plugin, what it said of itself, and how a session begins.

use std::time::Duration;

use attest_plugin_protocol::PluginName;

use crate::limits::Limits;
use crate::message::Message;
use crate::payload::{HOOKS, Hook};
use crate::session::Session;
use crate::shown;
use crate::target::Target;

/// How a scenario ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// The plugin did what the protocol asks.
    Pass,
    /// It did, but something about it is unwise.
    Warn,
    /// It did not.
    Fail,
    /// The scenario does not apply to this plugin.
    Skip,
}

/// One line of a report.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The scenario's name.
    pub name: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was expected and what came, on one line; absent where it passed.
    pub reason: Option<String>,
    /// How long the plugin was run for.
    pub duration: Duration,
}

/// What a scenario found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Finding {
    /// The rule is kept.
    Kept,
    /// It is, but something could be better.
    Advice(String),
    /// It has no meaning for this plugin.
    Skipped(String),
}

/// A finding, or how the rule is broken.
pub(crate) type Judged = Result<Finding, String>;

/// What a plugin said of itself, as far as it could be understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announced {
    pub(crate) name: Option<String>,
    pub(crate) hooks: Vec<String>,
    pub(crate) deterministic: Option<bool>,
}

impl Announced {
    pub(crate) fn read(message: &Message) -> Self {
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let member = |name| message.value.get(name);
        Self {
            name: member("name").and_then(text),
            hooks: member("hooks")
                .and_then(serde_json::Value::as_array)
                .map(|all| all.iter().filter_map(text).collect())
                .unwrap_or_default(),
            deterministic: member("deterministic").and_then(serde_json::Value::as_bool),
        }
    }

    /// The hooks of this major version among those announced.
    pub(crate) fn known(&self) -> impl Iterator<Item = Hook> {
        HOOKS
            .into_iter()
            .filter(|hook| self.hooks.iter().any(|one| one == hook))
    }
}

/// What every scenario is given.
pub(crate) struct Stage<'a> {
    pub(crate) target: &'a Target,
    pub(crate) limits: Limits,
    pub(crate) announced: &'a Announced,
}

impl Stage<'_> {
    /// Starts a process that has been told nothing yet.
    pub(crate) async fn start(&self) -> Result<Session, String> {
        self.start_with(&[]).await
    }

    /// Starts a process with more variables than a run gives.
    pub(crate) async fn start_with(&self, more: &[(&str, &str)]) -> Result<Session, String> {
        let told = || self.announced.name.as_ref()?.parse::<PluginName>().ok();
        let name = self.target.name.clone().or_else(told);
        let name = name.map_or_else(|| self.target.first_name(), |name| name.to_string());
        match self.target.start(&name, more).await {
            Ok(started) => Ok(Session::new(started, self.limits)),
            Err(error) => Err(shown::explain(&error)),
        }
    }

    /// Starts a process and leads it past `hello`.
    pub(crate) async fn open(&self) -> Result<Session, String> {
        self.opened().await.map(|(session, _)| session)
    }

    /// Does the same and returns the answer too.
    pub(crate) async fn opened(&self) -> Result<(Session, Message), String> {
        let mut session = self.start().await?;
        let answer = self.greet(&mut session, "[1]").await?;
        Ok((session, answer))
    }

    /// Sends `hello` with an offer and returns what must be `hello_ok`.
    pub(crate) async fn greet(
        &self,
        session: &mut Session,
        protocols: &str,
    ) -> Result<Message, String> {
        let hello = self.hello(session.id(), protocols, "");
        session.send(&hello).await?;
        let answer = session.message("`hello`").await?;
        if answer.kind() == Some("hello_ok") {
            return Ok(answer);
        }
        Err(format!(
            "expected `hello_ok` for `hello`, got {}",
            answer.quoted()
        ))
    }

    /// Writes `hello`, with more members if there are to be any.
    pub(crate) fn hello(&self, id: u64, protocols: &str, more: &str) -> String {
        let version = serde_json::Value::from(self.target.attest_version.as_str());
        format!(
            r#"{{"v":1,"id":{id},"kind":"hello","attest_version":{version},"protocols":{protocols}{more}}}"#
        )
    }

    /// Returns the hook that scenarios use which need any.
    pub(crate) fn hook(&self) -> Result<Hook, String> {
        let preferred = ["step.pre", "step.post"];
        let known = || self.announced.known();
        known()
            .find(|hook| preferred.contains(hook))
            .or_else(|| known().next())
            .ok_or_else(|| {
                "it announces none of the four hooks, so nothing can be asked".to_owned()
            })
    }
}
