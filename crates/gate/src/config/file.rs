//! The whole file: every field is known, every reference inside it resolves.
//! Judging it needs nothing but its text: no secret, no environment, no other
//! file, no socket.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use bounded::{BranchName, EnvName};
use cli_shell::logging::LogFormat;
use forge_domain::{DomainError, PolicyTarget, PoolId, RepositoryId, ResolvedPolicy, WorkerId};
use gate_store::Location;
use strict_json::{Element, FieldError, Fields};
use web_server::{Listen, host_name, origin};

use super::execution::{Execution, Lifecycle, duration, number};
use super::later;

const MAX_WORKERS: usize = 256;
const MAX_SLOTS: u64 = 256;
const MAX_REPOSITORIES: usize = 1024;
const MAX_NAMES: usize = 256;
const MAX_PATH_BYTES: usize = 4096;

/// A configuration that is consistent in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateConfig {
    /// Where to listen.
    pub listen: Listen,
    /// Where the queue is kept.
    pub database: Location,
    /// Where the owner's token comes from.
    pub owner_token: TokenSource,
    /// How often expired leases are looked for, at the latest.
    pub recovery_interval: Duration,
    /// How often waiting jobs are looked for where no event announced them.
    pub lease_poll_interval: Duration,
    /// The pool of text jobs.
    pub default_pool: PoolId,
    /// The life cycle of every job.
    pub lifecycle: Lifecycle,
    /// How text jobs run.
    pub default_execution: Execution,
    /// Who may connect.
    pub workers: Vec<Worker>,
    /// What coding jobs may name.
    pub repositories: Vec<Repository>,
    /// The certificate, if the Gate serves TLS.
    pub tls: Option<Tls>,
    /// Whether plain HTTP may be served beyond loopback.
    pub allow_plain_listener: bool,
    /// The only names a request may address, beside those of a loopback listener.
    pub allowed_hosts: Option<BTreeSet<String>>,
    /// Origins beside the Gate's own that a browser may send from.
    pub allowed_origins: BTreeSet<String>,
    /// Whether `/metrics` is answered without a token; on loopback only.
    pub metrics_without_token: bool,
    /// How to write the log, if the file decides it.
    pub log_format: LogFormat,
}

/// Where a token is kept. The file never holds the token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenSource {
    /// In an environment variable.
    Env(EnvName),
    /// In a file.
    File(PathBuf),
}

/// A Worker that may connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Its id.
    pub id: WorkerId,
    /// The pool whose jobs it takes.
    pub pool: PoolId,
    /// Where its token comes from.
    pub token: TokenSource,
    /// How many slots it has.
    pub concurrency: u16,
}

/// A repository that coding jobs may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Its id, as Workers know it.
    pub id: RepositoryId,
    /// The branch that bases belong to.
    pub default_branch: BranchName,
    /// The pool that its jobs go to.
    pub worker_pool: PoolId,
    /// How its jobs run.
    pub execution: Execution,
}

/// PEM files of the listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl GateConfig {
    /// Reads the object that the file holds. An error names the field.
    pub fn read(mut fields: Fields) -> Result<Self, FieldError> {
        later::refuse_at_top(&fields)?;
        if fields.u64("version")? != 1 {
            return Err(FieldError::invalid("version", "must be 1"));
        }
        let config = Self {
            listen: fields.parse("listen")?,
            database: database(&mut fields)?,
            owner_token: TokenSource::read(&mut fields, "owner_token")?,
            recovery_interval: duration(
                &mut fields,
                "recovery_interval",
                Duration::from_millis(1),
                Duration::from_secs(3600),
            )?,
            lease_poll_interval: duration(
                &mut fields,
                "lease_poll_interval",
                Duration::from_millis(1),
                Duration::from_secs(60),
            )?,
            default_pool: fields.parse("default_pool")?,
            lifecycle: Lifecycle::read(fields.object("lifecycle")?)?,
            default_execution: Execution::read(fields.object("default_execution")?)?,
            workers: workers(&mut fields)?,
            repositories: repositories(&mut fields)?,
            tls: fields.opt_object("tls")?.map(Tls::read).transpose()?,
            allow_plain_listener: fields.opt_bool("allow_plain_listener")?.unwrap_or(false),
            allowed_hosts: names(&mut fields, "allowed_hosts", host_name)?,
            allowed_origins: names(&mut fields, "allowed_origins", origin)?.unwrap_or_default(),
            metrics_without_token: fields.opt_bool("metrics_without_token")?.unwrap_or(false),
            log_format: log_format(&mut fields)?,
        };
        fields.end()?;
        config.check_listener()?;
        config.check_references()?;
        Ok(config)
    }

    /// Refuses a plain listener where the address alone says that others reach it; what a name
    /// leads to is found out at the start.
    fn check_listener(&self) -> Result<(), FieldError> {
        if self.tls.is_none() && !self.allow_plain_listener && self.listen.is_surely_public() {
            return Err(FieldError::invalid(
                "listen",
                "can be reached from other machines and `tls` is not configured; configure `tls`, listen on loopback, or set `allow_plain_listener` if something in front of the Gate protects the connection",
            ));
        }
        if self.metrics_without_token && self.listen.is_surely_public() {
            return Err(FieldError::invalid(
                "metrics_without_token",
                "is for a listener on loopback; elsewhere the scraper needs the owner's token",
            ));
        }
        Ok(())
    }

    fn check_references(&self) -> Result<(), FieldError> {
        if self.recovery_interval > self.lifecycle.lease_ttl {
            return Err(FieldError::invalid(
                "recovery_interval",
                "must not be longer than `lifecycle.lease_ttl`",
            ));
        }
        let pools: BTreeSet<_> = self.workers.iter().map(|worker| &worker.pool).collect();
        if !pools.contains(&self.default_pool) {
            return Err(no_such_pool("default_pool", &self.default_pool));
        }
        for (index, repository) in self.repositories.iter().enumerate() {
            if !pools.contains(&repository.worker_pool) {
                let path = format!("repositories[{index}].worker_pool");
                return Err(no_such_pool(&path, &repository.worker_pool));
            }
        }
        let mut sources = BTreeSet::from([&self.owner_token]);
        for (index, worker) in self.workers.iter().enumerate() {
            if !sources.insert(&worker.token) {
                return Err(FieldError::invalid(
                    format!("workers[{index}]"),
                    "takes its token from where another one comes from",
                ));
            }
        }
        self.text_policy()
            .map_err(|error| FieldError::invalid("default_execution", error.to_string()))?;
        for (index, repository) in self.repositories.iter().enumerate() {
            self.repository_policy(repository).map_err(|error| {
                let path = format!("repositories[{index}].execution");
                FieldError::invalid(path, error.to_string())
            })?;
        }
        Ok(())
    }

    /// The policy of text jobs.
    pub(crate) fn text_policy(&self) -> Result<ResolvedPolicy, DomainError> {
        self.lifecycle
            .policy(&self.default_pool, None, &self.default_execution)
    }

    /// The policy of the jobs of a repository.
    pub(crate) fn repository_policy(
        &self,
        repository: &Repository,
    ) -> Result<ResolvedPolicy, DomainError> {
        let target = PolicyTarget {
            repository_id: repository.id.clone(),
            default_branch: repository.default_branch.clone(),
        };
        self.lifecycle
            .policy(&repository.worker_pool, Some(target), &repository.execution)
    }
}

impl TokenSource {
    /// Reads exactly one of `<stem>_env` and `<stem>_file`.
    fn read(fields: &mut Fields, stem: &str) -> Result<Self, FieldError> {
        let (env, file) = (format!("{stem}_env"), format!("{stem}_file"));
        match (fields.contains(&env), fields.contains(&file)) {
            (true, false) => Ok(Self::Env(fields.parse(&env)?)),
            (false, true) => Ok(Self::File(path(fields, &file)?)),
            (true, true) => Err(FieldError::invalid(
                fields.path_of(&file),
                format!("stands beside `{env}`; give one of the two"),
            )),
            (false, false) => Err(FieldError::invalid(
                fields.path_of(&env),
                format!("is missing, and so is `{file}`; give one of the two"),
            )),
        }
    }
}

impl Worker {
    fn read(element: Element) -> Result<Self, FieldError> {
        let mut fields = element.object()?;
        let worker = Self {
            id: fields.parse("id")?,
            pool: fields.parse("pool")?,
            token: TokenSource::read(&mut fields, "token")?,
            concurrency: number(&mut fields, "concurrency", 1, 64)?,
        };
        fields.end()?;
        Ok(worker)
    }
}

impl Repository {
    fn read(element: Element) -> Result<Self, FieldError> {
        let mut fields = element.object()?;
        later::refuse_in_repository(&fields)?;
        let repository = Self {
            id: fields.parse("id")?,
            default_branch: fields.parse("default_branch")?,
            worker_pool: fields.parse("worker_pool")?,
            execution: Execution::read(fields.object("execution")?)?,
        };
        fields.end()?;
        Ok(repository)
    }
}

impl Tls {
    fn read(mut fields: Fields) -> Result<Self, FieldError> {
        let tls = Self {
            certificate: path(&mut fields, "certificate")?,
            key: path(&mut fields, "key")?,
        };
        fields.end()?;
        Ok(tls)
    }
}

fn workers(fields: &mut Fields) -> Result<Vec<Worker>, FieldError> {
    let elements = fields.array("workers")?;
    if elements.is_empty() || elements.len() > MAX_WORKERS {
        let reason = format!("must hold 1 to {MAX_WORKERS} Workers");
        return Err(FieldError::invalid("workers", reason));
    }
    let mut ids = BTreeSet::new();
    let mut slots = 0;
    let mut workers = Vec::with_capacity(elements.len());
    for element in elements {
        let path = element.path().to_owned();
        let worker = Worker::read(element)?;
        if !ids.insert(worker.id.clone()) {
            let reason = format!("is `{}` again", worker.id);
            return Err(FieldError::invalid(format!("{path}.id"), reason));
        }
        slots += u64::from(worker.concurrency);
        if slots > MAX_SLOTS {
            let reason = format!("takes the sum of all slots beyond {MAX_SLOTS}");
            return Err(FieldError::invalid(format!("{path}.concurrency"), reason));
        }
        workers.push(worker);
    }
    Ok(workers)
}

fn repositories(fields: &mut Fields) -> Result<Vec<Repository>, FieldError> {
    let elements = fields.opt_array("repositories")?.unwrap_or_default();
    if elements.len() > MAX_REPOSITORIES {
        let reason = format!("must hold at most {MAX_REPOSITORIES} repositories");
        return Err(FieldError::invalid("repositories", reason));
    }
    let mut ids = BTreeSet::new();
    let mut repositories = Vec::with_capacity(elements.len());
    for element in elements {
        let path = element.path().to_owned();
        let repository = Repository::read(element)?;
        if !ids.insert(repository.id.clone()) {
            let reason = format!("is `{}` again", repository.id);
            return Err(FieldError::invalid(format!("{path}.id"), reason));
        }
        repositories.push(repository);
    }
    Ok(repositories)
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

fn database(fields: &mut Fields) -> Result<Location, FieldError> {
    let at = fields.path_of("database");
    let text = bounded_text(fields, "database")?;
    text.parse::<Location>()
        .map_err(|error| FieldError::invalid(at, error.to_string()))
}

fn path(fields: &mut Fields, name: &str) -> Result<PathBuf, FieldError> {
    bounded_text(fields, name).map(PathBuf::from)
}

fn names(
    fields: &mut Fields,
    name: &str,
    check: fn(&str) -> Option<String>,
) -> Result<Option<BTreeSet<String>>, FieldError> {
    let at = fields.path_of(name);
    let Some(elements) = fields.opt_array(name)? else {
        return Ok(None);
    };
    // An empty list of hosts would turn every request away.
    if elements.is_empty() || elements.len() > MAX_NAMES {
        let reason = format!("must hold 1 to {MAX_NAMES} names; leave it out instead of empty");
        return Err(FieldError::invalid(at, reason));
    }
    let read = |element: Element| {
        let at = element.path().to_owned();
        let text = element.text()?;
        check(&text).ok_or_else(|| {
            let example = if name == "allowed_hosts" {
                "must be a host name or address without a port"
            } else {
                "must be an origin such as `https://forge.example:8443`"
            };
            FieldError::invalid(at, example)
        })
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
        Some("human" | "text") => Ok(LogFormat::Human),
        Some("json") => Ok(LogFormat::Json),
        Some(_) => Err(FieldError::invalid(
            "log_format",
            "must be `auto`, `human` or `json`",
        )),
    }
}

fn no_such_pool(path: &str, pool: &PoolId) -> FieldError {
    FieldError::invalid(path, format!("no Worker is in the pool `{pool}`"))
}
