//! Taking an object apart by name, so that nothing in it goes unread.
//!
//! Absent, `null` and wrong type are three different refusals, and each names the full path.

use std::fmt::Display;
use std::str::FromStr;

use crate::error::{FieldError, shown};
use crate::value::{Json, Object};

/// The members of an object that nobody has taken yet.
#[derive(Debug)]
#[must_use = "call `end` or `end_ignoring_unknown`, or unknown fields pass unseen"]
pub struct Fields {
    path: String,
    members: Vec<(String, Json)>,
}

impl Fields {
    pub(crate) fn new(object: Object, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            members: object.into_members(),
        }
    }

    /// Returns the path of the object itself; empty for an outermost one.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path of a field of this object, for messages of the caller's own rules.
    pub fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// Tells whether a field is there and not yet taken, `null` included.
    pub fn contains(&self, name: &str) -> bool {
        self.members.iter().any(|(key, _)| key == name)
    }

    /// Takes a string.
    pub fn text(&mut self, name: &str) -> Result<String, FieldError> {
        self.required(name)?.text()
    }

    /// Takes a string that may be absent.
    pub fn opt_text(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        self.optional(name).map(Element::text).transpose()
    }

    /// Takes a string and parses it; the reason of a failure follows the path of the field.
    pub fn parse<T>(&mut self, name: &str) -> Result<T, FieldError>
    where
        T: FromStr,
        T::Err: Display,
    {
        self.required(name)?.parse()
    }

    /// Takes a string that may be absent and parses it.
    pub fn opt_parse<T>(&mut self, name: &str) -> Result<Option<T>, FieldError>
    where
        T: FromStr,
        T::Err: Display,
    {
        self.optional(name).map(Element::parse).transpose()
    }

    /// Takes a whole number from 0 to 2^64-1, written in plain decimal.
    pub fn u64(&mut self, name: &str) -> Result<u64, FieldError> {
        self.required(name)?.u64()
    }

    /// Takes a whole number from 0 to 2^64-1 that may be absent.
    pub fn opt_u64(&mut self, name: &str) -> Result<Option<u64>, FieldError> {
        self.optional(name).map(Element::u64).transpose()
    }

    /// Takes a whole number of 64 signed bits, written in plain decimal.
    pub fn i64(&mut self, name: &str) -> Result<i64, FieldError> {
        self.required(name)?.i64()
    }

    /// Takes a whole number of 64 signed bits that may be absent.
    pub fn opt_i64(&mut self, name: &str) -> Result<Option<i64>, FieldError> {
        self.optional(name).map(Element::i64).transpose()
    }

    /// Takes a boolean.
    pub fn bool(&mut self, name: &str) -> Result<bool, FieldError> {
        self.required(name)?.bool()
    }

    /// Takes a boolean that may be absent.
    pub fn opt_bool(&mut self, name: &str) -> Result<Option<bool>, FieldError> {
        self.optional(name).map(Element::bool).transpose()
    }

    /// Takes an object.
    pub fn object(&mut self, name: &str) -> Result<Self, FieldError> {
        self.required(name)?.object()
    }

    /// Takes an object that may be absent.
    pub fn opt_object(&mut self, name: &str) -> Result<Option<Self>, FieldError> {
        self.optional(name).map(Element::object).transpose()
    }

    /// Takes an array.
    pub fn array(&mut self, name: &str) -> Result<Vec<Element>, FieldError> {
        self.required(name)?.array()
    }

    /// Takes an array that may be absent.
    pub fn opt_array(&mut self, name: &str) -> Result<Option<Vec<Element>>, FieldError> {
        self.optional(name).map(Element::array).transpose()
    }

    /// Takes an array for which the protocol allows `null` in so many words; absent stays an error.
    pub fn null_or_array(&mut self, name: &str) -> Result<Option<Vec<Element>>, FieldError> {
        let element = self.required(name)?;
        if element.value == Json::Null {
            Ok(None)
        } else {
            element.array().map(Some)
        }
    }

    /// Takes a value of any kind but `null`.
    pub fn value(&mut self, name: &str) -> Result<Json, FieldError> {
        self.required(name)?.value()
    }

    /// Takes a value of any kind but `null` that may be absent.
    pub fn opt_value(&mut self, name: &str) -> Result<Option<Json>, FieldError> {
        self.optional(name).map(Element::value).transpose()
    }

    /// Closes the object and refuses the first field that nobody took.
    pub fn end(self) -> Result<(), FieldError> {
        match self.members.first() {
            None => Ok(()),
            Some((key, _)) => Err(FieldError::Unknown {
                path: join(&self.path, &shown(key)),
            }),
        }
    }

    /// Closes the object and passes over fields that nobody took, for protocols that say so.
    pub fn end_ignoring_unknown(self) {}

    fn required(&mut self, name: &str) -> Result<Element, FieldError> {
        self.optional(name).ok_or_else(|| FieldError::Missing {
            path: join(&self.path, name),
        })
    }

    fn optional(&mut self, name: &str) -> Option<Element> {
        let index = self.members.iter().position(|(key, _)| key == name)?;
        let (_, value) = self.members.remove(index);
        Some(Element {
            path: join(&self.path, name),
            value,
        })
    }
}

/// One value together with its path, for instance `workers[2]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    path: String,
    value: Json,
}

impl Element {
    /// Returns the path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the string.
    pub fn text(self) -> Result<String, FieldError> {
        match self.value {
            Json::Text(text) => Ok(text),
            other => Err(wrong_type(self.path, "a string", &other)),
        }
    }

    /// Returns the string, parsed.
    pub fn parse<T>(self) -> Result<T, FieldError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let path = self.path.clone();
        self.text()?
            .parse()
            .map_err(|reason: T::Err| FieldError::invalid(path, reason.to_string()))
    }

    /// Returns the whole number from 0 to 2^64-1.
    pub fn u64(self) -> Result<u64, FieldError> {
        const EXPECTED: &str = "a plain integer from 0 to 18446744073709551615";
        match self.value {
            Json::Unsigned(value) => Ok(value),
            Json::Integer(value) => {
                let invalid = |_| FieldError::invalid(self.path, format!("must be {EXPECTED}"));
                u64::try_from(value).map_err(invalid)
            }
            other => Err(wrong_type(self.path, EXPECTED, &other)),
        }
    }

    /// Returns the whole number of 64 signed bits.
    pub fn i64(self) -> Result<i64, FieldError> {
        const EXPECTED: &str = "a plain integer of 64 signed bits";
        match self.value {
            Json::Integer(value) => Ok(value),
            Json::Unsigned(_) => Err(FieldError::invalid(
                self.path,
                format!("must be {EXPECTED}"),
            )),
            other => Err(wrong_type(self.path, EXPECTED, &other)),
        }
    }

    /// Returns the boolean.
    pub fn bool(self) -> Result<bool, FieldError> {
        match self.value {
            Json::Bool(value) => Ok(value),
            other => Err(wrong_type(self.path, "a boolean", &other)),
        }
    }

    /// Opens the object.
    pub fn object(self) -> Result<Fields, FieldError> {
        match self.value {
            Json::Object(object) => Ok(object.fields(&self.path)),
            other => Err(wrong_type(self.path, "an object", &other)),
        }
    }

    /// Returns the items of the array, each with its own path.
    pub fn array(self) -> Result<Vec<Self>, FieldError> {
        let path = self.path;
        match self.value {
            Json::Array(items) => Ok(items
                .into_iter()
                .enumerate()
                .map(|(index, value)| Self {
                    path: format!("{path}[{index}]"),
                    value,
                })
                .collect()),
            other => Err(wrong_type(path, "an array", &other)),
        }
    }

    /// Returns the value, which may be anything but `null`.
    pub fn value(self) -> Result<Json, FieldError> {
        match self.value {
            Json::Null => Err(FieldError::Null { path: self.path }),
            other => Ok(other),
        }
    }
}

fn wrong_type(path: String, expected: &'static str, found: &Json) -> FieldError {
    match found {
        Json::Null => FieldError::Null { path },
        other => FieldError::WrongType {
            path,
            expected,
            found: other.kind(),
        },
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
