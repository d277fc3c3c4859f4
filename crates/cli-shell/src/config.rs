//! Configuration: strict JSON and TOML files, and values that know where they came from.
//!
//! The order of layers is fixed: defaults, then the file, then the environment, then flags.
//! Reading a file judges that file alone: it opens no other and asks for no variable.

mod toml_file;

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use strict_json::{FieldError, Fields, JsonError, Layout, Limits};
use thiserror::Error;

/// The longest accepted configuration file, in bytes.
pub const FILE_BYTES: usize = 1024 * 1024;

/// The deepest accepted nesting of a configuration file.
pub const FILE_DEPTH: usize = 32;

/// Why a configuration file is refused; every message names the file.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not one strict JSON object.
    #[error("configuration file `{}` is not a strict JSON object", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// The file is not TOML.
    #[error("configuration file `{}` is not valid TOML: line {line}: {reason}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// A field is missing, unknown or has a value that is not allowed.
    #[error("configuration file `{}` is not valid", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Which field and why.
        #[source]
        source: FieldError,
    },
}

/// Reads a configuration file and decodes it; the decoder must close the object with
/// [`Fields::end`].
///
/// # Errors
/// The file cannot be read, is not one strict JSON object, or the decoder refuses a field.
pub fn load<T>(
    path: &Path,
    decode: impl FnOnce(Fields) -> Result<T, FieldError>,
) -> Result<T, ConfigError> {
    let fields = read_json_object(path)?;
    decode(fields).map_err(|source| ConfigError::Field {
        path: path.to_owned(),
        source,
    })
}

/// Reads a TOML file and decodes it as [`load`] does a JSON file: the same limits, the same types,
/// the same refusal of keys that the decoder did not take.
///
/// # Errors
/// The file cannot be read, is not TOML, holds a time of day or date, or the decoder refuses a field.
pub fn load_toml<T>(
    path: &Path,
    decode: impl FnOnce(Fields) -> Result<T, FieldError>,
) -> Result<T, ConfigError> {
    let bytes = read_bytes(path)?;
    parse_toml(path, &bytes, decode)
}

/// Decodes the text of a TOML file that was read in a way of its own, for instance a private one.
///
/// # Errors
/// As [`load_toml`], but for the reading.
pub fn parse_toml<T>(
    path: &Path,
    bytes: &[u8],
    decode: impl FnOnce(Fields) -> Result<T, FieldError>,
) -> Result<T, ConfigError> {
    let fields = toml_file::fields(path, bytes)?;
    decode(fields).map_err(|source| ConfigError::Field {
        path: path.to_owned(),
        source,
    })
}

/// Reads a configuration file of at most [`FILE_BYTES`] as one object.
///
/// # Errors
/// The file cannot be read or is not one strict JSON object.
pub fn read_json_object(path: &Path) -> Result<Fields, ConfigError> {
    let bytes = read_bytes(path)?;
    let limits = Limits {
        bytes: FILE_BYTES,
        depth: FILE_DEPTH,
    };
    strict_json::parse_object(&bytes, &limits, Layout::Spaced)
        .map(|object| object.fields(""))
        .map_err(|source| ConfigError::Syntax {
            path: path.to_owned(),
            source,
        })
}

/// At most one byte more than a file may have.
fn read_bytes(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let mut bytes = Vec::new();
    fs_err::File::open(path)
        .and_then(|file| file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
    Ok(bytes)
}

/// Where a value came from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Built in.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable, by name.
    Environment(String),
    /// A flag, by its long name.
    Flag(String),
}

impl fmt::Display for Layer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("the default"),
            Self::File(path) => write!(formatter, "file `{}`", path.display()),
            Self::Environment(name) => write!(formatter, "variable `{name}`"),
            Self::Flag(name) => write!(formatter, "flag `--{name}`"),
        }
    }
}

/// A value and the layer that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    value: T,
    layer: Layer,
}

impl<T> Setting<T> {
    /// Starts with a built-in value.
    pub fn default_value(value: T) -> Self {
        Self {
            value,
            layer: Layer::Default,
        }
    }

    /// Lets a layer's value, if it has one, take the place of a weaker one.
    #[must_use]
    pub fn or(self, layer: Layer, value: Option<T>) -> Self {
        match value {
            Some(value) if layer >= self.layer => Self { value, layer },
            _ => self,
        }
    }

    /// Returns the value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the layer that set the value.
    pub fn layer(&self) -> &Layer {
        &self.layer
    }

    /// Returns the value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    fn file(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gate.json");
        fs_err::write(&path, text).unwrap();
        (dir, path)
    }

    fn version(mut fields: Fields) -> Result<u64, FieldError> {
        let version = fields.u64("version")?;
        fields.end()?;
        Ok(version)
    }

    #[test]
    fn a_good_file_is_decoded() {
        let (_dir, path) = file(b"{ \"version\": 1 }\n");
        assert_eq!(load(&path, version).unwrap(), 1);
    }

    #[test]
    fn errors_name_the_file_and_the_field() {
        let (_dir, path) = file(b"{\"version\":1,\"extra\":2}");
        let error = load(&path, version).unwrap_err();
        assert!(error.to_string().contains("gate.json"), "{error}");
        assert!(error.source().unwrap().to_string().contains("`extra`"));
        let (_dir, path) = file(b"{\"version\":1,\"version\":1}");
        assert!(matches!(
            load(&path, version),
            Err(ConfigError::Syntax { .. })
        ));
        assert!(matches!(
            load(Path::new("/nonexistent/gate.json"), version),
            Err(ConfigError::Read { .. })
        ));
    }

    #[test]
    fn the_size_limit_is_exact() {
        let mut text = b"{\"version\":1}".to_vec();
        text.resize(FILE_BYTES, b' ');
        let (_dir, path) = file(&text);
        assert!(load(&path, version).is_ok());
        text.push(b' ');
        let (_dir, path) = file(&text);
        assert!(load(&path, version).is_err());
    }

    #[test]
    fn later_layers_win_and_are_remembered() {
        let setting = Setting::default_value(1)
            .or(Layer::Flag("port".into()), Some(4))
            .or(Layer::File("gate.json".into()), Some(2))
            .or(Layer::Environment("PORT".into()), None);
        assert_eq!(*setting.value(), 4);
        assert_eq!(setting.layer().to_string(), "flag `--port`");
        let setting = Setting::default_value(1).or(Layer::File("gate.json".into()), Some(2));
        assert_eq!(setting.layer().to_string(), "file `gate.json`");
        assert_eq!(setting.into_value(), 2);
    }
}
