//! The order of the steps, and the way around a cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::Pipeline;

impl Pipeline {
    /// Returns the names of the steps, each behind those that it needs; ties go by name.
    ///
    /// Of all orders that respect the needs this is the least, compared name by name.
    #[must_use]
    pub fn order(&self) -> Vec<&str> {
        let dependents = self.dependents();
        let mut open: BTreeMap<&str, usize> = self
            .steps
            .iter()
            .map(|(name, step)| (name.as_str(), step.needs.as_ref().map_or(0, Vec::len)))
            .collect();
        let mut ready: BTreeSet<&str> = open
            .iter()
            .filter(|(_, needs)| **needs == 0)
            .map(|(name, _)| *name)
            .collect();
        let mut order = Vec::with_capacity(self.steps.len());
        while let Some(name) = ready.pop_first() {
            order.push(name);
            for dependent in dependents.get(name).into_iter().flatten() {
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
    pub(super) fn cycle(&self) -> Option<Vec<&str>> {
        let dependents = self.dependents();
        let mut done = BTreeSet::new();
        self.steps
            .keys()
            .find_map(|name| cycle_from(name, &dependents, &mut done))
    }

    /// Maps each step to those that need it, once for each time that they say so.
    fn dependents(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut dependents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, step) in &self.steps {
            for need in step.needs.iter().flatten() {
                dependents.entry(need).or_default().push(name);
            }
        }
        dependents
    }
}

/// Walks depth first with a stack of its own, since a file may chain very many steps.
fn cycle_from<'a>(
    start: &'a str,
    dependents: &BTreeMap<&'a str, Vec<&'a str>>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if done.contains(start) {
        return None;
    }
    let next_of = |name: &str, index: usize| {
        let names = dependents.get(name)?;
        names.get(index).copied()
    };
    let mut path: Vec<(&str, usize)> = vec![(start, 0)];
    let mut on_path = BTreeSet::from([start]);
    while let Some((name, index)) = path.last_mut() {
        let next = next_of(name, *index);
        *index += 1;
        match next {
            None => {
                on_path.remove(*name);
                done.insert(*name);
                path.pop();
            }
            Some(next) if on_path.contains(next) => {
                let around = path.iter().map(|(name, _)| *name);
                let around = around.skip_while(|name| *name != next);
                return Some(around.chain([next]).collect());
            }
            Some(next) if done.contains(next) => {}
            Some(next) => {
                on_path.insert(next);
                path.push((next, 0));
            }
        }
    }
    None
}
