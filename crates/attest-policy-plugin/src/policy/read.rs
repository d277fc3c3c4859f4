//! The policy file as text.

use std::collections::BTreeSet;
use std::ops::Range;

use attest_plugin_protocol::{Decision, Severity};
use serde::Deserialize;
use toml::Spanned;

use super::{
    CommandRule, DurationRule, EnvRule, Kind, MAX_BYTES, MAX_RULES, OutputRule, Policy, Rule,
    Selector, StepRule,
};
use crate::pattern::{Pattern, PatternError};

/// Longest id of a rule in bytes.
const ID_BYTES: usize = 64;
/// Longest words of an author in bytes.
const MESSAGE_BYTES: usize = 256;
/// Most patterns of one list.
const PATTERNS: usize = 256;

/// Says why a file is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// More bytes than allowed; nothing was read.
    #[error("{0} bytes are more than the {MAX_BYTES} of a policy file")]
    TooLong(usize),
    /// No TOML, an unknown key, or a value that means nothing.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Why, with the key.
        reason: String,
    },
    /// No rule, which can hardly be meant.
    #[error("the policy has no rule")]
    Empty,
}

/// What is looked at before all else.
#[derive(Deserialize)]
struct Head {
    version: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Known to be 1; here it only has to stand.
    #[serde(rename = "version")]
    _version: i64,
    #[serde(default)]
    step: Vec<StepEntry>,
    #[serde(default)]
    command: Vec<CommandEntry>,
    #[serde(default)]
    env: Vec<EnvEntry>,
    #[serde(default)]
    output: Vec<OutputEntry>,
    #[serde(default)]
    duration: Vec<DurationEntry>,
}

type Text = Spanned<String>;
type Texts = Spanned<Vec<Text>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepEntry {
    id: Text,
    decision: Text,
    severity: Text,
    message: Option<Text>,
    required: Texts,
    ordered: Option<Spanned<bool>>,
    if_unknown: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandEntry {
    id: Text,
    decision: Text,
    severity: Text,
    message: Option<Text>,
    steps: Option<Texts>,
    allow: Option<Texts>,
    deny: Option<Texts>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvEntry {
    id: Text,
    decision: Text,
    severity: Text,
    message: Option<Text>,
    steps: Option<Texts>,
    forbidden: Texts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputEntry {
    id: Text,
    decision: Text,
    severity: Text,
    message: Option<Text>,
    steps: Option<Texts>,
    required: Texts,
    if_unknown: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DurationEntry {
    id: Text,
    decision: Text,
    severity: Text,
    message: Option<Text>,
    steps: Option<Texts>,
    step_secs: Option<Spanned<u64>>,
    total_secs: Option<Spanned<u64>>,
    if_unknown: Option<Text>,
}

pub(super) fn policy(bytes: &[u8]) -> Result<Policy, PolicyError> {
    let file = file(bytes)?;
    let reader = Reader { bytes };
    let mut rules = Vec::new();
    for entry in &file.step {
        rules.push(reader.step(entry)?);
    }
    for entry in &file.command {
        rules.push(reader.command(entry)?);
    }
    for entry in &file.env {
        rules.push(reader.env(entry)?);
    }
    for entry in &file.output {
        rules.push(reader.output(entry)?);
    }
    for entry in &file.duration {
        rules.push(reader.duration(entry)?);
    }
    // As the author wrote them: the kinds are read one after the other.
    rules.sort_by_key(|(at, _)| at.start);
    let mut seen = BTreeSet::new();
    for (index, (at, rule)) in rules.iter().enumerate() {
        if !seen.insert(rule.id.as_str()) {
            let reason = format!("`id`: another rule is called `{}` already", rule.id);
            return Err(reader.wrong(at.clone(), reason));
        }
        if index >= MAX_RULES {
            let reason = format!("this is one rule more than the {MAX_RULES} of a policy");
            return Err(reader.wrong(at.clone(), reason));
        }
    }
    if rules.is_empty() {
        return Err(PolicyError::Empty);
    }
    Ok(Policy {
        digest: format!("blake3:{}", blake3::hash(bytes).to_hex()),
        rules: rules.into_iter().map(|(_, rule)| rule).collect(),
    })
}

fn file(bytes: &[u8]) -> Result<File, PolicyError> {
    if bytes.len() > MAX_BYTES {
        return Err(PolicyError::TooLong(bytes.len()));
    }
    let reader = Reader { bytes };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| reader.wrong(error.valid_up_to()..error.valid_up_to(), "not UTF-8"))?;
    let wrong = |error: toml::de::Error| {
        reader.wrong(error.span().unwrap_or(0..0), in_words(error.message()))
    };
    // First of all: a file of another version may have keys that mean nothing here.
    let head: Head = toml::from_str(text).map_err(wrong)?;
    if let Some(version) = head.version
        && *version.get_ref() != 1
    {
        let reason = "`version` is 1; another version needs another program";
        return Err(reader.wrong(version.span(), reason));
    }
    toml::from_str(text).map_err(wrong)
}

/// Says of a type what the author of a file calls it.
fn in_words(message: &str) -> String {
    match message {
        "invalid type: map, expected a sequence" => {
            "a table where a list is expected; a rule begins with two brackets, as in `[[step]]`"
                .to_owned()
        }
        _ => message.replace("expected a sequence", "expected a list"),
    }
}

/// Where a rule starts, and the rule.
type Placed = (Range<usize>, Rule);

/// What all rules have. It is no part of the entries, for serde flattens no closed table.
struct Common<'a> {
    id: &'a Text,
    decision: &'a Text,
    severity: &'a Text,
    message: Option<&'a Text>,
}

macro_rules! common {
    ($entry:ident) => {
        Common {
            id: &$entry.id,
            decision: &$entry.decision,
            severity: &$entry.severity,
            message: $entry.message.as_ref(),
        }
    };
}

/// Turns entries into rules; knows the lines.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn step(&self, entry: &StepEntry) -> Result<Placed, PolicyError> {
        let at = entry.id.span();
        let decision = self.decision("decision", &entry.decision)?;
        let required = self.patterns("required", &entry.required, Pattern::new)?;
        let ordered = entry.ordered.as_ref().is_some_and(|it| *it.get_ref());
        let lone = ordered && required.len() < 2;
        if let Some(switch) = entry.ordered.as_ref().filter(|_| lone) {
            let reason = "`ordered`: there is no order of fewer than two `required` steps";
            return Err(self.wrong(switch.span(), reason));
        }
        let kind = Kind::Step(StepRule {
            required,
            ordered,
            if_unknown: self.if_unknown(entry.if_unknown.as_ref(), decision)?,
        });
        Ok((at, self.rule(&common!(entry), kind)?))
    }

    fn command(&self, entry: &CommandEntry) -> Result<Placed, PolicyError> {
        let at = entry.id.span();
        if entry.allow.is_none() && entry.deny.is_none() {
            return Err(self.wrong(at, "a command rule has `allow`, `deny` or both"));
        }
        let allow = entry.allow.as_ref();
        let deny = entry.deny.as_ref();
        let kind = Kind::Command(CommandRule {
            steps: self.selector(entry.steps.as_ref())?,
            allow: allow.map_or(Ok(Vec::new()), |list| {
                self.patterns("allow", list, Pattern::of_allowed)
            })?,
            deny: deny.map_or(Ok(Vec::new()), |list| {
                self.patterns("deny", list, Pattern::of_command)
            })?,
        });
        Ok((at, self.rule(&common!(entry), kind)?))
    }

    fn env(&self, entry: &EnvEntry) -> Result<Placed, PolicyError> {
        let at = entry.id.span();
        let kind = Kind::Env(EnvRule {
            steps: self.selector(entry.steps.as_ref())?,
            forbidden: self.patterns("forbidden", &entry.forbidden, Pattern::of_variable)?,
        });
        Ok((at, self.rule(&common!(entry), kind)?))
    }

    fn output(&self, entry: &OutputEntry) -> Result<Placed, PolicyError> {
        let at = entry.id.span();
        let decision = self.decision("decision", &entry.decision)?;
        let kind = Kind::Output(OutputRule {
            steps: self.selector(entry.steps.as_ref())?,
            required: self.patterns("required", &entry.required, Pattern::of_output)?,
            if_unknown: self.if_unknown(entry.if_unknown.as_ref(), decision)?,
        });
        Ok((at, self.rule(&common!(entry), kind)?))
    }

    fn duration(&self, entry: &DurationEntry) -> Result<Placed, PolicyError> {
        let at = entry.id.span();
        let decision = self.decision("decision", &entry.decision)?;
        let step_secs = entry.step_secs.as_ref().map(|secs| *secs.get_ref());
        let total_secs = entry.total_secs.as_ref().map(|secs| *secs.get_ref());
        if step_secs.is_none() && total_secs.is_none() {
            let reason = "a duration rule has `step_secs`, `total_secs` or both";
            return Err(self.wrong(at, reason));
        }
        if let Some(steps) = entry.steps.as_ref().filter(|_| step_secs.is_none()) {
            let reason = "`steps` without `step_secs`: the total is that of every step";
            return Err(self.wrong(steps.span(), reason));
        }
        let kind = Kind::Duration(DurationRule {
            steps: self.selector(entry.steps.as_ref())?,
            step_secs,
            total_secs,
            if_unknown: self.if_unknown(entry.if_unknown.as_ref(), decision)?,
        });
        Ok((at, self.rule(&common!(entry), kind)?))
    }

    fn rule(&self, common: &Common<'_>, kind: Kind) -> Result<Rule, PolicyError> {
        let id = common.id.get_ref();
        let letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
        if id.is_empty() || id.len() > ID_BYTES || !id.bytes().all(letter) {
            let reason = format!("`id` is 1 to {ID_BYTES} of a-z, 0-9, `-`, `_` and `.`");
            return Err(self.wrong(common.id.span(), reason));
        }
        if let Some(message) = common.message {
            let text = message.get_ref();
            let hidden = bounded::text::has_control_or_format(text);
            if text.trim().is_empty() || text.len() > MESSAGE_BYTES || hidden {
                let reason =
                    format!("`message` is one line of 1 to {MESSAGE_BYTES} bytes that all show");
                return Err(self.wrong(message.span(), reason));
            }
        }
        Ok(Rule {
            id: id.clone(),
            decision: self.decision("decision", common.decision)?,
            severity: self.severity(common.severity)?,
            message: common.message.map(|text| text.get_ref().clone()),
            kind,
        })
    }

    fn decision(&self, key: &str, word: &Text) -> Result<Decision, PolicyError> {
        match word.get_ref().as_str() {
            "warn" => Ok(Decision::Warn),
            "deny" => Ok(Decision::Deny),
            _ => Err(self.wrong(word.span(), format!("`{key}` is \"warn\" or \"deny\""))),
        }
    }

    fn if_unknown(&self, word: Option<&Text>, decision: Decision) -> Result<Decision, PolicyError> {
        word.map_or(Ok(decision), |word| self.decision("if_unknown", word))
    }

    fn severity(&self, word: &Text) -> Result<Severity, PolicyError> {
        word.get_ref().parse().map_err(|_| {
            let words: Vec<&str> = Severity::ALL.map(Severity::as_str).to_vec();
            let reason = format!("`severity` is one of {}", words.join(", "));
            self.wrong(word.span(), reason)
        })
    }

    fn selector(&self, steps: Option<&Texts>) -> Result<Selector, PolicyError> {
        steps.map_or(Ok(Selector::Every), |steps| {
            self.patterns("steps", steps, Pattern::new)
                .map(Selector::Named)
        })
    }

    fn patterns(
        &self,
        key: &str,
        list: &Texts,
        read: fn(&str) -> Result<Pattern, PatternError>,
    ) -> Result<Vec<Pattern>, PolicyError> {
        let texts = list.get_ref();
        if texts.is_empty() || texts.len() > PATTERNS {
            let reason = format!("`{key}` is a list of 1 to {PATTERNS} patterns");
            return Err(self.wrong(list.span(), reason));
        }
        let mut seen = BTreeSet::new();
        let mut patterns = Vec::with_capacity(texts.len());
        for text in texts {
            let pattern = read(text.get_ref())
                .map_err(|error| self.wrong(text.span(), format!("`{key}`: a pattern {error}")))?;
            if !seen.insert(text.get_ref()) {
                let reason = format!("`{key}`: the pattern stands twice");
                return Err(self.wrong(text.span(), reason));
            }
            patterns.push(pattern);
        }
        Ok(patterns)
    }

    fn wrong(&self, at: Range<usize>, reason: impl AsRef<str>) -> PolicyError {
        let before = self.bytes.iter().take(at.start);
        PolicyError::Line {
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
            reason: bounded::text::visible(reason.as_ref()),
        }
    }
}
