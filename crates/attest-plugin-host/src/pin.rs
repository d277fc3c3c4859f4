//! Writes a digest into the text of the declarations, and changes nothing else of it.
//!
//! Comments, order, indentation and line ends belong to people, so the text is not written anew:
//! the value is replaced where it stands, or a line is put behind that of `command` (behind `os`
//! and `arch` for a target). The result is read again before it is given out.

use std::ops::Range;

use attest_plugin_protocol::PluginName;

use crate::declare::{DeclareError, Digest, FILE, Located, Platform, Spot, Strictness, located};

/// Why nothing was pinned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The declarations are refused.
    #[error(transparent)]
    Declare(#[from] DeclareError),
    /// No plugin has the name.
    #[error("{FILE} declares no plugin `{name}`; it declares {}", if declared.is_empty() { "none" } else { declared })]
    Unknown {
        /// The name that was asked for.
        name: PluginName,
        /// The names that there are, as one text.
        declared: String,
    },
    /// The digest cannot be put into the text without changing more.
    #[error(
        "cannot put the digest of plugin `{name}` into {FILE}; write it there by hand: {digest}"
    )]
    Place {
        /// The plugin.
        name: PluginName,
        /// The digest.
        digest: Digest,
    },
}

/// Returns the declarations with the digest of one plugin on this platform replaced or added.
///
/// A plugin with targets gets it in the target of this platform; its `digest` stays as it is.
///
/// # Errors
/// The declarations are refused, or declare no such plugin.
pub fn pin(text: &str, name: &PluginName, digest: Digest) -> Result<String, PinError> {
    pin_on(&Platform::current(), text, name, digest)
}

fn pin_on(
    platform: &Platform,
    text: &str,
    name: &PluginName,
    digest: Digest,
) -> Result<String, PinError> {
    let mut plugins = located(text, Strictness::Listing, platform)?;
    let Some(plugin) = plugins.iter_mut().find(|one| one.declared.name == *name) else {
        let names = plugins.iter().map(|one| one.declared.name.as_str());
        return Err(PinError::Unknown {
            name: name.clone(),
            declared: names.collect::<Vec<_>>().join(", "),
        });
    };
    plugin.declared.digest = Some(digest);
    let pinned = put(text, &plugin.spot, digest);
    let read = pinned
        .as_deref()
        .map(|text| located(text, Strictness::Listing, platform));
    match (pinned.as_deref(), read) {
        (Some(pinned), Some(Ok(read))) if same(&plugins, &read) => Ok(pinned.to_owned()),
        _ => Err(PinError::Place {
            name: name.clone(),
            digest,
        }),
    }
}

fn same(wanted: &[Located], read: &[Located]) -> bool {
    let declared = |plugins: &[Located]| plugins.iter().map(|one| one.declared.clone()).collect();
    let (wanted, read): (Vec<_>, Vec<_>) = (declared(wanted), declared(read));
    wanted == read
}

fn put(text: &str, spot: &Spot, digest: Digest) -> Option<String> {
    let (at, new) = match spot {
        Spot::There(value) => (value.clone(), format!("\"{digest}\"")),
        Spot::After {
            value,
            inline: true,
        } => (value.end..value.end, format!(", digest = \"{digest}\"")),
        Spot::After {
            value,
            inline: false,
        } => line_after(text, value, digest)?,
    };
    let (before, after) = (text.get(..at.start)?, text.get(at.end..)?);
    Some(format!("{before}{new}{after}"))
}

/// Makes a line of its own below the line of a value, indented and ended as that one is.
fn line_after(text: &str, value: &Range<usize>, digest: Digest) -> Option<(Range<usize>, String)> {
    let before = text.get(..value.start)?;
    let line = before
        .rfind('\n')
        .map_or(before, |at| before.get(at + 1..).unwrap_or_default());
    let indent: String = line
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect();
    let rest = text.get(value.end..)?;
    let (at, new) = match rest.find('\n') {
        Some(end) => {
            let at = value.end + end + 1;
            let crlf = rest.get(..end)?.ends_with('\r');
            let line_end = if crlf { "\r\n" } else { "\n" };
            (at, format!("{indent}digest = \"{digest}\"{line_end}"))
        }
        None => {
            let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
            (
                text.len(),
                format!("{line_end}{indent}digest = \"{digest}\""),
            )
        }
    };
    Some((at..at, new))
}

#[cfg(test)]
mod tests;
