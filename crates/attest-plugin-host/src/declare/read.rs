//! The rules of the declarations, and where in the text a digest stands.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use attest_plugin_protocol::{Hook, PluginName};

use super::table::{Fields, Source, Value, shown};
use super::{Command, DeclareError, Declared, Digest, MAX_BYTES, MAX_PLUGINS, OnFailure};
use super::{Platform, Strictness};
use crate::resolve::is_bare;

/// A declaration, and the place of its digest in the text.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) declared: Declared,
    pub(crate) spot: Spot,
}

/// Where the digest of this platform stands, or would have to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spot {
    /// This value, with its quotation marks.
    There(Range<usize>),
    /// Nowhere; this value is the one after which it belongs.
    After {
        /// The value.
        value: Range<usize>,
        /// Whether the table stands in braces.
        inline: bool,
    },
}

/// Reads declarations as a platform sees them.
pub(crate) fn located(
    text: &str,
    strictness: Strictness,
    platform: &Platform,
) -> Result<Vec<Located>, DeclareError> {
    if text.len() > MAX_BYTES {
        return Err(DeclareError::TooLong);
    }
    let source = Source { text };
    let document = source.parse()?;
    let span = document.span();
    let mut top = Fields::new(source, document.into_inner(), span);
    let version = top.need("schema_version")?;
    if top.integer("schema_version", &version)? != 1 {
        let rule = "must be 1; another version needs another program";
        return Err(top.refuse(version.span().start, "schema_version", rule));
    }
    let plugins = match top.take("plugin") {
        None => Vec::new(),
        Some(value) => plugins(&top, value, strictness, platform)?,
    };
    top.end()?;
    Ok(plugins)
}

fn plugins(
    top: &Fields<'_>,
    value: Value<'_>,
    strictness: Strictness,
    platform: &Platform,
) -> Result<Vec<Located>, DeclareError> {
    let mut names = BTreeSet::new();
    let mut plugins = Vec::new();
    for mut fields in top.tables("plugin", "plugin", value)? {
        let at = fields.span.start;
        if plugins.len() == MAX_PLUGINS {
            let rule = format!("stands more than {MAX_PLUGINS} times");
            return Err(top.refuse(at, "plugin", rule));
        }
        let (name, named_at) = name(&mut fields)?;
        if !names.insert(name.clone()) {
            return Err(fields.refuse(named_at, "name", "stands twice; names are unique"));
        }
        plugins.push(plugin(fields, name, strictness, platform)?);
    }
    Ok(plugins)
}

fn name(fields: &mut Fields<'_>) -> Result<(PluginName, usize), DeclareError> {
    let value = fields.need("name")?;
    let at = value.span().start;
    let text = fields.text("name", value)?;
    fields.plugin = Some(shown(&text));
    match text.parse() {
        Ok(name) => Ok((name, at)),
        Err(_) => Err(fields.refuse(at, "name", "must be 1 to 32 of a-z, 0-9 and -")),
    }
}

fn plugin(
    mut fields: Fields<'_>,
    name: PluginName,
    strictness: Strictness,
    platform: &Platform,
) -> Result<Located, DeclareError> {
    let command = fields.need("command")?;
    let after = command.span();
    protocol(&mut fields)?;
    let own = digest(&mut fields)?;
    let target = target(&mut fields, platform)?;
    let (digest, spot) = match target {
        Some(target) => target,
        None => (own.digest, own.spot(&fields.span, after)),
    };
    if digest.is_none() && strictness == Strictness::Run {
        let rule = format!("is missing or empty; after a review: attest plugins pin {name}");
        return Err(fields.refuse(fields.span.start, "digest", rule));
    }
    let declared = Declared {
        command: self::command(&fields, command)?,
        digest,
        hooks: hooks(&mut fields)?,
        deterministic: deterministic(&mut fields)?,
        on_failure: on_failure(&mut fields)?,
        timeout: timeout(&mut fields)?,
        wants_output: wants_output(&mut fields)?,
        env: env(&mut fields)?,
        name,
    };
    fields.end()?;
    Ok(Located { declared, spot })
}

fn command(fields: &Fields<'_>, value: Value<'_>) -> Result<Command, DeclareError> {
    let at = value.span().start;
    let text = fields.text("command", value)?;
    if text.contains('\0') {
        return Err(fields.refuse(at, "command", "must not hold a NUL character"));
    }
    if text.starts_with('/') {
        return Ok(Command::Absolute(PathBuf::from(text)));
    }
    if is_bare(&text) {
        return Ok(Command::Bare(text));
    }
    let rule = format!(
        "must be a bare name, which is looked up on PATH, or an absolute path, not `{}`",
        shown(&text)
    );
    Err(fields.refuse(at, "command", rule))
}

fn protocol(fields: &mut Fields<'_>) -> Result<(), DeclareError> {
    let value = fields.need("protocol")?;
    let at = value.span().start;
    if fields.text("protocol", value)? == "1" {
        return Ok(());
    }
    Err(fields.refuse(at, "protocol", "must be \"1\", the only major version"))
}

/// A digest as it is declared; absent and empty are the same.
struct Declaration {
    digest: Option<Digest>,
    span: Option<Range<usize>>,
}

impl Declaration {
    fn spot(self, table: &Range<usize>, after: Range<usize>) -> Spot {
        match self.span {
            Some(span) => Spot::There(span),
            // A table with a header has only the header as its place.
            None => Spot::After {
                inline: table.start < after.start && after.end < table.end,
                value: after,
            },
        }
    }
}

fn digest(fields: &mut Fields<'_>) -> Result<Declaration, DeclareError> {
    let Some(value) = fields.take("digest") else {
        let (digest, span) = (None, None);
        return Ok(Declaration { digest, span });
    };
    let span = value.span();
    let text = fields.text("digest", value)?;
    let digest = if text.is_empty() {
        None
    } else {
        let rule = "must be `blake3:` and 64 lowercase hexadecimal digits";
        let digest = text.parse();
        Some(digest.map_err(|_| fields.refuse(span.start, "digest", rule))?)
    };
    let span = Some(span);
    Ok(Declaration { digest, span })
}

/// Finds the target of the platform; none where the plugin has no targets at all.
fn target(
    fields: &mut Fields<'_>,
    platform: &Platform,
) -> Result<Option<(Option<Digest>, Spot)>, DeclareError> {
    let Some(value) = fields.take("target") else {
        return Ok(None);
    };
    let at = value.span().start;
    let mut seen = BTreeSet::new();
    let mut found = None;
    for entry in fields.tables("target", "plugin.target", value)? {
        let mut entry = entry.below(fields.plugin.clone(), "target.");
        let (os, os_span) = word(&mut entry, "os")?;
        let (arch, arch_span) = word(&mut entry, "arch")?;
        let digest = digest(&mut entry)?;
        if !seen.insert((os.clone(), arch.clone())) {
            let rule = format!("stands twice for {os}/{arch}");
            return Err(fields.refuse(entry.span.start, "target", rule));
        }
        if os == platform.os && arch == platform.arch {
            let after = std::cmp::max_by_key(os_span, arch_span, |span| span.start);
            found = Some((digest.digest, digest.spot(&entry.span, after)));
        }
        entry.end()?;
    }
    let found = found.ok_or_else(|| {
        let (os, arch) = (&platform.os, &platform.arch);
        fields.refuse(at, "target", format!("has none for {os}/{arch}"))
    });
    found.map(Some)
}

fn word(fields: &mut Fields<'_>, key: &str) -> Result<(String, Range<usize>), DeclareError> {
    let value = fields.need(key)?;
    let span = value.span();
    let text = fields.text(key, value)?;
    let known = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    if (1..=32).contains(&text.len()) && text.bytes().all(known) {
        return Ok((text, span));
    }
    let rule = "must be 1 to 32 of a-z, 0-9 and _, such as linux or x86_64";
    Err(fields.refuse(span.start, key, rule))
}

fn hooks(fields: &mut Fields<'_>) -> Result<Vec<Hook>, DeclareError> {
    let value = fields.need("hooks")?;
    let start = value.span().start;
    let mut hooks = Vec::new();
    for entry in fields.array("hooks", value)? {
        let at = entry.span().start;
        let text = fields.element("hooks", entry)?;
        let Ok(hook) = text.parse::<Hook>() else {
            let known: Vec<&str> = Hook::ALL.iter().map(|hook| hook.as_str()).collect();
            let (text, known) = (shown(&text), known.join(", "));
            let rule = format!("has no hook `{text}`; there are {known}");
            return Err(fields.refuse(at, "hooks", rule));
        };
        if hooks.contains(&hook) {
            return Err(fields.refuse(at, "hooks", format!("names {hook} twice")));
        }
        hooks.push(hook);
    }
    if hooks.is_empty() {
        let rule = "is empty; a plugin is asked somewhere or not declared";
        return Err(fields.refuse(start, "hooks", rule));
    }
    Ok(hooks)
}

fn deterministic(fields: &mut Fields<'_>) -> Result<bool, DeclareError> {
    let value = fields.need("deterministic")?;
    fields.bool("deterministic", &value)
}

fn wants_output(fields: &mut Fields<'_>) -> Result<bool, DeclareError> {
    match fields.take("wants_output") {
        None => Ok(false),
        Some(value) => fields.bool("wants_output", &value),
    }
}

fn on_failure(fields: &mut Fields<'_>) -> Result<OnFailure, DeclareError> {
    let Some(value) = fields.take("on_failure") else {
        return Ok(OnFailure::FailClosed);
    };
    let at = value.span().start;
    match fields.text("on_failure", value)?.as_str() {
        "fail-closed" => Ok(OnFailure::FailClosed),
        "fail-open" => Ok(OnFailure::FailOpen),
        _ => Err(fields.refuse(at, "on_failure", "must be fail-closed or fail-open")),
    }
}

fn timeout(fields: &mut Fields<'_>) -> Result<Duration, DeclareError> {
    let Some(value) = fields.take("timeout_secs") else {
        return Ok(Duration::from_secs(30));
    };
    let seconds = fields.integer("timeout_secs", &value)?;
    match u64::try_from(seconds) {
        Ok(seconds @ 1..=3600) => Ok(Duration::from_secs(seconds)),
        _ => Err(fields.refuse(value.span().start, "timeout_secs", "must be 1 to 3600")),
    }
}

fn env(fields: &mut Fields<'_>) -> Result<BTreeMap<String, String>, DeclareError> {
    let Some(value) = fields.take("env") else {
        return Ok(BTreeMap::new());
    };
    let table = fields.table("env", value)?;
    let mut table = table.below(fields.plugin.clone(), "env.");
    let mut variables = BTreeMap::new();
    for (name, (at, value)) in table.rest() {
        if let Some(rule) = unfit_variable(&name) {
            return Err(table.refuse(at, &name, rule));
        }
        let at = value.span().start;
        let value = table.text(&name, value)?;
        if value.contains('\0') {
            return Err(table.refuse(at, &name, "must not hold a NUL character"));
        }
        variables.insert(name, value);
    }
    Ok(variables)
}

/// Says why a variable of this name is not for plugins.
#[must_use]
pub fn unfit_variable(name: &str) -> Option<&'static str> {
    let mut bytes = name.bytes();
    let begins = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let goes_on = |byte: u8| begins(byte) || byte.is_ascii_digit();
    if !bytes.next().is_some_and(begins) || !bytes.all(goes_on) {
        return Some("must be a name of letters, digits and _ that does not begin with a digit");
    }
    if name.starts_with("ATTEST_") || name == "PATH" {
        return Some("is set by attest itself; PATH and ATTEST_ names cannot be declared");
    }
    None
}
