//! Questions to a ledger. Only events that are what their names say take part; the rest is named.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use attest_receipt::encode::blake3_hex;
use attest_receipt::ledger::{Event, chain_hash};
use attest_receipt::time::Time;
use attest_verify::chain;
use serde::Serialize;

/// Events by id.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    events: BTreeMap<String, Event>,
}

/// Why an id leads to no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// It is no part of an id.
    #[error("'{}' is not the id of an event: 64 hexadecimal digits, or at least the first 8", bounded::text::visible(.0))]
    NoId(String),
    /// There is none.
    #[error("the ledger has no event {0}")]
    Unknown(String),
    /// There are several.
    #[error("several events start with {0}; give more digits")]
    Several(String),
}

/// Numbers of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Events.
    pub total_events: usize,
    /// Groups of events that hang together.
    pub total_chains: usize,
    /// Events that followed none.
    pub root_events: usize,
    /// Events that none followed.
    pub leaf_events: usize,
}

/// Events in an order in which each follows those that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// A name for it, made of its ends.
    pub chain_id: String,
    /// The events.
    pub events: Vec<Event>,
    /// When it was put together.
    pub created_at: Time,
    /// The hash over the events.
    pub chain_hash: String,
    /// Chains are not signed here; receipts are.
    pub chain_signature: Option<String>,
}

impl Ledger {
    /// Adds the event of a file that is named by `id`.
    ///
    /// # Errors
    /// Why the file is not believed.
    pub fn add(&mut self, id: &str, bytes: &[u8]) -> Result<(), String> {
        let event = Event::read(bytes).map_err(|error| error.to_string())?;
        if let Some(problem) = chain::event_problem(id, &event) {
            return Err(problem.to_owned());
        }
        self.events.insert(id.to_owned(), event);
        Ok(())
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Finds an event by its id or the first digits of it.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn find(&self, start: &str) -> Result<&Event, LookupError> {
        if !(8..=64).contains(&start.len()) || !attest_receipt::is_hex(start, start.len()) {
            return Err(LookupError::NoId(start.to_owned()));
        }
        let mut found = self
            .events
            .range(start.to_owned()..)
            .take_while(|(id, _)| id.starts_with(start));
        match (found.next(), found.next()) {
            (Some((_, event)), None) => Ok(event),
            (None, _) => Err(LookupError::Unknown(start.to_owned())),
            (Some(_), Some(_)) => Err(LookupError::Several(start.to_owned())),
        }
    }

    /// Returns the newest events first; those of one moment by id.
    #[must_use]
    pub fn recent(&self, step: Option<&str>) -> Vec<&Event> {
        let mut events: Vec<&Event> = self
            .events
            .values()
            .filter(|event| step.is_none_or(|step| event.step_name == step))
            .collect();
        events.sort_by(|a, b| {
            let by_time = b.timestamp.cmp(&a.timestamp);
            by_time.then_with(|| a.event_id.cmp(&b.event_id))
        });
        events
    }

    /// Counts.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let parents: BTreeSet<&str> = self
            .events
            .values()
            .flat_map(|event| &event.causal_parents)
            .map(String::as_str)
            .collect();
        let roots = self
            .events
            .values()
            .filter(|event| event.causal_parents.is_empty());
        let leaves = self
            .events
            .keys()
            .filter(|id| !parents.contains(id.as_str()));
        Stats {
            total_events: self.events.len(),
            total_chains: self.groups(),
            root_events: roots.count(),
            leaf_events: leaves.count(),
        }
    }

    /// Counts the groups of events that hang together, whichever way.
    fn groups(&self) -> usize {
        let mut near: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for event in self.events.values() {
            for parent in &event.causal_parents {
                near.entry(&event.event_id).or_default().push(parent);
                near.entry(parent).or_default().push(&event.event_id);
            }
        }
        let mut seen = BTreeSet::new();
        let mut groups = 0;
        for start in self.events.keys().map(String::as_str) {
            if !seen.insert(start) {
                continue;
            }
            groups += 1;
            let mut waiting = vec![start];
            while let Some(id) = waiting.pop() {
                let next = near.get(id).into_iter().flatten();
                waiting.extend(next.copied().filter(|next| seen.insert(next)));
            }
        }
        groups
    }

    /// Returns a shortest way along which `to` followed from `from`.
    #[must_use]
    pub fn path(&self, from: &Event, to: &Event) -> Option<Vec<&Event>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut waiting = VecDeque::from([to.event_id.as_str()]);
        while let Some(id) = waiting.pop_front() {
            if id == from.event_id {
                return Some(self.way(id, &to.event_id, &came_from));
            }
            let event = self.events.get(id);
            for parent in event.into_iter().flat_map(|event| &event.causal_parents) {
                if let Some((parent, _)) = self.events.get_key_value(parent)
                    && !came_from.contains_key(parent.as_str())
                    && *parent != to.event_id
                {
                    came_from.insert(parent, id);
                    waiting.push_back(parent);
                }
            }
        }
        None
    }

    fn way(&self, from: &str, to: &str, came_from: &BTreeMap<&str, &str>) -> Vec<&Event> {
        let mut way = Vec::new();
        let mut at = Some(from);
        while let Some(id) = at {
            way.extend(self.events.get(id));
            at = if id == to {
                None
            } else {
                came_from.get(id).copied()
            };
        }
        way
    }

    /// Puts events into an order in which each follows those of them that it names; otherwise they
    /// stand in the order of their ids.
    #[must_use]
    pub fn chain(&self, chosen: &[&Event], now: Time) -> Chain {
        let mut left: BTreeMap<&str, &Event> = chosen
            .iter()
            .map(|event| (event.event_id.as_str(), *event))
            .collect();
        let mut ordered: Vec<Event> = Vec::with_capacity(left.len());
        // An id is the hash of what it names, so there are no circles.
        while let Some(next) = left.values().copied().find(|event| {
            let mut parents = event.causal_parents.iter();
            parents.all(|parent| !left.contains_key(parent.as_str()))
        }) {
            left.remove(next.event_id.as_str());
            ordered.push(next.clone());
        }
        let end = |event: Option<&Event>| event.map_or(String::new(), |one| one.event_id.clone());
        let name = format!("chain:{}:{}", end(ordered.first()), end(ordered.last()));
        Chain {
            chain_id: blake3_hex(name.as_bytes()),
            chain_hash: chain_hash(&ordered),
            events: ordered,
            created_at: now,
            chain_signature: None,
        }
    }
}
