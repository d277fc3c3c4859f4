//! Steps that need each other: their order, and the way around a cycle.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::shown;

/// Which steps come behind which.
#[derive(Debug)]
pub(crate) struct Graph<'a> {
    /// Each step that is needed, and those that need it, once for each time that they say so.
    dependents: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Graph<'a> {
    /// Takes pairs of a step and one that it needs.
    pub(crate) fn new(needs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut dependents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (step, need) in needs {
            dependents.entry(need).or_default().push(step);
        }
        Self { dependents }
    }

    /// Returns the steps, each behind those that it needs; of all such orders the least, compared
    /// name by name. Steps of a cycle, and those behind it, are left out.
    pub(crate) fn order(&self, steps: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut open: BTreeMap<&str, usize> = steps.map(|step| (step, 0)).collect();
        for dependent in self.dependents.values().flatten() {
            *open.entry(dependent).or_default() += 1;
        }
        let ready = open.iter().filter(|(_, needs)| **needs == 0);
        let mut ready: BTreeSet<&str> = ready.map(|(step, _)| *step).collect();
        let mut order = Vec::with_capacity(open.len());
        while let Some(step) = ready.pop_first() {
            order.push(step);
            for dependent in self.dependents_of(step) {
                if let Some(needs) = open.get_mut(dependent) {
                    *needs -= 1;
                    if *needs == 0 {
                        ready.insert(dependent);
                    }
                }
            }
        }
        order
    }

    /// Returns the steps around a cycle, the first one again at the end.
    pub(crate) fn cycle(&self) -> Option<Vec<&'a str>> {
        let mut done = BTreeSet::new();
        let mut starts = self.dependents.keys();
        starts.find_map(|step| self.cycle_from(step, &mut done))
    }

    /// Walks depth first with a stack of its own, since a document may chain very many steps.
    fn cycle_from(&self, start: &'a str, done: &mut BTreeSet<&'a str>) -> Option<Vec<&'a str>> {
        if done.contains(start) {
            return None;
        }
        let mut path = vec![(start, self.dependents_of(start).iter())];
        let mut on_path = BTreeSet::from([start]);
        while let Some((step, dependents)) = path.last_mut() {
            match dependents.next().copied() {
                None => {
                    on_path.remove(step);
                    done.insert(*step);
                    path.pop();
                }
                Some(next) if on_path.contains(next) => {
                    let around = path.iter().map(|(step, _)| *step);
                    let around = around.skip_while(|step| *step != next);
                    return Some(around.chain([next]).collect());
                }
                Some(next) if done.contains(next) => {}
                Some(next) => {
                    on_path.insert(next);
                    path.push((next, self.dependents_of(next).iter()));
                }
            }
        }
        None
    }

    fn dependents_of(&self, step: &str) -> &[&'a str] {
        self.dependents.get(step).map_or(&[], Vec::as_slice)
    }
}

/// Most steps of a cycle that a message names.
const SHOWN: usize = 20;

/// Returns the way around a cycle as messages tell it.
pub(crate) fn shown_cycle(cycle: &[&str]) -> String {
    let mut names: Vec<String> = cycle.iter().take(SHOWN).map(|name| shown(name)).collect();
    if cycle.len() > SHOWN {
        names.push("…".into());
        names.extend(cycle.last().map(|name| shown(name)));
    }
    names.join(" -> ")
}
