//! What plugins made of two builds (attest-plugin/1, section 9).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use attest_receipt::receipt::{Decision, PluginRecord};
use bounded::text::head;
use serde::{Serialize, Serializer};
use strict_json::Json;

use crate::hooks::Stop;
use crate::output::Secrets;

/// How many differences of one annotation are named.
const NAMED: usize = 10;
/// Longest place in an annotation that is told, in bytes.
const POINTER: usize = 256;

/// How a plugin's answers compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginReport {
    /// Its name.
    pub name: String,
    /// Whether its answers to both builds were compared.
    pub compared: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What differs.
    pub differs: Vec<PluginDifference>,
}

/// One thing in which a plugin's answers to two builds differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginDifference {
    /// The worst decision on each build.
    Decision(Decision, Decision),
    /// Only one build has an annotation.
    OneAnnotation,
    /// A value of the annotation, by its JSON pointer (RFC 6901).
    Annotation(String),
    /// There is more than is named.
    More,
}

impl fmt::Display for PluginDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decision(a, b) => write!(f, "decision {} vs {}", word(*a), word(*b)),
            Self::OneAnnotation => f.write_str("annotation in one build only"),
            Self::Annotation(pointer) => write!(f, "annotation differs at {pointer}"),
            Self::More => f.write_str("annotation differs in more places"),
        }
    }
}

impl Serialize for PluginDifference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Skipped => "skipped",
        Decision::Allow => "allow",
        Decision::Warn => "warn",
        Decision::Deny => "deny",
        Decision::Error => "error",
    }
}

/// What was recorded of two builds that plugins were asked about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) first: &'a [PluginRecord],
    /// None where there was no second build.
    pub(super) second: Option<&'a [PluginRecord]>,
    /// Who stopped the second build; nobody else's answers to it are whole.
    pub(super) stopped: Option<&'a Stop>,
    /// What is recorded of both together.
    pub(super) both: &'a [PluginRecord],
}

impl Judged<'_> {
    /// Compares what each plugin decided and noted.
    pub(super) fn compare(self, secrets: &Secrets) -> Vec<PluginReport> {
        let known = |records: &'_ [PluginRecord]| -> BTreeMap<String, PluginRecord> {
            let records = records.iter();
            records.map(|r| (r.name.clone(), r.clone())).collect()
        };
        let (first, second) = (known(self.first), known(self.second.unwrap_or_default()));
        let both = known(self.both);
        both.values()
            .map(|record| {
                let builds = (first.get(&record.name), second.get(&record.name));
                let (reason, differs) = match self.excluded(record, builds) {
                    Ok((a, b)) => (None, differences(a, b, secrets)),
                    Err(reason) => (Some(reason), Vec::new()),
                };
                PluginReport {
                    name: record.name.clone(),
                    compared: reason.is_none(),
                    reason,
                    differs,
                }
            })
            .collect()
    }

    fn excluded<'a>(
        self,
        record: &PluginRecord,
        builds: (Option<&'a PluginRecord>, Option<&'a PluginRecord>),
    ) -> Result<(&'a PluginRecord, &'a PluginRecord), String> {
        if !record.deterministic {
            return Err(NON_DETERMINISTIC.into());
        }
        let (Some(a), Some(b)) = builds else {
            return Err("there was no second build".into());
        };
        if let Some(stop) = self.stopped.filter(|stop| stop.plugin != record.name) {
            let who = &stop.plugin;
            return Err(format!("the second build was stopped by plugin {who}"));
        }
        if a.decision == Decision::Skipped && b.decision == Decision::Skipped {
            return Err(match (record.decision, &record.reason) {
                (Decision::Error, Some(why)) => format!("it failed before it was asked: {why}"),
                _ => "it was never asked".into(),
            });
        }
        Ok((a, b))
    }
}

/// Why a plugin is left out of the comparison by its own declaration.
const NON_DETERMINISTIC: &str = "declared non-deterministic";

impl PluginReport {
    /// Tells whether its answers were compared and differ.
    #[must_use]
    pub fn has_differences(&self) -> bool {
        !self.differs.is_empty()
    }

    /// Returns what is to be said of it as lines for people; none if it answered both alike.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let start = format!("reproducibility: plugin {}", self.name);
        if let Some(reason) = &self.reason {
            let how = match reason.as_str() {
                NON_DETERMINISTIC => "excluded",
                _ => "not compared",
            };
            let reason = bounded::text::visible(reason);
            lines.push(format!("{start} {how}: {reason}"));
        }
        for difference in &self.differs {
            let told = bounded::text::visible(&difference.to_string());
            lines.push(match difference {
                PluginDifference::Decision(..) => format!("{start} differs: {told}"),
                _ => format!("{start} {told}"),
            });
        }
        lines
    }
}

fn differences(a: &PluginRecord, b: &PluginRecord, secrets: &Secrets) -> Vec<PluginDifference> {
    let mut differs = Vec::new();
    if a.decision != b.decision {
        differs.push(PluginDifference::Decision(a.decision, b.decision));
    }
    match (&a.annotation, &b.annotation) {
        (Some(a), Some(b)) => {
            let mut found = Places::default();
            found.compare(a, b);
            let places = found.places.iter();
            differs.extend(places.map(|at| PluginDifference::Annotation(shortened(at, secrets))));
            if found.more {
                differs.push(PluginDifference::More);
            }
        }
        (None, None) => {}
        _ => differs.push(PluginDifference::OneAnnotation),
    }
    differs
}

/// A key is as long as a plugin likes.
fn shortened(pointer: &str, secrets: &Secrets) -> String {
    let mut pointer = secrets.replace(pointer);
    if pointer.len() > POINTER {
        pointer.truncate(head(&pointer, POINTER).len());
        pointer.push('…');
    }
    pointer
}

/// The places in which two annotations differ, in their order.
#[derive(Default)]
struct Places {
    at: Vec<String>,
    places: Vec<String>,
    more: bool,
}

impl Places {
    /// An annotation's own depth bounds the recursion.
    fn compare(&mut self, a: &Json, b: &Json) {
        if self.more || same(a, b) {
            return;
        }
        match (a, b) {
            (Json::Object(a), Json::Object(b)) => {
                let keys: BTreeSet<&str> = a.iter().chain(b.iter()).map(|(key, _)| key).collect();
                for key in keys {
                    self.member(&escaped(key), a.get(key), b.get(key));
                }
            }
            (Json::Array(a), Json::Array(b)) => {
                for index in 0..a.len().max(b.len()) {
                    self.member(&index.to_string(), a.get(index), b.get(index));
                }
            }
            _ => self.note(),
        }
    }

    fn member(&mut self, token: &str, a: Option<&Json>, b: Option<&Json>) {
        self.at.push(token.to_owned());
        match (a, b) {
            (Some(a), Some(b)) => self.compare(a, b),
            _ => self.note(),
        }
        self.at.pop();
    }

    fn note(&mut self) {
        if self.places.len() == NAMED {
            self.more = true;
            return;
        }
        let mut place = String::new();
        for token in &self.at {
            place.push('/');
            place.push_str(token);
        }
        self.places.push(place);
    }
}

/// Compares what a receipt would hold: `-0.0` and `0.0` are two texts.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.to_bits() == b.to_bits(),
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            let mut pairs = a.iter().zip(b.iter());
            a.len() == b.len() && pairs.all(|((k, a), (l, b))| k == l && same(a, b))
        }
        _ => a == b,
    }
}

/// `~` and `/` have a meaning in a pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
