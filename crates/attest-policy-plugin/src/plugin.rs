//! The plugin: reads the policy when it is greeted, and judges what it is sent.

use std::collections::BTreeSet;
use std::io::{self, BufReader, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use attest_plugin_protocol::{Announcement, Decision, Hook, Payload, Plugin, PluginName, Verdict};
use cli_shell::{CliError, Ui, exit};

use crate::policy::{Policy, Rule};
use crate::{NAME, judge, source, words};

/// The name to which it answers unless the core gives it another one.
const DEFAULT_NAME: &str = "policy";

/// Speaks the protocol until the core says that the run is over.
pub(crate) fn serve(ui: &Ui) -> Result<ExitCode, CliError> {
    let input = io::stdin();
    if input.is_terminal() {
        return Err(terminal());
    }
    let mut plugin = PolicyPlugin::from_environment()?;
    let served = attest_plugin_protocol::serve(
        &mut plugin,
        BufReader::new(input.lock()),
        io::stdout().lock(),
    );
    served.map_err(|error| {
        let message = format!("{NAME}: {error}");
        match error.exit_code() {
            exit::NO_CODE => CliError::no(message),
            _ => CliError::config(message),
        }
    })?;
    let notes = [plugin.not_judged(), plugin.about_no_step()];
    for note in notes.into_iter().flatten() {
        ui.status(format_args!("{NAME}: {note}"));
    }
    Ok(exit::ok())
}

fn terminal() -> CliError {
    CliError::usage(format!(
        "{NAME} is a plugin of attest: `attest run` starts it and speaks to it over standard input"
    ))
    .hint("declare it in .attest/plugins.toml; `attest-policy --help` shows how")
    .hint("`attest-policy check FILE` says what a policy asks for")
}

/// The plugin with what it remembers. No verdict depends on an earlier request.
#[derive(Debug)]
struct PolicyPlugin {
    name: PluginName,
    workspace: PathBuf,
    /// What `POLICY_FILE` says.
    file: Option<String>,
    policy: Option<Policy>,
    asked: BTreeSet<Hook>,
    /// The ids of rules about steps that the pipeline does not have.
    idle: Vec<String>,
    denied: bool,
}

impl PolicyPlugin {
    fn from_environment() -> Result<Self, CliError> {
        let var = |name| cli_shell::env::var(name).map_err(CliError::config);
        let name = var("ATTEST_PLUGIN_NAME")?;
        let name = name.as_deref().unwrap_or(DEFAULT_NAME).parse();
        let name = name.map_err(|error| CliError::config(error).because("ATTEST_PLUGIN_NAME"))?;
        // The working directory is the workspace, too.
        let workspace = var("ATTEST_WORKSPACE")?.unwrap_or_else(|| ".".to_owned());
        Ok(Self {
            name,
            workspace: workspace.into(),
            file: var("POLICY_FILE")?,
            policy: None,
            asked: BTreeSet::new(),
            idle: Vec::new(),
            denied: false,
        })
    }

    /// Names the rules that no request was about, which is no silence of theirs.
    fn not_judged(&self) -> Option<String> {
        let policy = self.policy.as_ref()?;
        if self.denied || self.asked.is_empty() {
            return None;
        }
        let missed = |rule: &&Rule| !rule.kind.hooks().iter().any(|it| self.asked.contains(it));
        let rules: Vec<String> = policy.rules.iter().filter(missed).map(named).collect();
        let rules = rules.join("; ");
        (!rules.is_empty())
            .then(|| format!("rules that were not judged, since nothing was asked: {rules}"))
    }

    fn about_no_step(&self) -> Option<String> {
        words::about_no_step(self.idle.iter().map(String::as_str)).filter(|_| !self.denied)
    }
}

fn named(rule: &Rule) -> String {
    let hooks: Vec<&str> = rule.kind.hooks().iter().map(|hook| hook.as_str()).collect();
    format!("{} (at {})", rule.id, hooks.join(", "))
}

impl Plugin for PolicyPlugin {
    fn hello(&mut self, _attest_version: &str) -> Result<Announcement, String> {
        let policy = source::policy(&self.workspace, self.file.as_deref())
            .map_err(|error| error.to_string())?;
        self.policy = Some(policy);
        let version = cli_shell::version().split(' ').next().unwrap_or_default();
        Ok(Announcement::new(
            self.name.clone(),
            version,
            &Hook::ALL,
            true,
        ))
    }

    fn judge(&mut self, payload: &Payload) -> Verdict {
        // No request comes before the greeting; without a policy nothing can be allowed.
        let Some(policy) = &self.policy else {
            return Verdict::deny(Vec::new());
        };
        self.asked.insert(payload.hook());
        if let Payload::Pipeline(pipeline) = payload {
            self.idle = policy.idle(pipeline).map(|rule| rule.id.clone()).collect();
        }
        let verdict = judge(policy, payload);
        self.denied |= verdict.decision == Decision::Deny;
        verdict
    }
}
