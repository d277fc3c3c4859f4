//! What a plugin adds to the receipt under its own name.

use serde::{Serialize, Serializer};
use strict_json::{Json, Object};

use crate::limits::{ANNOTATION_BYTES, ANNOTATION_DEPTH};

/// An object that the core stores and never reads (seed 6.4, 12).
///
/// Its keys are sorted at every depth, by the bytes of their UTF-8; so its compact form is the one
/// that the receipt signs, and the one whose length counts (ours).
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation(Json);

/// An annotation that no receipt may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAnnotation {
    /// Too many levels of objects and arrays.
    #[error("an annotation has at most 64 levels of objects and arrays")]
    TooDeep,
    /// Too many bytes in its compact form with sorted keys.
    #[error("an annotation has at most 65536 bytes when it is compact and its keys are sorted")]
    TooLong,
    /// A number that no JSON text can hold.
    #[error("a number of an annotation is neither a whole number of 64 bits nor a finite double")]
    Number,
}

impl Annotation {
    /// Sorts the keys and checks the limits.
    ///
    /// # Errors
    /// A limit that the object exceeds.
    pub fn new(object: Object) -> Result<Self, InvalidAnnotation> {
        let json = Json::Object(sorted_object(object, ANNOTATION_DEPTH)?);
        if strict_json::to_line(&json).len() > ANNOTATION_BYTES {
            return Err(InvalidAnnotation::TooLong);
        }
        Ok(Self(json))
    }

    /// Returns the object.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// Returns a copy of the object, as a receipt's record takes it.
    #[must_use]
    pub fn to_json(&self) -> Json {
        self.0.clone()
    }
}

impl Serialize for Annotation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Sorts an object that may use `levels` levels, itself included.
fn sorted_object(object: Object, levels: usize) -> Result<Object, InvalidAnnotation> {
    let below = levels.checked_sub(1).ok_or(InvalidAnnotation::TooDeep)?;
    let mut members = Vec::with_capacity(object.len());
    for (key, value) in object {
        members.push((key, sorted(value, below)?));
    }
    members.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    // The keys were unique before they were sorted.
    Ok(Object::from_members(members).unwrap_or_default())
}

fn sorted(value: Json, levels: usize) -> Result<Json, InvalidAnnotation> {
    match value {
        Json::Object(object) => sorted_object(object, levels).map(Json::Object),
        Json::Array(items) => {
            let below = levels.checked_sub(1).ok_or(InvalidAnnotation::TooDeep)?;
            let items = items.into_iter().map(|item| sorted(item, below));
            items.collect::<Result<_, _>>().map(Json::Array)
        }
        Json::Number(number) if !number.is_finite() => Err(InvalidAnnotation::Number),
        other => Ok(other),
    }
}
