//! The order of the steps.

use super::Pipeline;
use crate::graph::Graph;

impl Pipeline {
    /// Returns the names of the steps, each behind those that it needs; ties go by name.
    ///
    /// Of all orders that respect the needs this is the least, compared name by name.
    #[must_use]
    pub fn order(&self) -> Vec<&str> {
        self.graph().order(self.steps.keys().map(String::as_str))
    }

    pub(super) fn graph(&self) -> Graph<'_> {
        Graph::new(self.steps.iter().flat_map(|(name, step)| {
            let needs = step.needs.iter().flatten();
            needs.map(|need| (name.as_str(), need.as_str()))
        }))
    }
}
