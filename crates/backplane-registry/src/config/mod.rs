//! The registry's configuration file: TOML, every key known, judged by its text alone.

mod access;
mod limits;
mod storage;

use std::collections::BTreeSet;
use std::path::PathBuf;

use cli_shell::logging::LogFormat;
use strict_json::{Element, FieldError, Fields};
use web_server::{Listen, host_name};

pub use access::{NoPattern, Pattern, Scope, SecretSource, TokenConfig};
pub use limits::ServiceLimits;
pub use storage::{Artifacts, S3};

/// Where a registry listens unless it is told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8790";

const MAX_PATH_BYTES: usize = 4096;
const MAX_HOSTS: usize = 256;

/// A configuration that is consistent in itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegistryConfig {
    /// Where to listen, if the file says so.
    pub listen: Option<Listen>,
    /// Whether plain HTTP may be served beyond loopback.
    pub insecure_listen: bool,
    /// Whether the catalog and the artifacts are for everybody.
    pub anonymous_read: bool,
    /// The only names a request may address, beside those of a loopback listener.
    pub allowed_hosts: Option<BTreeSet<String>>,
    /// The certificate, if TLS is served.
    pub tls: Option<TlsFiles>,
    /// Who may do what.
    pub tokens: Vec<TokenConfig>,
    /// Where artifacts are kept.
    pub artifacts: Artifacts,
    /// How large and how many.
    pub limits: ServiceLimits,
    /// How to write the log, if the file decides it.
    pub log_format: LogFormat,
}

/// PEM files of the listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl RegistryConfig {
    /// Reads the table that the file holds. An error names the key.
    ///
    /// # Errors
    /// A key is missing, unknown or has a value that is not allowed.
    pub fn read(mut fields: Fields) -> Result<Self, FieldError> {
        let config = Self {
            listen: fields.opt_parse("listen")?,
            insecure_listen: fields.opt_bool("insecure_listen")?.unwrap_or(false),
            anonymous_read: fields.opt_bool("anonymous_read")?.unwrap_or(false),
            allowed_hosts: hosts(&mut fields)?,
            tls: fields.opt_object("tls")?.map(TlsFiles::read).transpose()?,
            tokens: access::tokens(&mut fields)?,
            artifacts: Artifacts::read(&mut fields)?,
            limits: ServiceLimits::read(&mut fields)?,
            log_format: log_format(&mut fields)?,
        };
        fields.end()?;
        config.check_listener()?;
        Ok(config)
    }

    /// Refuses a plain listener where the address alone says that others reach it; what a name
    /// leads to is found out at the start.
    fn check_listener(&self) -> Result<(), FieldError> {
        let public = self.listen.as_ref().is_some_and(Listen::is_surely_public);
        if public && self.tls.is_none() && !self.insecure_listen {
            return Err(FieldError::invalid(
                "listen",
                "can be reached from other machines and `tls` is not configured; configure `tls`, listen on loopback, or set `insecure_listen` if something in front of the registry protects the connection",
            ));
        }
        Ok(())
    }
}

impl TlsFiles {
    fn read(mut fields: Fields) -> Result<Self, FieldError> {
        let files = Self {
            certificate: path(&mut fields, "cert_file")?,
            key: path(&mut fields, "key_file")?,
        };
        fields.end()?;
        Ok(files)
    }
}

fn bounded_text(fields: &mut Fields, name: &str) -> Result<String, FieldError> {
    let at = fields.path_of(name);
    let text = fields.text(name)?;
    if text.is_empty() || text.len() > MAX_PATH_BYTES || text.contains('\0') {
        let reason = format!("must be 1 to {MAX_PATH_BYTES} bytes without NUL");
        return Err(FieldError::invalid(at, reason));
    }
    Ok(text)
}

fn path(fields: &mut Fields, name: &str) -> Result<PathBuf, FieldError> {
    bounded_text(fields, name).map(PathBuf::from)
}

fn hosts(fields: &mut Fields) -> Result<Option<BTreeSet<String>>, FieldError> {
    let at = fields.path_of("allowed_hosts");
    let Some(elements) = fields.opt_array("allowed_hosts")? else {
        return Ok(None);
    };
    // An empty list of hosts would turn every request away.
    if elements.is_empty() || elements.len() > MAX_HOSTS {
        let reason = format!("must hold 1 to {MAX_HOSTS} names; leave it out instead of empty");
        return Err(FieldError::invalid(at, reason));
    }
    let read = |element: Element| {
        let at = element.path().to_owned();
        host_name(&element.text()?)
            .ok_or_else(|| FieldError::invalid(at, "must be a host name or address without a port"))
    };
    elements
        .into_iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map(Some)
}

fn log_format(fields: &mut Fields) -> Result<LogFormat, FieldError> {
    match fields.opt_text("log_format")?.as_deref() {
        None | Some("auto") => Ok(LogFormat::Auto),
        Some("human") => Ok(LogFormat::Human),
        Some("json") => Ok(LogFormat::Json),
        Some(_) => Err(FieldError::invalid(
            "log_format",
            "must be `auto`, `human` or `json`",
        )),
    }
}
