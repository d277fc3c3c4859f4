//! The options with which every command finds the Gate, and with which some wait.

use std::path::PathBuf;
use std::time::Duration;

use bounded::GoDuration;
use clap::Args;
use cli_shell::{Secret, env};
use tls_files::PlainPolicy;

use crate::error::ClientError;
use crate::http::{GateClient, Settings};

/// The variable that holds the owner's token unless another is named.
pub(crate) const TOKEN_VARIABLE: &str = "FORGE_OWNER_TOKEN";

const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// The variable that names the token's file.
const TOKEN_FILE_VARIABLE: &str = "FORGE_OWNER_TOKEN_FILE";

const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
const DEFAULT_WAIT: Duration = Duration::from_secs(10 * 60);
const MAX_POLL: Duration = Duration::from_secs(60);
const MIN_POLL: Duration = Duration::from_millis(1);

/// Where the Gate is and how to be let in.
#[derive(Debug, Clone, Args)]
pub struct Connection {
    /// Address of the Gate
    #[arg(
        long,
        visible_alias = "url",
        value_name = "URL",
        env = "FORGE_GATE_URL",
        hide_env_values = true,
        default_value = DEFAULT_URL,
        help_heading = "Gate"
    )]
    pub gate_url: String,
    /// Variable that holds the owner's token [default: FORGE_OWNER_TOKEN]
    #[arg(long, value_name = "NAME", help_heading = "Gate")]
    pub token_env: Option<String>,
    /// File that holds the owner's token [default: what FORGE_OWNER_TOKEN_FILE names, unless
    /// FORGE_OWNER_TOKEN is set]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "token_env",
        help_heading = "Gate"
    )]
    pub token_file: Option<PathBuf>,
    /// Trust only the authorities in this PEM file [default: those of the system]
    #[arg(
        long,
        value_name = "FILE",
        env = "FORGE_CA_FILE",
        hide_env_values = true,
        value_parser = path,
        help_heading = "Gate"
    )]
    pub ca_file: Option<PathBuf>,
    /// Allow `http://` to another machine: the token travels in clear text
    #[arg(long, help_heading = "Gate")]
    pub allow_plain: bool,
}

impl Connection {
    /// Reads the token and makes a client; sends nothing yet.
    ///
    /// # Errors
    /// The address, the token or the CA file cannot be used.
    pub fn client(&self) -> Result<GateClient, ClientError> {
        let (token, token_place) = match self.token_source() {
            Source::File(path) => (
                Secret::from_file(&path),
                format!("file `{}`", path.display()),
            ),
            Source::Variable(name) => (Secret::from_env(&name), format!("variable `{name}`")),
        };
        let token = token.map_err(|source| ClientError::Token {
            place: token_place.clone(),
            source: Box::new(source),
        })?;
        GateClient::new(Settings {
            url: if self.gate_url.is_empty() {
                DEFAULT_URL.to_owned()
            } else {
                self.gate_url.clone()
            },
            token,
            token_place,
            ca_file: (self.ca_file.clone()).filter(|path| !path.as_os_str().is_empty()),
            plain: if self.allow_plain {
                PlainPolicy::Anywhere
            } else {
                PlainPolicy::LoopbackOnly
            },
        })
    }
}

impl Connection {
    /// Flags win over variables, and the token itself over the name of its file.
    pub(crate) fn token_source(&self) -> Source {
        if let Some(path) = &self.token_file {
            return Source::File(path.clone());
        }
        if let Some(name) = &self.token_env {
            return Source::Variable(name.clone());
        }
        let file = env::var_os(TOKEN_FILE_VARIABLE).filter(|path| !path.is_empty());
        let token = env::var_os(TOKEN_VARIABLE).filter(|token| !token.is_empty());
        match (token, file) {
            (None, Some(path)) => Source::File(path.into()),
            _ => Source::Variable(TOKEN_VARIABLE.to_owned()),
        }
    }
}

/// Where the token is.
pub(crate) enum Source {
    File(PathBuf),
    Variable(String),
}

/// How long and how often to ask.
#[derive(Debug, Clone, Args)]
pub struct Waiting {
    /// Give up waiting after this long, at most 24h; the job goes on
    #[arg(long, value_name = "DURATION", value_parser = wait, help_heading = "Waiting")]
    pub timeout: Option<Duration>,
    /// Ask this often, 1ms to 1m
    #[arg(
        long, value_name = "DURATION", value_parser = poll, default_value = "1s",
        help_heading = "Waiting"
    )]
    pub poll: Duration,
}

impl Waiting {
    /// The limit for a command that ends in an answer: ten minutes unless said.
    pub(crate) fn or_ten_minutes(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_WAIT)
    }

    /// The limit for a command that looks on: a day unless said.
    pub(crate) fn or_a_day(&self) -> Duration {
        self.timeout.unwrap_or(MAX_WAIT)
    }
}

/// Takes an empty path too: a variable that is set to nothing is a variable that is not set.
fn path(text: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(PathBuf::from(text))
}

fn wait(text: &str) -> Result<Duration, String> {
    within(text, MIN_POLL, MAX_WAIT, "1ms to 24h")
}

fn poll(text: &str) -> Result<Duration, String> {
    within(text, MIN_POLL, MAX_POLL, "1ms to 1m")
}

fn within(text: &str, least: Duration, most: Duration, range: &str) -> Result<Duration, String> {
    let duration = text
        .parse::<GoDuration>()
        .map_err(|error| format!("{error}; write it like `90s` or `1h30m`"))?
        .duration();
    if (least..=most).contains(&duration) {
        Ok(duration)
    } else {
        Err(format!("must be {range}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_exact_limits() {
        assert_eq!(wait("24h").unwrap(), MAX_WAIT);
        assert!(wait("24h1ns").is_err());
        assert_eq!(poll("1m").unwrap(), MAX_POLL);
        assert!(poll("1m1ns").is_err());
        assert_eq!(poll("1ms").unwrap(), MIN_POLL);
        assert!(poll("999us").is_err());
        assert!(poll("fast").unwrap_err().contains("`90s`"));
    }
}
