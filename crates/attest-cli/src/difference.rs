//! What differs between two receipts, field by field, down to the recorded file.
//!
//! Both are compared as the JSON that they are written as, so that no field can be forgotten here:
//! a list whose elements have names is compared by name, any other by position. Nothing is left
//! out; what differs between any two runs is only told apart from what should not.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use strict_json::Json;

/// One part of the way to a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Part {
    /// A field of a mapping.
    Field(String),
    /// An element of a list: its name, or its position.
    Element(String),
    /// No place, but the order of the elements of the list; a field may well be named like it.
    Order(&'static str),
}

impl Part {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Field(text) | Self::Element(text) => text,
            Self::Order(text) => text,
        }
    }
}

/// One place where the two receipts differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// The fields on the way, the names of steps and files among them.
    pub(crate) path: Vec<Part>,
    /// What the first has there; absent where it has nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) a: Option<Json>,
    /// What the second has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) b: Option<Json>,
}

/// All differences, in two groups.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Differences {
    /// Those that say that something else was run, read or made.
    pub(crate) telling: Vec<Difference>,
    /// Those that any two runs of the same have.
    pub(crate) expected: Vec<Difference>,
}

/// Compares two receipts as their JSON.
pub(crate) fn between(a: &Json, b: &Json) -> Differences {
    let mut found = Vec::new();
    compare(&mut Vec::new(), a, b, &mut found);
    let cached = found.iter().any(is_cache_hit);
    let expected = |one: &Difference| is_expected(one) || cached && is_control_detail(one);
    let (expected, telling) = found.into_iter().partition(expected);
    Differences { telling, expected }
}

/// Whether two runs of the same pipeline on the same files differ here too: in values of such
/// fields, and in the order of what has names. That one has something where the other has nothing
/// always tells them apart: an event, a signature.
fn is_expected(one: &Difference) -> bool {
    let has = |value: &Option<Json>| !matches!(value, None | Some(Json::Null));
    match one.path.last() {
        Some(Part::Order(_)) => true,
        _ => has(&one.a) && has(&one.b) && differs_always(&one.path),
    }
}

fn is_cache_hit(one: &Difference) -> bool {
    let path: Vec<&str> = one.path.iter().map(Part::text).collect();
    matches!(path.as_slice(), ["steps", _, "cache_hit"])
}

/// The words of a control count the steps that ran, so they follow what came from the cache. Its
/// status is a claim, and tells apart.
fn is_control_detail(one: &Difference) -> bool {
    let path: Vec<&str> = one.path.iter().map(Part::text).collect();
    matches!(path.as_slice(), ["isolation", "controls", _, "detail"])
}

/// Times, what hangs on them, and how a result was come by.
fn differs_always(path: &[Part]) -> bool {
    let path: Vec<&str> = path.iter().map(Part::text).collect();
    matches!(
        path.as_slice(),
        [
            "timestamp"
                | "total_duration_secs"
                | "signature"
                | "timestamp_token"
                | "causal_chain_hash",
            ..,
        ] | ["causal_events", _]
            | ["steps", _, "duration_secs" | "cache_hit"]
            | ["provenance", "invocation_id" | "started_at"]
            | ["provenance", "ci", "run_id" | "job_id"]
    )
}

fn compare(path: &mut Vec<Part>, a: &Json, b: &Json, found: &mut Vec<Difference>) {
    match (a, b) {
        (Json::Object(left), Json::Object(right)) => {
            // Annotations may have very many members.
            let (a, b): (BTreeMap<_, _>, BTreeMap<_, _>) =
                (left.iter().collect(), right.iter().collect());
            let only_right = right.iter().filter(|(name, _)| !a.contains_key(name));
            for (name, _) in left.iter().chain(only_right) {
                let part = Part::Field(name.to_owned());
                let (one, other) = (a.get(name).copied(), b.get(name).copied());
                member(path, part, one, other, found);
            }
        }
        (Json::Array(left), Json::Array(right)) => lists(path, left, right, found),
        _ if a == b => {}
        _ => found.push(Difference {
            path: path.clone(),
            a: Some(a.clone()),
            b: Some(b.clone()),
        }),
    }
}

fn member(
    path: &mut Vec<Part>,
    part: Part,
    a: Option<&Json>,
    b: Option<&Json>,
    found: &mut Vec<Difference>,
) {
    path.push(part);
    match (a, b) {
        (Some(a), Some(b)) => compare(path, a, b, found),
        (a, b) => found.push(Difference {
            path: path.clone(),
            a: a.cloned(),
            b: b.cloned(),
        }),
    }
    path.pop();
}

/// By name where every element of both has one of its own, else by position.
fn lists(path: &mut Vec<Part>, a: &[Json], b: &[Json], found: &mut Vec<Difference>) {
    let (Some(left), Some(right)) = (names(a), names(b)) else {
        for at in 0..a.len().max(b.len()) {
            let part = Part::Element(at.to_string());
            member(path, part, a.get(at), b.get(at), found);
        }
        return;
    };
    let (by_left, by_right) = (index(&left, a), index(&right, b));
    let only_right = right.iter().map(String::as_str);
    let only_right = only_right.filter(|name| !by_left.contains_key(name));
    for name in left.iter().map(String::as_str).chain(only_right) {
        let part = Part::Element(name.to_owned());
        let (one, other) = (by_left.get(name).copied(), by_right.get(name).copied());
        member(path, part, one, other, found);
    }
    order(path, &left, &right, found);
}

fn index<'x>(names: &'x [String], values: &'x [Json]) -> BTreeMap<&'x str, &'x Json> {
    names.iter().map(String::as_str).zip(values).collect()
}

/// The order of what both have, which a comparison by name does not see.
fn order(path: &[Part], left: &[String], right: &[String], found: &mut Vec<Difference>) {
    let common = |names: &[String], others: &[String]| -> Vec<String> {
        let others: BTreeSet<&String> = others.iter().collect();
        names
            .iter()
            .filter(|name| others.contains(name))
            .cloned()
            .collect()
    };
    let (a, b) = (common(left, right), common(right, left));
    if a != b {
        let mut path = path.to_vec();
        path.push(Part::Order("(order)"));
        let list = |names: Vec<String>| Json::Array(names.into_iter().map(Json::Text).collect());
        found.push(Difference {
            path,
            a: Some(list(a)),
            b: Some(list(b)),
        });
    }
}

/// The names of a list's elements: that of a step, control or plugin, or the step and path of an
/// artifact. None if one has no name or shares it.
fn names(values: &[Json]) -> Option<Vec<String>> {
    let name = |value: &Json| -> Option<String> {
        let Json::Object(object) = value else {
            return None;
        };
        let text = |name| match object.get(name) {
            Some(Json::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        match (text("name"), text("step"), text("path")) {
            (Some(name), _, _) => Some(name.to_owned()),
            (None, Some(step), Some(path)) => Some(format!("{step}: {path}")),
            _ => None,
        }
    };
    let names: Vec<String> = values.iter().map(name).collect::<Option<_>>()?;
    let distinct: BTreeSet<&String> = names.iter().collect();
    (distinct.len() == names.len()).then_some(names)
}

#[cfg(test)]
mod tests {
    use strict_json::{Layout, Limits, parse_value};

    use super::*;

    fn json(value: &serde_json::Value) -> Json {
        let limits = Limits {
            bytes: 1000,
            depth: 10,
        };
        parse_value(value.to_string().as_bytes(), &limits, Layout::Compact).unwrap()
    }

    fn paths(differences: &[Difference]) -> Vec<String> {
        let path = |one: &Difference| -> Vec<String> {
            one.path.iter().map(|part| part.text().to_owned()).collect()
        };
        differences.iter().map(|one| path(one).join("/")).collect()
    }

    #[test]
    fn elements_with_names_are_compared_by_name_and_their_order_is_told() {
        let a = serde_json::json!({"steps": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]});
        let b = serde_json::json!({"steps": [{"name": "b", "x": 3}, {"name": "a", "x": 1}, {"name": "c"}]});
        let found = between(&json(&a), &json(&b));
        assert_eq!(paths(&found.telling), ["steps/b/x", "steps/c"]);
        assert_eq!(paths(&found.expected), ["steps/(order)"]);
        assert_eq!(found.telling[0].a, Some(Json::Integer(2)));
        assert_eq!(found.telling[1].a, None);
    }

    #[test]
    fn files_are_compared_by_step_and_path() {
        let one = |digest| serde_json::json!({"step": "s", "path": "p", "digest": digest});
        let a = serde_json::json!({"artifacts": [one("1")]});
        let b = serde_json::json!({"artifacts": [one("2")]});
        assert_eq!(
            paths(&between(&json(&a), &json(&b)).telling),
            ["artifacts/s: p/digest"]
        );
    }

    #[test]
    fn lists_without_names_are_compared_by_position() {
        let a = serde_json::json!({"needs": ["a", "b"], "twice": [{"name": "a"}, {"name": "a"}]});
        let b =
            serde_json::json!({"needs": ["a", "c", "d"], "twice": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(
            paths(&between(&json(&a), &json(&b)).telling),
            ["needs/1", "needs/2", "twice/1/name"]
        );
    }

    #[test]
    fn what_two_runs_always_differ_in_stands_apart_and_is_there() {
        let a = serde_json::json!({
            "timestamp": 1, "signature": "x", "signer_public_key": "k",
            "causal_events": ["a"], "steps": [{"name": "s", "duration_secs": 1, "exit_code": 0}],
        });
        let b = serde_json::json!({
            "timestamp": 2, "signature": "y", "signer_public_key": "l",
            "causal_events": ["b"], "steps": [{"name": "s", "duration_secs": 2, "exit_code": 1}],
        });
        let found = between(&json(&a), &json(&b));
        assert_eq!(
            paths(&found.telling),
            ["signer_public_key", "steps/s/exit_code"]
        );
        assert_eq!(found.expected.len(), 4);
        assert_eq!(between(&json(&a), &json(&a)), Differences::default());
    }

    #[test]
    fn words_of_controls_follow_the_cache_and_their_status_does_not() {
        let run = |hit, status, detail| {
            serde_json::json!({
                "steps": [{"name": "s", "cache_hit": hit}],
                "isolation": {"controls": [{"name": "inputs", "status": status, "detail": detail}]},
            })
        };
        let first = json(&run(false, "off", "0 of 1"));
        let found = between(&first, &json(&run(true, "on", "none")));
        assert_eq!(paths(&found.telling), ["isolation/controls/inputs/status"]);
        let expected = ["isolation/controls/inputs/detail", "steps/s/cache_hit"];
        assert_eq!(paths(&found.expected), expected);
        let found = between(&first, &json(&run(false, "off", "none")));
        assert_eq!(paths(&found.telling), ["isolation/controls/inputs/detail"]);
    }

    #[test]
    fn what_only_one_has_tells_apart() {
        let full = serde_json::json!({
            "signature": "x", "timestamp_token": "t", "causal_chain_hash": "h",
            "causal_events": ["a", "b"],
        });
        let less = serde_json::json!({
            "signature": null, "causal_chain_hash": null, "causal_events": ["c"],
        });
        let all = [
            "causal_chain_hash",
            "causal_events/1",
            "signature",
            "timestamp_token",
        ];
        let found = between(&json(&full), &json(&less));
        assert_eq!(paths(&found.telling), all);
        assert_eq!(paths(&found.expected), ["causal_events/0"]);
        let mut turned = paths(&between(&json(&less), &json(&full)).telling);
        turned.sort_unstable();
        assert_eq!(turned, all);
        let none = serde_json::json!({"causal_events": null});
        let found = between(&json(&none), &json(&full));
        assert!(paths(&found.telling).contains(&"causal_events".to_owned()));
    }

    #[test]
    fn a_field_that_is_named_like_the_order_is_none() {
        let note = |value| serde_json::json!({"annotation": {"(order)": value}});
        let found = between(&json(&note(1)), &json(&note(2)));
        assert_eq!(paths(&found.telling), ["annotation/(order)"]);
    }
}
