//! Names of things: jobs, attempts, sessions, workers and their slots, pools, repositories.

use std::fmt;
use std::str::FromStr;

use bounded::{ConfigId, Hex32};
use serde::Serialize;

use crate::DomainError;

/// Slots that one Worker may have; slot numbers are below it.
pub const MAX_SLOTS_PER_WORKER: u16 = 64;

macro_rules! id_type {
    ($(#[$doc:meta] $name:ident($inner:ty) $($copy:ident)?;)+) => {$(
        #[$doc]
        #[derive(Debug, Clone, $($copy,)? PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name($inner);

        impl $name {
            /// Returns the text form.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_ref()
            }
        }

        impl From<$inner> for $name {
            fn from(inner: $inner) -> Self {
                Self(inner)
            }
        }

        impl From<$name> for $inner {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl FromStr for $name {
            type Err = <$inner as FromStr>::Err;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }
    )+};
}

id_type! {
    /// Names an attempt: one lease of a job to one slot.
    AttemptId(Hex32) Copy;
    /// Names a record of evidence.
    EvidenceId(Hex32) Copy;
    /// Names a session of a slot, chosen by the Gate for each accepted connection; fences old ones.
    Generation(Hex32) Copy;
    /// Names a job.
    JobId(Hex32) Copy;
    /// Names a plugin registered at a Worker.
    PluginId(ConfigId);
    /// Names a pool of Workers.
    PoolId(ConfigId);
    /// Names a registered repository.
    RepositoryId(ConfigId);
    /// Names a Worker, whatever its number of slots.
    WorkerId(ConfigId);
}

macro_rules! random_id {
    ($($name:ident)+) => {$(
        impl $name {
            /// Makes an id of 16 bytes, which the caller takes from a random source.
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Hex32::from_bytes(bytes))
            }
        }
    )+};
}

random_id! { AttemptId EvidenceId Generation JobId }

/// One slot of a Worker: one connection, one attempt at a time.
///
/// Written `worker-1` for slot 0 and `worker-1#3` for the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId {
    worker: WorkerId,
    slot: u16,
}

impl SlotId {
    /// Names a slot; its number must be below [`MAX_SLOTS_PER_WORKER`].
    ///
    /// # Errors
    /// The number is too large.
    pub fn new(worker: WorkerId, slot: u16) -> Result<Self, DomainError> {
        if slot >= MAX_SLOTS_PER_WORKER {
            return Err(DomainError::rule(
                "slot",
                format!("must be below {MAX_SLOTS_PER_WORKER}"),
            ));
        }
        Ok(Self { worker, slot })
    }

    /// Returns the Worker.
    #[must_use]
    pub const fn worker(&self) -> &WorkerId {
        &self.worker
    }

    /// Returns the number of the slot.
    #[must_use]
    pub const fn slot(&self) -> u16 {
        self.slot
    }
}

impl fmt::Display for SlotId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.slot == 0 {
            write!(formatter, "{}", self.worker)
        } else {
            write!(formatter, "{}#{}", self.worker, self.slot)
        }
    }
}

impl FromStr for SlotId {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (worker, slot) = text
            .split_once('#')
            .map_or((text, None), |(worker, slot)| (worker, Some(slot)));
        let worker = worker
            .parse()
            .map_err(|error| DomainError::rule("worker", format!("is not an id: {error}")))?;
        let number = match slot {
            None => 0,
            Some(digits) => digits
                .parse::<u16>()
                .ok()
                .filter(|number| *number > 0 && number.to_string() == digits)
                .ok_or_else(|| {
                    DomainError::rule("slot", "must be a plain decimal number above 0")
                })?,
        };
        Self::new(worker, number)
    }
}

impl Serialize for SlotId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How urgent a job is: −100 to 100, higher first, 0 unless said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(transparent)]
pub struct Priority(i8);

impl Priority {
    /// Accepts −100 to 100.
    ///
    /// # Errors
    /// The number is outside.
    pub fn new(priority: i64) -> Result<Self, DomainError> {
        i8::try_from(priority)
            .ok()
            .filter(|value| (-100..=100).contains(value))
            .map(Self)
            .ok_or_else(|| DomainError::rule("priority", "must be from -100 to 100"))
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> i8 {
        self.0
    }
}

/// Where a job comes from, in its owner's words: at most 512 bytes, no control character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SourceRef(String);

impl SourceRef {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SourceRef {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > 512 {
            return Err(DomainError::rule("source_ref", "must be at most 512 bytes"));
        }
        if text.chars().any(char::is_control) {
            return Err(DomainError::rule(
                "source_ref",
                "must hold no control character",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The key under which a repeated submission finds its first job: 1 to 128 printable ASCII bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IdempotencyKey {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty()
            || text.len() > 128
            || !text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        {
            return Err(DomainError::rule(
                "Idempotency-Key",
                "must be 1 to 128 printable ASCII bytes",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_one_spelling() {
        for (text, slot) in [("worker-1", 0), ("worker-1#1", 1), ("worker-1#63", 63)] {
            let id: SlotId = text.parse().unwrap();
            assert_eq!((id.worker().as_str(), id.slot()), ("worker-1", slot));
            assert_eq!(id.to_string(), text);
        }
        for text in [
            "", "#1", "w#", "w#0", "w#01", "w#+1", "w#64", "w#1#1", "W#1", "w#70000",
        ] {
            assert!(text.parse::<SlotId>().is_err(), "{text}");
        }
    }

    #[test]
    fn priorities_end_at_one_hundred() {
        for good in [-100, 0, 100] {
            assert_eq!(i64::from(Priority::new(good).unwrap().get()), good);
        }
        for bad in [-101, 101, 1_000, i64::MIN] {
            assert!(Priority::new(bad).is_err());
        }
    }

    #[test]
    fn source_refs_and_keys_are_bounded() {
        assert!("x".repeat(512).parse::<SourceRef>().is_ok());
        assert!("x".repeat(513).parse::<SourceRef>().is_err());
        assert!("a\nb".parse::<SourceRef>().is_err());
        assert!("k".repeat(128).parse::<IdempotencyKey>().is_ok());
        for bad in ["", &"k".repeat(129), "a\tb", "é"] {
            assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad}");
        }
    }
}
