//! A TOML table that is taken apart key by key; what is left over is refused.

use std::collections::BTreeMap;
use std::ops::Range;

use bounded::text::visible;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::DeclareError;
use super::error::Place;

/// A value and where it stands.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// What is being read, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'t> {
    pub(super) text: &'t str,
}

impl<'t> Source<'t> {
    /// Takes the text apart.
    pub(super) fn parse(self) -> Result<Spanned<DeTable<'t>>, DeclareError> {
        DeTable::parse(self.text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let mut reason = shown(error.message());
            // Of the rest the line is enough; this one stands in two lines.
            if reason == "duplicate key"
                && let Some(key) = self.text.get(span.clone())
            {
                reason = format!("{reason} `{}`", shown(key));
            }
            DeclareError::Syntax {
                line: self.line(span.start),
                reason,
            }
        })
    }

    pub(super) fn refuse(self, at: usize, place: Place, rule: impl Into<String>) -> DeclareError {
        DeclareError::Rule {
            line: self.line(at),
            place,
            rule: rule.into(),
        }
    }

    fn line(self, at: usize) -> usize {
        let before = self.text.bytes().take(at);
        1 + before.filter(|byte| *byte == b'\n').count()
    }
}

/// The entries of a table that were not taken yet.
#[derive(Debug)]
pub(super) struct Fields<'t> {
    source: Source<'t>,
    /// Where the table stands: its header, or its braces.
    pub(super) span: Range<usize>,
    /// The plugin that it belongs to, as it is shown.
    pub(super) plugin: Option<String>,
    /// The keys above, with a dot at the end.
    above: &'static str,
    entries: BTreeMap<String, (usize, Value<'t>)>,
    /// The keys that were asked for, in that order: those that such a table may have.
    known: Vec<String>,
}

impl<'t> Fields<'t> {
    pub(super) fn new(source: Source<'t>, table: DeTable<'t>, span: Range<usize>) -> Self {
        let entries = table.into_iter().map(|(key, value)| {
            let at = key.span().start;
            (key.into_inner().into_owned(), (at, value))
        });
        Self {
            source,
            span,
            plugin: None,
            above: "",
            entries: entries.collect(),
            known: Vec::new(),
        }
    }

    pub(super) fn below(mut self, plugin: Option<String>, above: &'static str) -> Self {
        (self.plugin, self.above) = (plugin, above);
        self
    }

    /// Takes a key that may be absent.
    pub(super) fn take(&mut self, key: &str) -> Option<Value<'t>> {
        self.known.push(key.to_owned());
        self.entries.remove(key).map(|(_, value)| value)
    }

    /// Takes a key that must be there.
    pub(super) fn need(&mut self, key: &str) -> Result<Value<'t>, DeclareError> {
        self.take(key)
            .ok_or_else(|| self.refuse(self.span.start, key, "is missing"))
    }

    pub(super) fn text(&self, key: &str, value: Value<'t>) -> Result<String, DeclareError> {
        let at = value.span().start;
        match value.into_inner() {
            DeValue::String(text) => Ok(text.into_owned()),
            other => Err(self.another_type(at, key, "be a string", &other)),
        }
    }

    /// Takes an element of an array of texts.
    pub(super) fn element(&self, key: &str, value: Value<'t>) -> Result<String, DeclareError> {
        let at = value.span().start;
        match value.into_inner() {
            DeValue::String(text) => Ok(text.into_owned()),
            other => Err(self.another_type(at, key, "hold strings", &other)),
        }
    }

    pub(super) fn bool(&self, key: &str, value: &Value<'t>) -> Result<bool, DeclareError> {
        match value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            other => Err(self.another_type(value.span().start, key, "be true or false", other)),
        }
    }

    /// Takes a whole number of any notation that TOML has.
    pub(super) fn integer(&self, key: &str, value: &Value<'t>) -> Result<i64, DeclareError> {
        let at = value.span().start;
        match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| self.refuse(at, key, "does not fit into 64 bits")),
            other => Err(self.another_type(at, key, "be a whole number", other)),
        }
    }

    pub(super) fn array(&self, key: &str, value: Value<'t>) -> Result<DeArray<'t>, DeclareError> {
        let at = value.span().start;
        match value.into_inner() {
            DeValue::Array(array) => Ok(array),
            other => Err(self.another_type(at, key, "be an array", &other)),
        }
    }

    /// Opens what stands under a header in double brackets, each time that it stands there.
    pub(super) fn tables(
        &self,
        key: &str,
        header: &str,
        value: Value<'t>,
    ) -> Result<Vec<Self>, DeclareError> {
        let at = value.span().start;
        let wanted = format!("be an array of tables, each with the header [[{header}]]");
        let array = match value.into_inner() {
            DeValue::Array(array) => array,
            other => return Err(self.another_type(at, key, &wanted, &other)),
        };
        let tables = array.into_iter().map(|entry| {
            let span = entry.span();
            match entry.into_inner() {
                DeValue::Table(table) => Ok(Self::new(self.source, table, span)),
                other => Err(self.another_type(span.start, key, &wanted, &other)),
            }
        });
        tables.collect()
    }

    /// Opens a table.
    pub(super) fn table(&self, key: &str, value: Value<'t>) -> Result<Self, DeclareError> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Ok(Self::new(self.source, table, span)),
            other => Err(self.another_type(span.start, key, "be a table", &other)),
        }
    }

    /// Gives the rest away: keys that people choose, each with its place.
    pub(super) fn rest(&mut self) -> BTreeMap<String, (usize, Value<'t>)> {
        std::mem::take(&mut self.entries)
    }

    /// Refuses the first key that nobody took, in the order of the text.
    pub(super) fn end(self) -> Result<(), DeclareError> {
        let left = self.entries.iter().min_by_key(|(_, (at, _))| *at);
        match left {
            None => Ok(()),
            Some((key, (at, _))) => {
                let known = self.known.join(", ");
                let rule = format!("is no key that is known here; there are {known}");
                Err(self.refuse(*at, key, rule))
            }
        }
    }

    pub(super) fn refuse(&self, at: usize, key: &str, rule: impl Into<String>) -> DeclareError {
        let place = Place {
            plugin: self.plugin.clone(),
            key: Some(format!("{}{}", self.above, shown(key))),
        };
        self.source.refuse(at, place, rule)
    }

    fn another_type(&self, at: usize, key: &str, wanted: &str, found: &DeValue) -> DeclareError {
        let found = match found {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a time",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.refuse(at, key, format!("must {wanted}, not {found}"))
    }
}

/// The beginning of a foreign text, safe to show.
pub(super) fn shown(text: &str) -> String {
    visible(&text.chars().take(64).collect::<String>())
}
