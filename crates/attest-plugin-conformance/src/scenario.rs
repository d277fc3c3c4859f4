//! The scenarios by name, in the order in which they run and print.

mod ending;
pub(crate) mod environment;
mod hello;
mod output;
mod purity;
mod refusal;
mod requests;

use futures_util::future::LocalBoxFuture;

use crate::stage::{Judged, Stage};

/// One line of the report.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name that is printed and that `--only` takes.
    pub name: &'static str,
    /// Where the rule comes from: a section of attest-plugin/1, or ours.
    pub source: &'static str,
    pub(crate) play: Play,
}

/// Leads sessions and judges them.
pub(crate) type Play = for<'a> fn(&'a Stage<'_>) -> LocalBoxFuture<'a, Judged>;

/// A name that no scenario has.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there is no scenario `{name}`")]
pub struct UnknownScenario {
    /// The name, fit to be shown.
    pub name: String,
}

/// Returns the scenarios of these names, in the order of the table; all of them if none is named.
///
/// # Errors
/// A name that no scenario has.
pub fn select(names: &[String]) -> Result<Vec<Scenario>, UnknownScenario> {
    let unknown = |name: &&String| all().all(|scenario| scenario.name != name.as_str());
    if let Some(name) = names.iter().find(unknown) {
        return Err(UnknownScenario {
            name: bounded::text::visible(name),
        });
    }
    let chosen = |scenario: &Scenario| names.iter().any(|name| name == scenario.name);
    Ok(all()
        .filter(|scenario| names.is_empty() || chosen(scenario))
        .collect())
}

/// Returns every scenario, in order.
pub fn all() -> impl Iterator<Item = Scenario> {
    SCENARIOS.iter().copied()
}

const SCENARIOS: &[Scenario] = &[
    scenario("hello", "5, 6.2", |stage| Box::pin(hello::answer(stage))),
    scenario("hooks", "3.1, 6.2", |stage| Box::pin(hello::hooks(stage))),
    scenario("hello-unknown-fields", "6", |stage| {
        Box::pin(hello::unknown_fields(stage))
    }),
    scenario("hello-more-majors", "11", |stage| {
        Box::pin(hello::more_majors(stage))
    }),
    scenario("hello-other-major", "11", |stage| {
        Box::pin(hello::other_major(stage))
    }),
    scenario("pipeline-validate", "6.3, 6.4", |stage| {
        Box::pin(requests::hook(stage, "pipeline.validate"))
    }),
    scenario("step-pre", "6.3, 6.4", |stage| {
        Box::pin(requests::hook(stage, "step.pre"))
    }),
    scenario("step-post", "6.3, 6.4", |stage| {
        Box::pin(requests::hook(stage, "step.post"))
    }),
    scenario("receipt-finalize", "6.3, 6.4", |stage| {
        Box::pin(requests::hook(stage, "receipt.finalize"))
    }),
    scenario("ids", "6", |stage| Box::pin(requests::ids(stage))),
    scenario("verdict-limits", "4, 6.4, 12", |stage| {
        Box::pin(requests::limits(stage))
    }),
    scenario("large-request", "4", |stage| {
        Box::pin(requests::large(stage))
    }),
    scenario("split-writes", "4", |stage| {
        Box::pin(requests::split(stage))
    }),
    scenario("unknown-fields", "6", |stage| {
        Box::pin(requests::unknown_fields(stage))
    }),
    scenario("unknown-kinds", "11", |stage| {
        Box::pin(requests::unknown_kinds(stage))
    }),
    scenario("stdout-only", "4", |stage| Box::pin(output::stray(stage))),
    scenario("compact-lines", "4", |stage| {
        Box::pin(output::compact(stage))
    }),
    scenario("unsolicited", "5", |stage| {
        Box::pin(output::unsolicited(stage))
    }),
    scenario("determinism", "9", |stage| Box::pin(purity::same(stage))),
    scenario("shutdown", "5, 6.5", |stage| {
        Box::pin(ending::shutdown(stage))
    }),
    scenario("shutdown-at-once", "5, 6.5", |stage| {
        Box::pin(ending::shutdown_at_once(stage))
    }),
    scenario("end-of-input", "ours", |stage| {
        Box::pin(ending::end_of_input(stage))
    }),
    scenario("terminate", "5", |stage| Box::pin(ending::terminate(stage))),
    scenario("descendants", "ours", |stage| {
        Box::pin(ending::descendants(stage))
    }),
    scenario(environment::NAME, "4.1", |stage| {
        Box::pin(environment::enough(stage))
    }),
    scenario("not-json", "4", |stage| Box::pin(refusal::not_json(stage))),
    scenario("invalid-utf8", "4", |stage| {
        Box::pin(refusal::invalid_utf8(stage))
    }),
    scenario("duplicate-keys", "ours", |stage| {
        Box::pin(refusal::duplicate_keys(stage))
    }),
    scenario("unterminated-request", "4", |stage| {
        Box::pin(refusal::unterminated(stage))
    }),
    scenario("oversized-request", "4", |stage| {
        Box::pin(refusal::oversized(stage))
    }),
    scenario("other-version", "6", |stage| {
        Box::pin(refusal::other_version(stage))
    }),
    scenario("request-before-hello", "5", |stage| {
        Box::pin(refusal::before_hello(stage))
    }),
];

const fn scenario(name: &'static str, source: &'static str, play: Play) -> Scenario {
    Scenario { name, source, play }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_once_and_selected_in_the_order_of_the_table() {
        let names: Vec<&str> = all().map(|scenario| scenario.name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[at + 1..].contains(name), "{name}");
        }
        let chosen = select(&["ids".to_owned(), "hello".to_owned()]).unwrap();
        let chosen: Vec<&str> = chosen.iter().map(|scenario| scenario.name).collect();
        assert_eq!(chosen, ["hello", "ids"]);
        assert_eq!(select(&[]).unwrap().len(), names.len());
        let unknown = select(&["ids".to_owned(), "x\n".to_owned()]).unwrap_err();
        assert_eq!(unknown.to_string(), "there is no scenario `x\\u{a}`");
    }

    #[test]
    fn the_page_explains_every_scenario_in_the_order_of_the_table() {
        let page = include_str!("../../../docs/reference/attest-plugin-conformance.md");
        let (_, table) = page.split_once("|---|---|---|\n").unwrap();
        let rows: Vec<&str> = table
            .lines()
            .take_while(|row| row.starts_with('|'))
            .collect();
        assert_eq!(rows.len(), all().count());
        for (row, Scenario { name, source, .. }) in rows.iter().zip(all()) {
            assert!(
                row.starts_with(&format!("| `{name}` | {source} | ")),
                "{row}"
            );
        }
    }
}
