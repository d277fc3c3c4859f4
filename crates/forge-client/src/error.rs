//! What can go wrong between the operator and the Gate, and what to do about each.

use std::path::PathBuf;
use std::time::Duration;

use cli_shell::{CliError, ErrorKind, SecretError};
use strict_json::{FieldError, JsonError};
use thiserror::Error;
use tls_files::TlsError;

/// Why a command did not get what it asked for.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The Gate's address is not usable.
    #[error("`{url}` is not the address of a Gate: {problem}")]
    Address {
        /// The address as given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The address would send the token in clear text over a network.
    #[error("cannot use the address `{url}`")]
    Plain {
        /// The address.
        url: String,
        /// Why.
        #[source]
        source: Box<TlsError>,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls {
        /// Why.
        #[source]
        source: Box<TlsError>,
    },
    /// The HTTP client cannot be made.
    #[error("cannot set up the HTTP client")]
    Client {
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// There is no usable token.
    #[error("no owner token in {place}")]
    Token {
        /// File or variable, in words.
        place: String,
        /// Why.
        #[source]
        source: Box<SecretError>,
    },
    /// Nothing answers at the address.
    #[error("cannot reach the Gate at `{url}`")]
    Unreachable {
        /// The Gate's address.
        url: String,
        /// Why.
        #[source]
        source: NetworkError,
    },
    /// The connection broke after the request may have been received.
    #[error("the Gate at `{url}` did not finish its answer")]
    AnswerLost {
        /// The Gate's address.
        url: String,
        /// Why.
        #[source]
        source: NetworkError,
    },
    /// The Gate does not let us in.
    #[error("the Gate at `{url}` refuses the token from {place}")]
    Unauthorized {
        /// The Gate's address.
        url: String,
        /// Where the token came from.
        place: String,
    },
    /// The Gate answered with an error.
    #[error("the Gate refused to {what}: {message} (HTTP {status})")]
    Refused {
        /// What was asked, in words.
        what: String,
        /// The status code.
        status: u16,
        /// The error's code, where the Gate gives one.
        code: String,
        /// The Gate's own words, made visible.
        message: String,
    },
    /// There is no such job, attempt or Worker.
    #[error("the Gate knows no {what}")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// The Gate sends us elsewhere, which is never followed: the token goes to one place only.
    #[error("the Gate at `{url}` redirects to `{to}`")]
    Redirect {
        /// The Gate's address.
        url: String,
        /// Where to, made visible.
        to: String,
    },
    /// An answer is longer than any that a Gate gives.
    #[error("the answer from `{url}` is longer than {limit} bytes")]
    TooLong {
        /// The Gate's address.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// An answer is not JSON.
    #[error("the answer from `{url}` is not that of a Gate")]
    NotJson {
        /// The Gate's address.
        url: String,
        /// Why.
        #[source]
        source: JsonError,
    },
    /// An answer lacks what every Gate sends.
    #[error("the answer from `{url}` is not that of a Gate")]
    Shape {
        /// The Gate's address.
        url: String,
        /// Which field.
        #[source]
        source: FieldError,
    },
    /// The submission was sent and the answer lost.
    #[error("the job may or may not have been accepted")]
    Unsure {
        /// The key under which asking again is safe.
        key: String,
        /// What happened.
        #[source]
        source: Box<Self>,
    },
    /// Waiting took too long; the job goes on.
    #[error("job `{job}` is still `{status}` after {limit:?}")]
    StillRunning {
        /// The job.
        job: String,
        /// Its status at the last look.
        status: String,
        /// How long we waited.
        limit: Duration,
    },
    /// The job ended without success.
    #[error("job `{job}` {status}{because}")]
    JobFailed {
        /// The job.
        job: String,
        /// `failed` or `cancelled`.
        status: String,
        /// The failure code in words, or nothing.
        because: String,
    },
    /// The task that was to be submitted breaks a rule.
    #[error("cannot submit this task: {problem}")]
    Task {
        /// Which rule.
        problem: String,
    },
    /// A file with a task or an instruction cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The local repository did not give what was asked of it.
    #[error("{what} in repository `{}`", repository.display())]
    Repository {
        /// What was being done.
        what: String,
        /// The repository.
        repository: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A job has no candidate commit.
    #[error("job `{job}` is `{status}` and has no candidate commit")]
    NoCandidate {
        /// The job.
        job: String,
        /// Its status.
        status: String,
    },
    /// What was fetched is not what the Gate recorded.
    #[error("`{reference}` is commit {found} there, but the Gate recorded {recorded}")]
    OtherCandidate {
        /// The candidate's ref.
        reference: String,
        /// The commit found.
        found: String,
        /// The commit that the Gate has on record.
        recorded: String,
    },
}

/// What the network, or the TLS above it, said last.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct NetworkError {
    message: String,
}

impl NetworkError {
    /// Keeps the innermost cause: the layers above it only say that there is one.
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let mut innermost: &dyn std::error::Error = error;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        let mut message = innermost.to_string();
        if error.is_timeout() && !message.contains("timed out") {
            message.push_str(" (timed out)");
        }
        Self { message }
    }

    fn is_about_certificates(&self) -> bool {
        self.message.contains("certificate")
    }

    /// What to try if the other side speaks, but not what the scheme of `url` promises.
    fn other_scheme(&self, url: &str) -> Option<String> {
        let plain_where_tls_is = self.message.contains("InvalidContentType");
        let tls_where_plain_is = self.message.contains("invalid HTTP version");
        match url.split_once("://") {
            Some(("https", _)) if plain_where_tls_is => {
                Some("it does not answer in TLS; a Gate without `tls` has an `http://` address")
            }
            Some(("http", _)) if tls_where_plain_is => {
                Some("it does not answer in HTTP; a Gate with `tls` has an `https://` address")
            }
            _ => None,
        }
        .map(str::to_owned)
    }
}

impl ClientError {
    /// Whether asking again later may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::AnswerLost { .. } => true,
            Self::Refused { status, .. } => matches!(status, 502..=504),
            _ => false,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Address { .. } | Self::Task { .. } => ErrorKind::Usage,
            Self::Plain { .. } | Self::Tls { .. } | Self::Token { .. } => ErrorKind::Config,
            Self::JobFailed { .. } | Self::NoCandidate { .. } => ErrorKind::No,
            Self::Refused { status: 409, .. } => ErrorKind::No,
            Self::Refused {
                status: 404, code, ..
            } if code == "no_output" => ErrorKind::No,
            _ => ErrorKind::Operation,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = |text: &str| vec![text.to_owned()];
        match self {
            Self::Address { .. } => {
                hint("it looks like `https://gate.example` or `http://127.0.0.1:8080`")
            }
            Self::Plain { .. } => {
                hint("use `https://`, or `--allow-plain` on a network that you trust")
            }
            Self::Token { place, .. } => vec![format!(
                "put the Gate's owner token there, or name another place with `--token-file` or `--token-env`{}",
                if place.contains(crate::options::TOKEN_VARIABLE) {
                    "; `export FORGE_OWNER_TOKEN=...` keeps it out of the command line"
                } else {
                    ""
                }
            )],
            Self::Unreachable { url, source } | Self::AnswerLost { url, source }
                if source.other_scheme(url).is_some() =>
            {
                source.other_scheme(url).into_iter().collect()
            }
            Self::Unreachable { url, source } => {
                let mut hints = vec![format!(
                    "is `forge-gate` running? `curl {}/healthz` should say ok",
                    url.trim_end_matches('/')
                )];
                if url.starts_with("https:") && source.is_about_certificates() {
                    hints.push("a private authority is named with `--ca-file`".to_owned());
                }
                hints
                    .push("another Gate is named with `--gate-url` or `FORGE_GATE_URL`".to_owned());
                hints
            }
            Self::Unauthorized { place, .. } => vec![format!(
                "the token in {place} must be the one that the Gate's `owner_token_env` or `owner_token_file` names"
            )],
            Self::Redirect { .. } => hint("if that is right, give it as `--gate-url`"),
            Self::NotFound { .. } => hint(
                "`forge list` shows the jobs, `forge workers` the Workers, `forge pools` the pools",
            ),
            Self::Unsure { key, .. } => vec![format!(
                "run the same command with `--idempotency-key {key}`: it never makes a second job"
            )],
            Self::StillRunning { job, .. } => vec![format!("it goes on: `forge watch {job}`")],
            Self::JobFailed { job, .. } => vec![format!(
                "`forge result {job}` shows attempts and checks, `forge retry {job}` makes a new job of it"
            )],
            Self::NoCandidate { job, .. } => vec![format!("`forge result {job}` shows why")],
            Self::NotJson { .. } | Self::Shape { .. } | Self::TooLong { .. } => {
                hint("is something else listening at that address?")
            }
            Self::OtherCandidate { .. } => {
                hint("do not use it: somebody moved the ref, or it is another Worker's repository")
            }
            _ => Vec::new(),
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let hints = match &error {
            ClientError::Unsure { source, .. } => {
                let mut hints = error.hints();
                hints.extend(source.hints());
                hints
            }
            _ => error.hints(),
        };
        hints
            .into_iter()
            .fold(Self::new(error.kind(), error), Self::hint)
    }
}
