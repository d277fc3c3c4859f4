//! What a receipt says about a plugin.
//!
//! | | over the whole invocation | of one build |
//! |---|---|---|
//! | `decision` | `error` once it failed; else the worst that it gave; `skipped` if it gave none | the same of what happened in that build |
//! | `annotation` | that of its last verdict that had one, also before a failure | the same of that build |
//! | `reason` | why it failed, or that it was never asked | the same |
//!
//! So a plugin that failed in the first build, or before any, counts as skipped in the second.

use attest_plugin_protocol::{Annotation, Announcement, Decision, MAJOR, Verdict};
use attest_receipt::receipt::{self, PluginRecord};
use bounded::text::{head, visible};

use crate::declare::Declared;

/// The longest reason.
const REASON_BYTES: usize = 1_024;
/// Why a plugin is skipped.
const NEVER_ASKED: &str = "none of its declared hooks was reached";

/// What a plugin did so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    whole: Opinion,
    build: Opinion,
}

#[derive(Debug, Default, Clone)]
struct Opinion {
    worst: Option<Decision>,
    annotation: Option<Annotation>,
    failure: Option<String>,
}

impl Tally {
    pub(crate) fn verdict(&mut self, verdict: &Verdict) {
        self.whole.verdict(verdict);
        self.build.verdict(verdict);
    }

    /// Notes a failure; only the first counts, since nothing is asked after it.
    pub(crate) fn failed(&mut self, reason: &str) {
        let reason = short(reason);
        for opinion in [&mut self.whole, &mut self.build] {
            opinion.failure.get_or_insert_with(|| reason.clone());
        }
    }

    /// What happens from now on belongs to another build.
    pub(crate) fn begin_build(&mut self) {
        self.build = Opinion::default();
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.whole.failure.is_some()
    }

    pub(crate) fn record(
        &self,
        declared: &Declared,
        announced: Option<&Announcement>,
    ) -> PluginRecord {
        self.whole.record(declared, announced)
    }

    pub(crate) fn build_record(
        &self,
        declared: &Declared,
        announced: Option<&Announcement>,
    ) -> PluginRecord {
        self.build.record(declared, announced)
    }
}

impl Opinion {
    fn verdict(&mut self, verdict: &Verdict) {
        self.worst = self.worst.max(Some(verdict.decision));
        if verdict.annotation.is_some() {
            self.annotation.clone_from(&verdict.annotation);
        }
    }

    fn record(&self, declared: &Declared, announced: Option<&Announcement>) -> PluginRecord {
        let (decision, reason) = match (&self.failure, self.worst) {
            (Some(reason), _) => (receipt::Decision::Error, Some(reason.clone())),
            (None, Some(Decision::Allow)) => (receipt::Decision::Allow, None),
            (None, Some(Decision::Warn)) => (receipt::Decision::Warn, None),
            (None, Some(Decision::Deny)) => (receipt::Decision::Deny, None),
            (None, None) => (receipt::Decision::Skipped, Some(NEVER_ASKED.to_owned())),
        };
        PluginRecord {
            name: declared.name.to_string(),
            version: announced.map_or_else(String::new, |it| it.version.clone()),
            protocol: announced.map_or(MAJOR, |it| it.protocol),
            // Nothing starts that has another one.
            digest: declared
                .digest
                .map_or_else(String::new, |it| it.to_string()),
            decision,
            deterministic: declared.deterministic,
            reason,
            annotation: self.annotation.as_ref().map(Annotation::to_json),
        }
    }
}

/// Makes a reason visible, and cuts it between characters.
pub(crate) fn short(reason: &str) -> String {
    const MORE: &str = "…";
    let mut text = visible(reason);
    if text.len() > REASON_BYTES {
        text.truncate(head(&text, REASON_BYTES - MORE.len()).len());
        text.push_str(MORE);
    }
    if text.is_empty() {
        return "no reason given".to_owned();
    }
    text
}
