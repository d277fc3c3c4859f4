//! Queries, read strictly: a parameter that is unknown, empty or there twice is refused.

use std::str::FromStr;

use super::answer::ApiError;

/// The longest query that is looked at.
const MAX_QUERY: usize = 8 * 1024;

/// The parameters of one request that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Takes a query apart; every parameter must be among those that are known.
    pub(crate) fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, ApiError> {
        let query = query.unwrap_or_default();
        if query.len() > MAX_QUERY {
            let message = format!("the query is longer than {MAX_QUERY} bytes");
            return Err(ApiError::invalid(message));
        }
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|_| !query.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = decode(name).zip(decode(value));
            let (name, value) =
                decoded.ok_or_else(|| ApiError::invalid("the query is not form-encoded UTF-8"))?;
            let shown = shown(&name);
            if !known.contains(&name.as_str()) {
                let known = match known {
                    [] => "this route has none".to_owned(),
                    _ => format!("known: `{}`", known.join("`, `")),
                };
                let message = format!("the parameter `{shown}` is unknown; {known}");
                return Err(ApiError::invalid(message));
            }
            if pairs.iter().any(|(seen, _)| *seen == name) {
                return Err(ApiError::invalid(format!(
                    "the parameter `{shown}` stands twice"
                )));
            }
            if value.is_empty() {
                return Err(ApiError::invalid(format!(
                    "the parameter `{shown}` is empty"
                )));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// Takes a parameter that may be absent.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let index = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(index).1)
    }

    /// Takes a parameter that may be absent and parses it.
    pub(crate) fn parsed<T>(&mut self, name: &str) -> Result<Option<T>, ApiError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let parse = |text: String| {
            text.parse().map_err(|reason| {
                ApiError::invalid(format!("the parameter `{name}` is not valid: {reason}"))
            })
        };
        self.text(name).map(parse).transpose()
    }
}

/// A name that a client made up, short and visible.
fn shown(name: &str) -> String {
    bounded::text::visible(bounded::text::head(name, 64))
}

/// Form encoding of UTF-8: `+` is a space, `%` has two digits behind it.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value = digit()? * 16 + digit()?;
                u8::try_from(value).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<Query, ApiError> {
        Query::parse(Some(query), &["q", "limit"])
    }

    #[test]
    fn values_are_decoded() {
        let mut query = parse("q=a+b%20%C3%A9%2B%26&limit=7").unwrap();
        assert_eq!(query.text("q").unwrap(), "a b é+&");
        assert_eq!(query.parsed::<u32>("limit").unwrap(), Some(7));
        assert_eq!(query.text("q"), None);
        assert!(Query::parse(None, &[]).is_ok());
        assert!(parse("").is_ok());
        assert!(parse("limit=x").unwrap().parsed::<u32>("limit").is_err());
    }

    #[test]
    fn what_is_unknown_empty_double_or_malformed_is_refused() {
        for query in [
            "x=1",
            "Q=1",
            "q",
            "q=",
            "q=1&q=1",
            "q=1&q=2",
            "q=1&%71=2",
            "q=1&",
            "&q=1",
            "&",
            "=1",
            "q=%",
            "q=%4",
            "q=%zz",
            "q=%ff",
            "q=%+1",
        ] {
            assert!(parse(query).is_err(), "{query}");
        }
        assert!(parse(&format!("q={}", "a".repeat(8 * 1024))).is_err());
    }
}
