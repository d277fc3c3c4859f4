//! Taking a YAML mapping apart by name, for documents in which a text may stand without quotes.
//!
//! Here the reader decides what a scalar is: where a text is wanted, `8080` and `1.0` are the text
//! that stands there; where a number is wanted, only plain decimal digits are one.

use std::collections::BTreeMap;

use crate::text::shown;
use crate::yaml::{Node, Value};

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The path of the place and what is wrong there.
    pub reason: String,
}

type Taken<T> = Result<T, Fault>;

/// A value and its path, for instance `steps.build.inputs[0]`.
#[derive(Debug)]
pub(crate) struct Place {
    node: Node,
    path: String,
}

impl Place {
    /// Starts at a document.
    pub(crate) fn document(node: Node) -> Self {
        Self {
            node,
            path: String::new(),
        }
    }

    /// Returns the line, from 1.
    pub(crate) fn line(&self) -> usize {
        self.node.line
    }

    /// Makes a fault of this place.
    pub(crate) fn fault(&self, reason: &str) -> Fault {
        fault(&self.path, self.node.line, reason)
    }

    /// Tells whether the scalar is one that YAML reads as null.
    fn is_null(&self) -> bool {
        matches!(
            &self.node.value,
            Value::Scalar { text, plain: true }
                if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
        )
    }

    /// Tells whether nothing at all stands there, which is an empty list or mapping.
    fn is_void(&self) -> bool {
        matches!(&self.node.value, Value::Scalar { text, plain: true } if text.is_empty())
    }

    /// Returns the text of a scalar as it is spelled.
    pub(crate) fn text(self) -> Taken<String> {
        match self.node.value {
            Value::Scalar { text, .. } => Ok(text),
            _ => Err(self.fault("must be a text")),
        }
    }

    /// Returns `true` or `false`.
    pub(crate) fn bool(self) -> Taken<bool> {
        match self.plain() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(self.fault("must be true or false, without quotes and in lower case")),
        }
    }

    /// Returns a whole number of plain decimal digits.
    pub(crate) fn u64(self) -> Taken<u64> {
        let decimal = self
            .plain()
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|text| *text == "0" || !text.starts_with('0'));
        decimal
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.fault("must be a whole number in decimal digits, without quotes"))
    }

    /// Returns a whole number of plain decimal digits and 32 bits.
    pub(crate) fn u32(self) -> Taken<u32> {
        let (line, path) = (self.node.line, self.path.clone());
        let too_large = |_| fault(&path, line, "is more than 32 bits hold");
        u32::try_from(self.u64()?).map_err(too_large)
    }

    /// Returns the items of a list.
    pub(crate) fn list(self) -> Taken<Vec<Self>> {
        if self.is_void() {
            return Ok(Vec::new());
        }
        match self.node.value {
            Value::Sequence(items) => Ok(items
                .into_iter()
                .enumerate()
                .map(|(index, node)| Self {
                    path: format!("{}[{index}]", self.path),
                    node,
                })
                .collect()),
            _ => Err(self.fault("must be a list")),
        }
    }

    /// Returns the texts of a list.
    pub(crate) fn texts(self) -> Taken<Vec<String>> {
        self.list()?.into_iter().map(Self::text).collect()
    }

    /// Returns the members of a mapping whose keys are the user's own.
    pub(crate) fn entries(self) -> Taken<Vec<(String, Self)>> {
        let keys = self.keys()?;
        let path = keys.path;
        Ok(keys
            .members
            .into_iter()
            .map(|(key, node)| {
                let path = join(&path, &key);
                (key, Self { node, path })
            })
            .collect())
    }

    /// Returns a mapping from texts to texts.
    pub(crate) fn text_map(self) -> Taken<BTreeMap<String, String>> {
        self.entries()?
            .into_iter()
            .map(|(key, place)| Ok((key, place.text()?)))
            .collect()
    }

    /// Opens a mapping whose keys are known.
    pub(crate) fn keys(self) -> Taken<Keys> {
        let members = if self.is_void() {
            Vec::new()
        } else {
            match self.node.value {
                Value::Mapping(members) => members,
                _ => return Err(self.fault("must be a mapping")),
            }
        };
        Ok(Keys {
            members,
            path: self.path,
            line: self.node.line,
        })
    }

    fn plain(&self) -> Option<&str> {
        match &self.node.value {
            Value::Scalar { text, plain: true } if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

/// The members of a mapping that nobody has taken yet.
#[derive(Debug)]
#[must_use = "call `end`, or unknown keys pass unseen"]
pub(crate) struct Keys {
    members: Vec<(String, Node)>,
    path: String,
    line: usize,
}

impl Keys {
    /// Takes a member that must be there.
    pub(crate) fn required(&mut self, name: &str) -> Taken<Place> {
        self.given(name).ok_or_else(|| {
            let reason = format!("missing field `{name}`");
            fault(&self.path, self.line, &reason)
        })
    }

    /// Takes a member that may be absent; null is a value here.
    pub(crate) fn given(&mut self, name: &str) -> Option<Place> {
        let index = self.members.iter().position(|(key, _)| key == name)?;
        let (_, node) = self.members.remove(index);
        Some(Place {
            node,
            path: join(&self.path, name),
        })
    }

    /// Takes a member that may be absent or null.
    pub(crate) fn optional(&mut self, name: &str) -> Option<Place> {
        self.given(name).filter(|place| !place.is_null())
    }

    /// Takes a switch that may be absent.
    pub(crate) fn switch(&mut self, name: &str, default: bool) -> Taken<bool> {
        self.given(name).map_or(Ok(default), Place::bool)
    }

    /// Refuses the first member that nobody took.
    pub(crate) fn end(self) -> Taken<()> {
        match self.members.first() {
            None => Ok(()),
            Some((key, node)) => {
                let reason = format!("unknown field `{}`", shown(key));
                Err(fault(&self.path, node.line, &reason))
            }
        }
    }

    /// Passes over members that nobody took, for documents that say so.
    pub(crate) fn end_ignoring_unknown(self) {}
}

fn fault(path: &str, line: usize, reason: &str) -> Fault {
    let reason = if path.is_empty() {
        reason.to_owned()
    } else {
        format!("{path}: {reason}")
    };
    Fault { line, reason }
}

fn join(path: &str, key: &str) -> String {
    let key = shown(key);
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}
