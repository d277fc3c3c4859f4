//! Which steps have to be there, and in which order.
//!
//! Order is what `needs` says and nothing else: steps that do not need each other may run at the
//! same time, wherever they stand in the file.

use std::collections::BTreeMap;

use super::Facts;
use super::report::About;
use crate::pattern::Pattern;
use crate::policy::StepRule;
use crate::shown::quoted;

pub(super) fn judge(rule: &StepRule, facts: &Facts<'_>, about: &mut About<'_, '_>) {
    match facts {
        Facts::Pipeline(pipeline) => {
            let steps = pipeline.steps.iter();
            let names: Vec<&str> = steps.clone().map(|step| step.name.as_str()).collect();
            present(rule, &names, "pipeline", about);
            let needs = steps.map(|step| {
                let needs = step.needs.iter().map(String::as_str).collect();
                (step.name.as_str(), needs)
            });
            order(rule, &Needs::new(needs), about);
        }
        Facts::Receipt(receipt) => {
            match &receipt.steps {
                Some(steps) => {
                    let done = steps.iter().filter(|step| step.exit_code == Some(0));
                    let names: Vec<&str> = done.map(|step| step.name).collect();
                    present(rule, &names, "receipt", about);
                }
                None => about.unknown(rule.if_unknown, "the receipt tells no steps"),
            }
            match &receipt.declared {
                _ if !rule.ordered => {}
                Some(declared) => {
                    let needs = declared.iter().map(|step| (step.name, step.needs.clone()));
                    order(rule, &Needs::new(needs), about);
                }
                None => about.unknown(
                    rule.if_unknown,
                    "the receipt does not tell which step needs which",
                ),
            }
        }
        Facts::BeforeStep(_) | Facts::AfterStep(_) => {}
    }
}

fn present(rule: &StepRule, names: &[&str], place: &str, about: &mut About<'_, '_>) {
    for pattern in &rule.required {
        if names.iter().any(|name| pattern.matches(name)) {
            continue;
        }
        about.broken(place.to_owned(), || {
            let pattern = quoted(pattern.as_str());
            match place {
                "receipt" => format!("no step that matches `{pattern}` has ended well"),
                _ => format!("no step matches `{pattern}`, which is required"),
            }
        });
    }
}

fn order(rule: &StepRule, needs: &Needs<'_>, about: &mut About<'_, '_>) {
    if !rule.ordered {
        return;
    }
    for pair in rule.required.windows(2) {
        if let [first, next] = pair {
            one_after_the_other(first, next, needs, about);
        }
    }
}

/// Each step of `next` needs each step of `first`, directly or through others. A step of both is
/// a step of `first`.
fn one_after_the_other(
    first: &Pattern,
    next: &Pattern,
    needs: &Needs<'_>,
    about: &mut About<'_, '_>,
) {
    let of = |pattern: &Pattern| {
        let all = needs.names.iter().enumerate();
        let found = all.filter(|(_, name)| pattern.matches(name));
        found.map(|(place, _)| place).collect::<Vec<usize>>()
    };
    let earlier = of(first);
    for later in of(next) {
        if earlier.contains(&later) {
            continue;
        }
        let behind = needs.all_of(later);
        let missing = earlier
            .iter()
            .find(|place| behind.get(**place) != Some(&true));
        let (Some(name), Some(missing)) = (
            needs.names.get(later),
            missing.and_then(|place| needs.names.get(*place)),
        ) else {
            continue;
        };
        about.broken_by(name, || {
            format!(
                "does not need step `{}`, directly or through others, so it may run before it",
                quoted(missing)
            )
        });
    }
}

/// Which step needs which.
struct Needs<'a> {
    names: Vec<&'a str>,
    /// Places in `names`; needs of unknown steps are nobody's.
    edges: Vec<Vec<usize>>,
}

impl<'a> Needs<'a> {
    fn new(steps: impl Iterator<Item = (&'a str, Vec<&'a str>)>) -> Self {
        let (names, needs): (Vec<_>, Vec<_>) = steps.unzip();
        let places: BTreeMap<&str, usize> = names
            .iter()
            .enumerate()
            .map(|(place, name)| (*name, place))
            .collect();
        let edges = needs
            .iter()
            .map(|needs| needs.iter().filter_map(|need| places.get(need).copied()));
        Self {
            edges: edges.map(Iterator::collect).collect(),
            names,
        }
    }

    /// Marks all steps that one needs, directly or through others.
    fn all_of(&self, step: usize) -> Vec<bool> {
        let mut marked = vec![false; self.names.len()];
        let mut open = vec![step];
        while let Some(place) = open.pop() {
            for need in self.edges.get(place).into_iter().flatten() {
                if let Some(mark) = marked.get_mut(*need).filter(|mark| !**mark) {
                    *mark = true;
                    open.push(*need);
                }
            }
        }
        marked
    }
}
