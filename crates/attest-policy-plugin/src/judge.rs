//! A verdict from a policy and one payload, and from nothing else.
//!
//! No file, no clock, no earlier request: the same payload gives the same verdict at any time, so
//! that two builds can be compared. What a payload does not tell is a finding, never silence.

mod command;
mod duration;
mod env;
mod output;
mod receipt;
mod report;
mod step;

use attest_plugin_protocol::{Payload, Verdict};

use crate::policy::{Kind, Policy};
use receipt::ReceiptView;
use report::Report;

/// A payload, with a receipt taken apart once for all rules.
enum Facts<'a> {
    Pipeline(&'a attest_plugin_protocol::PipelinePayload),
    BeforeStep(&'a attest_plugin_protocol::BeforeStep),
    AfterStep(&'a attest_plugin_protocol::AfterStep),
    Receipt(ReceiptView<'a>),
}

/// Judges one payload.
#[must_use]
pub fn judge(policy: &Policy, payload: &Payload) -> Verdict {
    let facts = match payload {
        Payload::Pipeline(pipeline) => Facts::Pipeline(pipeline),
        Payload::BeforeStep(step) => Facts::BeforeStep(step),
        Payload::AfterStep(step) => Facts::AfterStep(step),
        Payload::Receipt(receipt) => Facts::Receipt(ReceiptView::of(receipt)),
    };
    let mut report = Report::new(payload.hook());
    for rule in &policy.rules {
        let Some(mut about) = report.begin(rule) else {
            continue;
        };
        match &rule.kind {
            Kind::Step(kind) => step::judge(kind, &facts, &mut about),
            Kind::Command(kind) => command::judge(kind, &facts, &mut about),
            Kind::Env(kind) => env::judge(kind, &facts, &mut about),
            Kind::Output(kind) => output::judge(kind, &facts, &mut about),
            Kind::Duration(kind) => duration::judge(kind, &facts, &mut about),
        }
    }
    report.verdict(policy.digest())
}

#[cfg(test)]
mod tests;
