//! The tree that the reader builds: values, and objects that keep the order of their members.
//!
//! An [`Object`] cannot hold the same key twice, whoever makes it.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::fields::Fields;

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number in plain decimal that fits 64 signed bits.
    Integer(i64),
    /// A whole number in plain decimal that fits 64 unsigned bits only.
    Unsigned(u64),
    /// Any other number: fractions, exponents, `-0`, and whole numbers beyond 64 bits.
    Number(f64),
    /// A string, unescaped.
    Text(String),
    /// An array.
    Array(Vec<Self>),
    /// An object.
    Object(Object),
}

impl Json {
    /// Names the kind of value for messages: "a string", "null", …
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Unsigned(_) => "an integer",
            Self::Number(_) => "a number that is no plain integer",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Array(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    sequence.serialize_element(item)?;
                }
                sequence.end()
            }
            Self::Object(object) => object.serialize(serializer),
        }
    }
}

/// The members of an object in the order of the document, each key once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object(Vec<(String, Json)>);

impl Object {
    /// Makes an object of members that another reader found.
    ///
    /// # Errors
    /// The first key that occurs twice.
    pub fn from_members(members: Vec<(String, Json)>) -> Result<Self, String> {
        // Sorting references keeps a hostile object with very many keys at O(n log n).
        let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        let duplicate = keys.windows(2).find_map(|pair| match pair {
            [left, right] if left == right => Some((*left).to_owned()),
            _ => None,
        });
        duplicate.map_or(Ok(Self(members)), Err)
    }

    /// Opens the object for taking its members; `path` is the prefix of error messages.
    pub fn fields(self, path: &str) -> Fields {
        Fields::new(self, path)
    }

    /// Returns the member with this key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Iterates over the members in the order of the document.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_members(self) -> Vec<(String, Json)> {
        self.0
    }
}

impl IntoIterator for Object {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
