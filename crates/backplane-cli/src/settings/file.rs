//! A file with settings. It may be a link, as those are that a system makes of a description.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cli_shell::CliError;
use cli_shell::config::{ConfigError, Layer, load_toml};
use strict_json::{FieldError, Fields};

use super::{Said, TokenPlace};

/// Reads a file; one that does not exist says nothing.
pub(super) fn read(path: &Path) -> Result<Option<Said>, CliError> {
    match load_toml(path, |fields| decode(fields, path)) {
        Ok(said) => Ok(Some(said)),
        Err(ConfigError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::config(error).hint(
            "it may have `registry`, `token_file`, `ca_file` and `allow_plain_http`, and no token itself",
        )),
    }
}

fn decode(mut fields: Fields, path: &Path) -> Result<Said, FieldError> {
    let said = Said {
        layer: Layer::File(path.to_owned()),
        registry: fields.opt_text("registry")?,
        token: beside(path, fields.opt_text("token_file")?).map(TokenPlace::File),
        ca_file: beside(path, fields.opt_text("ca_file")?),
        allow_plain_http: fields.opt_bool("allow_plain_http")?.unwrap_or_default(),
    };
    fields.end()?;
    Ok(said)
}

/// A relative path is one from the folder of the file, wherever the program is started.
fn beside(path: &Path, named: Option<String>) -> Option<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    named.map(|named| folder.join(named))
}
