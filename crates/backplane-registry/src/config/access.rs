//! Who may do what: names, scopes, patterns of plugins, and where each token comes from.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use bounded::{ConfigId, EnvName};
use strict_json::{Element, FieldError, Fields};

const MAX_TOKENS: usize = 1024;
const MAX_PATTERNS: usize = 64;

/// A token that the registry accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenConfig {
    /// What it is called in logs and as the publisher of a release.
    pub name: ConfigId,
    /// What it is good for.
    pub scopes: BTreeSet<Scope>,
    /// The plugins it may change; without any pattern, all.
    pub plugins: Option<Vec<Pattern>>,
    /// Where it is kept.
    pub secret: SecretSource,
}

/// Where a secret is kept. The file never holds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretSource {
    /// In an environment variable.
    Env(EnvName),
    /// In a file.
    File(PathBuf),
}

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// See the catalog, releases, artifacts, receipts and installations.
    Read,
    /// Upload artifacts, release them, add receipts.
    Publish,
    /// Move a channel.
    Promote,
    /// Withdraw a release, or take that back.
    Yank,
    /// Report installations.
    Report,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Publish,
        Self::Promote,
        Self::Yank,
        Self::Report,
    ];

    /// Its name in configurations and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Publish => "publish",
            Self::Promote => "promote",
            Self::Yank => "yank",
            Self::Report => "report",
        }
    }
}

/// A pattern of plugin ids: `*` for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(glob::Pattern);

impl Pattern {
    /// Whether an id is meant.
    #[must_use]
    pub fn matches(&self, plugin_id: &str) -> bool {
        self.0.matches(plugin_id)
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text is no pattern of plugin ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 64 characters of a-z, 0-9, `-`, `.`, `?` and single `*`")]
pub struct NoPattern;

impl FromStr for Pattern {
    type Err = NoPattern;

    fn from_str(text: &str) -> Result<Self, NoPattern> {
        let plain = text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'?' | b'*'));
        if text.is_empty() || text.len() > 64 || !plain || text.contains("**") {
            return Err(NoPattern);
        }
        glob::Pattern::new(text).map(Self).map_err(|_| NoPattern)
    }
}

impl SecretSource {
    /// Reads exactly one of `<stem>_env` and `<stem>_file`.
    pub(super) fn read(fields: &mut Fields, stem: &str) -> Result<Self, FieldError> {
        let (env, file) = (format!("{stem}_env"), format!("{stem}_file"));
        match (fields.contains(&env), fields.contains(&file)) {
            (true, false) => Ok(Self::Env(fields.parse(&env)?)),
            (false, true) => Ok(Self::File(super::path(fields, &file)?)),
            (true, true) => Err(FieldError::invalid(
                fields.path_of(&file),
                format!("stands beside `{env}`; give one of the two"),
            )),
            (false, false) => Err(FieldError::invalid(
                fields.path_of(&file),
                format!("is missing, and so is `{env}`; give one of the two"),
            )),
        }
    }
}

impl TokenConfig {
    fn read(element: Element) -> Result<Self, FieldError> {
        let mut fields = element.object()?;
        let token = Self {
            name: fields.parse("name")?,
            scopes: scopes(&mut fields)?,
            plugins: patterns(&mut fields)?,
            secret: SecretSource::read(&mut fields, "token")?,
        };
        fields.end()?;
        Ok(token)
    }
}

/// Reads `[[tokens]]`; no two have a name or a source in common.
pub(super) fn tokens(fields: &mut Fields) -> Result<Vec<TokenConfig>, FieldError> {
    let elements = fields.opt_array("tokens")?.unwrap_or_default();
    if elements.len() > MAX_TOKENS {
        let reason = format!("must hold at most {MAX_TOKENS} tokens");
        return Err(FieldError::invalid("tokens", reason));
    }
    let (mut names, mut sources) = (BTreeSet::new(), BTreeSet::new());
    let mut tokens = Vec::with_capacity(elements.len());
    for element in elements {
        let path = element.path().to_owned();
        let token = TokenConfig::read(element)?;
        if !names.insert(token.name.clone()) {
            let reason = format!("is `{}` again", token.name);
            return Err(FieldError::invalid(format!("{path}.name"), reason));
        }
        if !sources.insert(token.secret.clone()) {
            let reason = "comes from where another one comes from";
            return Err(FieldError::invalid(path, reason));
        }
        tokens.push(token);
    }
    Ok(tokens)
}

fn scopes(fields: &mut Fields) -> Result<BTreeSet<Scope>, FieldError> {
    let at = fields.path_of("scopes");
    let elements = fields.array("scopes")?;
    let mut scopes = BTreeSet::new();
    let count = elements.len();
    for element in elements {
        let at = element.path().to_owned();
        let text = element.text()?;
        if text == "*" && count == 1 {
            return Ok(Scope::ALL.into());
        }
        let known = Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
        let fresh = known.is_some_and(|scope| scopes.insert(scope));
        if !fresh {
            return Err(FieldError::invalid(
                at,
                "must be `read`, `publish`, `promote`, `yank` or `report`, each once, or `*` alone",
            ));
        }
    }
    if scopes.is_empty() {
        return Err(FieldError::invalid(at, "must hold at least one scope"));
    }
    Ok(scopes)
}

fn patterns(fields: &mut Fields) -> Result<Option<Vec<Pattern>>, FieldError> {
    let at = fields.path_of("plugins");
    let Some(elements) = fields.opt_array("plugins")? else {
        return Ok(None);
    };
    if elements.is_empty() || elements.len() > MAX_PATTERNS {
        let reason = format!("must hold 1 to {MAX_PATTERNS} patterns; leave it out for all");
        return Err(FieldError::invalid(at, reason));
    }
    elements
        .into_iter()
        .map(Element::parse)
        .collect::<Result<_, _>>()
        .map(Some)
}
