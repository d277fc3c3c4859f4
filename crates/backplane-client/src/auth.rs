//! Who asks: a token, or headers that a provider makes anew for each request, and extra pairs.

use std::fmt;

use zeroize::Zeroizing;

use crate::error::{ClientError, HeaderError};

/// How many headers a caller may add.
const MOST_HEADERS: usize = 64;
/// The longest value of a header.
const LONGEST_VALUE: usize = 8 * 1024;
/// The longest token, which has `Bearer ` before it.
const LONGEST_TOKEN: usize = LONGEST_VALUE - "Bearer ".len();

/// Names that the client or its transport sets alone: they frame the message or name its content.
const RESERVED: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A bearer token. Its text is shown to the transport alone and wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// Takes a token: visible ASCII without spaces.
    pub fn new(text: impl Into<String>) -> Result<Self, HeaderError> {
        let text = Zeroizing::new(text.into());
        let fits = (1..=LONGEST_TOKEN).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let limit = LONGEST_TOKEN;
            return Err(HeaderError::Token { limit });
        }
        Ok(Self(text))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// A header of a request. `Debug` shows its name alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    name: String,
    value: Zeroizing<String>,
    own: bool,
}

impl Header {
    /// Makes a header of a pair that a caller supplies.
    pub fn new(name: &str, value: impl Into<String>) -> Result<Self, HeaderError> {
        let value = Zeroizing::new(value.into());
        if name.is_empty() || name.len() > 256 || !name.chars().all(is_token) {
            return Err(HeaderError::Name);
        }
        let name = name.to_ascii_lowercase();
        if RESERVED.contains(&name.as_str()) {
            return Err(HeaderError::Reserved { name });
        }
        let sent =
            |byte: u8| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic() || byte > 127;
        if value.len() > LONGEST_VALUE || !value.bytes().all(sent) {
            return Err(HeaderError::Value { name });
        }
        let own = false;
        Ok(Self { name, value, own })
    }

    /// Makes one of the client's own, which holds no secret.
    pub(crate) fn own(name: &str, value: &str) -> Self {
        let value = Zeroizing::new(value.to_owned());
        Self {
            name: name.to_owned(),
            value,
            own: true,
        }
    }

    /// Returns the name in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value; it may be a secret.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Tells whether a caller supplied it: such a header never goes to another origin.
    pub fn is_credential(&self) -> bool {
        !self.own
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: (hidden)", self.name)
    }
}

/// What a provider of headers gives.
type Provided = Result<Vec<Header>, Box<dyn std::error::Error + Send + Sync>>;

/// How requests are authorized.
pub enum Auth {
    /// Not at all.
    None,
    /// By `authorization: Bearer …`.
    Token(Token),
    /// By headers that are asked for before each request.
    Provider(Box<dyn Fn() -> Provided + Send + Sync>),
}

impl Auth {
    /// Takes a function without arguments that gives the headers of a request.
    pub fn provider(provider: impl Fn() -> Provided + Send + Sync + 'static) -> Self {
        Self::Provider(Box::new(provider))
    }

    /// Returns the headers that callers supply: those that authorize, then the extra pairs.
    pub(crate) fn headers(&self, extra: &[Header]) -> Result<Vec<Header>, ClientError> {
        let mut all = match self {
            Self::None => Vec::new(),
            Self::Token(Token(token)) => {
                let value = format!("Bearer {}", token.as_str());
                vec![Header::new("authorization", value)?]
            }
            Self::Provider(provider) => provider().map_err(ClientError::Provider)?,
        };
        all.extend_from_slice(extra);
        distinct(&all)?;
        Ok(all)
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Token(_) => "Token(hidden)",
            Self::Provider(_) => "Provider(hidden)",
        })
    }
}

/// Refuses a second header of the same name, and more than a few.
pub(crate) fn distinct(headers: &[Header]) -> Result<(), HeaderError> {
    if headers.len() > MOST_HEADERS {
        let limit = MOST_HEADERS;
        return Err(HeaderError::TooMany { limit });
    }
    let mut names: Vec<&str> = headers.iter().map(Header::name).collect();
    names.sort_unstable();
    let twice = names.windows(2).find_map(|pair| match pair {
        [left, right] if left == right => Some((*left).to_owned()),
        _ => None,
    });
    twice.map_or(Ok(()), |name| Err(HeaderError::Twice { name }))
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}
