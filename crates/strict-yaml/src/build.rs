//! The tree, put together from events with a stack of its own: nothing here recurses.

use std::collections::BTreeSet;

use crate::{MAX_VALUES, Node, Value, YamlError, too_many};

/// Longest foreign text that a message repeats, in characters.
const SHOWN: usize = 64;

/// A tree in the making.
pub(crate) struct Builder {
    open: Vec<Open>,
    depth: usize,
    values: usize,
    root: Option<Node>,
}

/// A collection whose end has not been seen.
enum Open {
    Sequence {
        line: usize,
        items: Vec<Node>,
    },
    Mapping {
        line: usize,
        members: Vec<(String, Node)>,
        keys: BTreeSet<String>,
        /// The key whose value comes next.
        key: Option<String>,
    },
}

impl Builder {
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            open: Vec::new(),
            depth,
            values: 0,
            root: None,
        }
    }

    pub(crate) fn scalar(
        &mut self,
        text: String,
        plain: bool,
        line: usize,
    ) -> Result<(), YamlError> {
        if let Some(Open::Mapping {
            keys,
            key: key @ None,
            ..
        }) = self.open.last_mut()
        {
            check_key(&text, plain, line)?;
            if !keys.insert(text.clone()) {
                return Err(YamlError::refused(line, duplicate(&text)));
            }
            *key = Some(text);
            return Ok(());
        }
        self.value(Node {
            value: Value::Scalar { text, plain },
            line,
        })
    }

    pub(crate) fn sequence(&mut self, line: usize) -> Result<(), YamlError> {
        self.push(
            Open::Sequence {
                line,
                items: Vec::new(),
            },
            line,
        )
    }

    pub(crate) fn mapping(&mut self, line: usize) -> Result<(), YamlError> {
        self.push(
            Open::Mapping {
                line,
                members: Vec::new(),
                keys: BTreeSet::new(),
                key: None,
            },
            line,
        )
    }

    fn push(&mut self, open: Open, line: usize) -> Result<(), YamlError> {
        if matches!(self.open.last(), Some(Open::Mapping { key: None, .. })) {
            return Err(YamlError::refused(line, "a key must be a text"));
        }
        if self.open.len() >= self.depth {
            let reason = format!("nested deeper than {} levels", self.depth);
            return Err(YamlError::refused(line, reason));
        }
        self.open.push(open);
        Ok(())
    }

    /// Closes the innermost collection.
    pub(crate) fn end(&mut self) -> Result<(), YamlError> {
        let node = match self.open.pop() {
            None => return Err(YamlError::refused(1, "an end without a start")),
            Some(Open::Sequence { line, items }) => Node {
                value: Value::Sequence(items),
                line,
            },
            Some(Open::Mapping { line, members, .. }) => Node {
                value: Value::Mapping(members),
                line,
            },
        };
        self.value(node)
    }

    fn value(&mut self, node: Node) -> Result<(), YamlError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(YamlError::refused(node.line, too_many()));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::Sequence { items, .. }) => items.push(node),
            Some(Open::Mapping { members, key, .. }) => {
                members.extend(key.take().map(|key| (key, node)));
            }
        }
        Ok(())
    }

    /// Returns the whole tree; `None` if no value was seen.
    pub(crate) fn finish(self) -> Option<Node> {
        self.root
    }
}

fn check_key(text: &str, plain: bool, line: usize) -> Result<(), YamlError> {
    match text {
        "" if plain => Err(YamlError::refused(line, "a key is missing")),
        "<<" if plain => Err(YamlError::refused(line, "merge keys are not allowed")),
        _ => Ok(()),
    }
}

/// The original's words for a key that occurs twice.
pub fn duplicate(key: &str) -> String {
    format!("duplicate entry with key \"{}\"", shown(key))
}

/// Makes foreign text safe to print: escapes what does not print and cuts what is too long.
pub fn shown(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}
