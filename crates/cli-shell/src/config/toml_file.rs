//! TOML into the tree of the JSON reader, so that both kinds of file are taken apart alike.

use std::path::Path;

use strict_json::{FieldError, Fields, Json, Object};
use toml::de::{DeTable, DeValue};

use super::{ConfigError, FILE_BYTES, FILE_DEPTH};

/// Reads the text of a file as one object.
pub(super) fn fields(path: &Path, bytes: &[u8]) -> Result<Fields, ConfigError> {
    let refuse = |at: usize, reason: String| ConfigError::Toml {
        path: path.to_owned(),
        line: 1 + bytes.iter().take(at).filter(|byte| **byte == b'\n').count(),
        reason,
    };
    if bytes.len() > FILE_BYTES {
        return Err(refuse(0, format!("more than {FILE_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| refuse(error.valid_up_to(), "invalid UTF-8".to_owned()))?;
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        refuse(at, crate::visible(error.message()))
    })?;
    let field = |source| ConfigError::Field {
        path: path.to_owned(),
        source,
    };
    let object = object(table.into_inner(), "", 1).map_err(field)?;
    Ok(object.fields(""))
}

fn object(table: DeTable<'_>, path: &str, depth: usize) -> Result<Object, FieldError> {
    let members = table.into_iter().map(|(key, value)| {
        let key = key.into_inner().into_owned();
        let path = match path {
            "" => crate::visible(&key),
            _ => format!("{path}.{}", crate::visible(&key)),
        };
        let value = json(value.into_inner(), &path, depth)?;
        Ok((key, value))
    });
    let members = members.collect::<Result<Vec<_>, FieldError>>()?;
    // TOML itself refuses a key that stands twice.
    Object::from_members(members).map_err(|key| FieldError::invalid(path, format!("`{key}` twice")))
}

fn json(value: DeValue<'_>, path: &str, depth: usize) -> Result<Json, FieldError> {
    if depth > FILE_DEPTH {
        let reason = format!("is nested deeper than {FILE_DEPTH} levels");
        return Err(FieldError::invalid(path, reason));
    }
    match value {
        DeValue::String(text) => Ok(Json::Text(text.into_owned())),
        DeValue::Boolean(value) => Ok(Json::Bool(value)),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Json::Integer)
            .map_err(|_| FieldError::invalid(path, "does not fit into 64 bits")),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map(Json::Number)
            .map_err(|_| FieldError::invalid(path, "is no number")),
        DeValue::Datetime(_) => Err(FieldError::invalid(
            path,
            "must not be a date or time; quote it if it is text",
        )),
        DeValue::Array(items) => {
            let items = items.into_iter().enumerate().map(|(index, item)| {
                json(item.into_inner(), &format!("{path}[{index}]"), depth + 1)
            });
            items.collect::<Result<_, _>>().map(Json::Array)
        }
        DeValue::Table(table) => object(table, path, depth + 1).map(Json::Object),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn read(text: &str) -> Result<Fields, ConfigError> {
        fields(Path::new("a.toml"), text.as_bytes())
    }

    #[test]
    fn values_keep_their_types() {
        let mut fields =
            read("a = \"x\"\nb = true\nc = 0x10\n[d]\ne = [1, 2]\n[[f]]\ng = -1\n").unwrap();
        assert_eq!(fields.text("a").unwrap(), "x");
        assert!(fields.bool("b").unwrap());
        assert_eq!(fields.u64("c").unwrap(), 16);
        let mut table = fields.object("d").unwrap();
        assert_eq!(table.array("e").unwrap().len(), 2);
        table.end().unwrap();
        let mut first = fields.array("f").unwrap().remove(0).object().unwrap();
        assert_eq!(first.i64("g").unwrap(), -1);
        first.end().unwrap();
        fields.end().unwrap();
    }

    #[test]
    fn refusals_name_the_line_or_the_key() {
        for (text, needle) in [
            ("a = 1\na = 2\n", "line 2"),
            ("a = 1\nb =\n", "line 2"),
            ("\u{feff}x", "line 1"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().contains(needle), "{error}");
        }
        for (text, needle) in [
            ("[t]\nwhen = 2020-01-01\n", "`t.when`"),
            ("n = 99999999999999999999\n", "`n`"),
        ] {
            let error = read(text).unwrap_err();
            let source = error.source().unwrap().to_string();
            assert!(source.contains(needle), "{source}");
        }
        let deep = format!("a = {}{}", "[".repeat(40), "]".repeat(40));
        assert!(read(&deep).is_err());
        assert!(fields(Path::new("a"), &[0xff]).is_err());
        assert!(fields(Path::new("a"), &vec![b'#'; FILE_BYTES + 1]).is_err());
    }
}
