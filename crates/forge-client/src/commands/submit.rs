//! `submit`: a task from flags or from a JSON document, sent so that it arrives once.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bounded::{AuthorEmail, AuthorName, GitSha, Hex32};
use clap::{ArgGroup, Args};
use cli_shell::{CliError, Format, Ui, exit, visible};
use forge_domain::{
    CodingTask, IdempotencyKey, JobId, MAX_INPUT_BYTES, MAX_INSTRUCTION_BYTES, Priority,
    RepositoryId, SourceRef, TaskOrigin,
};
use serde_json::{Map, Value};
use strict_json::{Layout, Limits};

use super::client;
use super::watch::{until_the_end, verdict};
use crate::error::ClientError;
use crate::options::{Connection, Waiting};
use crate::repository::resolve;
use crate::show::job_text;
use crate::words;

const DOCUMENT_BYTES: usize = 1024 * 1024;
const DOCUMENT_DEPTH: usize = 16;

/// A task to submit.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["file", "file_flag", "text", "repository"])))]
#[command(override_usage = "\
forge submit [OPTIONS] --repository <ID> --base <SHA>
       forge submit [OPTIONS] --repository <ID> --repo-path <DIR>
       forge submit [OPTIONS] --text <INPUT>
       forge submit [OPTIONS] <FILE>")]
#[command(after_help = "\
Examples:
  forge submit --repository app --repo-path . --instruction 'Fix the parser' \\
      --check 'cargo test' --wait
  forge submit --text 'hello'
  forge submit task.json")]
pub struct Submit {
    /// The request as a JSON document; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same, as a flag
    #[arg(long = "file", value_name = "FILE", hide = true)]
    file_flag: Option<PathBuf>,
    /// Submit a text instead of a coding task
    #[arg(long, value_name = "INPUT")]
    text: Option<String>,
    /// The repository to change, as the Gate knows it
    #[arg(long, value_name = "ID", requires = "start", requires = "told")]
    repository: Option<RepositoryId>,
    /// The commit to start from, 40 hex digits
    #[arg(long, value_name = "SHA", group = "start", requires = "repository")]
    base: Option<GitSha>,
    /// Start from a commit of this local clone
    #[arg(long, value_name = "DIR", group = "start", requires = "repository")]
    repo_path: Option<PathBuf>,
    /// Which commit of the clone
    #[arg(
        long,
        value_name = "REV",
        default_value = "HEAD",
        requires = "repo_path"
    )]
    rev: String,
    /// What the agent is told to do
    #[arg(long, value_name = "TEXT", group = "told", requires = "repository")]
    instruction: Option<String>,
    /// The same, from a file; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "told", requires = "repository")]
    instruction_file: Option<PathBuf>,
    /// A command that must succeed in the workspace; split into words, run without a shell;
    /// may be given several times
    #[arg(long, value_name = "COMMAND", value_parser = check, requires = "repository")]
    check: Vec<Check>,
    /// The same as a JSON array of words; these run after those of `--check`
    #[arg(long, value_name = "JSON", value_parser = check_json, requires = "repository")]
    check_json: Vec<Check>,
    /// Author of the candidate commit
    #[arg(
        long,
        value_name = "NAME",
        requires = "author_email",
        requires = "repository"
    )]
    author_name: Option<AuthorName>,
    /// Address of that author
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "author_name",
        requires = "repository"
    )]
    author_email: Option<AuthorEmail>,
    /// From -100 to 100, higher first [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = priority)]
    priority: Option<Priority>,
    /// Where the task comes from, such as the URL of an issue
    #[arg(long, value_name = "TEXT")]
    source_ref: Option<SourceRef>,
    /// The key under which submitting twice makes one job [default: a random one]
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,
    /// Wait for the job to end; exit code 1 if it does not succeed
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    connection: Connection,
}

/// One declared check.
#[derive(Debug, Clone)]
struct Check(Vec<String>);

impl Submit {
    pub(crate) async fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let client = client(&self.connection, ui)?;
        let body = match self.file.as_ref().or(self.file_flag.as_ref()) {
            Some(file) => document(file)?,
            None => self.body().await?,
        };
        let key = match &self.idempotency_key {
            Some(key) => key.as_str().to_owned(),
            None => random_key()?,
        };
        let submitted = client
            .submit_job(&body, &key)
            .await
            .map_err(|error| explained(error, &body))?;
        let id: JobId = submitted.job.view.id.parse().map_err(|_| {
            CliError::operation("the Gate gave the job an id that is not 32 hex digits")
        })?;
        if !submitted.is_new {
            ui.status(format!("job {id} had been submitted under this key before"));
        }
        if !self.wait {
            ui.record(&submitted.job.json, |_| id.to_string())?;
            ui.status(format!("follow it with `forge watch {id}`"));
            return Ok(exit::ok());
        }
        if ui.format() == Format::Human {
            ui.status(format!("job {id}"));
        }
        let limit = self.waiting.or_ten_minutes();
        let job = until_the_end(&client, &id, limit, self.waiting.poll, ui).await?;
        ui.record(&job.json, |_| job_text(&job.view))?;
        verdict(&job.view)
    }

    /// Makes the request of the flags.
    async fn body(&self) -> Result<Vec<u8>, CliError> {
        let mut request = Map::new();
        if let Some(text) = &self.text {
            if text.is_empty() || text.len() > MAX_INPUT_BYTES {
                return Err(task(format!(
                    "the text must be 1 to {MAX_INPUT_BYTES} bytes"
                )));
            }
            request.insert("input".into(), text.as_str().into());
        }
        if let Some(repository) = &self.repository {
            let base = match (&self.base, &self.repo_path) {
                (Some(base), _) => *base,
                (None, Some(path)) => resolve(path, &self.rev).await?,
                (None, None) => return Err(task("there is no base commit")),
            };
            request.insert("repository_id".into(), repository.to_string().into());
            request.insert("base_sha".into(), base.to_string().into());
            request.insert("instruction".into(), self.told()?.into());
            let checks = self.check.iter().chain(&self.check_json);
            let checks: Vec<Value> = checks.map(|check| check.0.clone().into()).collect();
            request.insert("tests".into(), checks.into());
        }
        if let (Some(name), Some(email)) = (&self.author_name, &self.author_email) {
            request.insert("commit_author_name".into(), name.to_string().into());
            request.insert("commit_author_email".into(), email.to_string().into());
        }
        if let Some(priority) = self.priority {
            request.insert("priority".into(), priority.get().into());
        }
        if let Some(source) = &self.source_ref {
            request.insert("source_ref".into(), source.as_str().into());
        }
        let body = strict_json::to_line(&Value::Object(request));
        match problem(&body) {
            Some(problem) => Err(task(problem)),
            None => Ok(body),
        }
    }

    fn told(&self) -> Result<String, CliError> {
        let Some(file) = &self.instruction_file else {
            return Ok(self.instruction.clone().unwrap_or_default());
        };
        let bytes = read(file, MAX_INSTRUCTION_BYTES)?;
        String::from_utf8(bytes).map_err(|_| task("the instruction must be UTF-8 text"))
    }
}

/// Reads a request that somebody wrote as JSON and sends it as it is.
fn document(file: &Path) -> Result<Vec<u8>, CliError> {
    let body = read(file, DOCUMENT_BYTES)?;
    let limits = Limits {
        bytes: DOCUMENT_BYTES,
        depth: DOCUMENT_DEPTH,
    };
    strict_json::parse_object(&body, &limits, Layout::Spaced).map_err(|error| {
        CliError::usage(error).because(format!(
            "cannot submit `{}`: it is not one JSON object",
            file.display()
        ))
    })?;
    Ok(body)
}

fn read(file: &Path, limit: usize) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let most = limit as u64 + 1;
    let outcome = if file == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        fs_err::File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    outcome.map_err(|source| ClientError::Read {
        path: file.to_owned(),
        source,
    })?;
    if bytes.len() > limit {
        let name = file.display();
        return Err(task(format!("`{name}` is longer than {limit} bytes")));
    }
    Ok(bytes)
}

/// Says what is wrong with a request, where the rules of a task tell.
fn problem(body: &[u8]) -> Option<String> {
    let limits = Limits {
        bytes: DOCUMENT_BYTES,
        depth: DOCUMENT_DEPTH,
    };
    let object = match strict_json::parse_object(body, &limits, Layout::Spaced) {
        Ok(object) => object,
        Err(error) => return Some(error.to_string()),
    };
    let mut fields = object.fields("");
    if fields.contains("input") {
        return None;
    }
    CodingTask::take(&mut fields, TaskOrigin::Submission)
        .err()
        .map(|error| error.to_string())
}

/// Adds what the rules of a task say to a refusal that gives no reason.
fn explained(error: ClientError, body: &[u8]) -> CliError {
    let reason = match &error {
        ClientError::Refused { status: 400, .. } => problem(body),
        _ => None,
    };
    let error = CliError::from(error);
    match reason {
        Some(reason) => error.hint(reason),
        None => error,
    }
}

fn random_key() -> Result<String, CliError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| CliError::operation(error.to_string()).because("no random bytes"))?;
    Ok(Hex32::from_bytes(bytes).to_string())
}

fn check(line: &str) -> Result<Check, String> {
    words::split(line).map(Check)
}

fn check_json(text: &str) -> Result<Check, String> {
    match serde_json::from_str::<Vec<String>>(text) {
        Ok(words) if !words.is_empty() => Ok(Check(words)),
        _ => Err("must be a JSON array of strings, such as '[\"cargo\",\"test\"]'".to_owned()),
    }
}

fn priority(text: &str) -> Result<Priority, String> {
    let number: i64 = text
        .parse()
        .map_err(|_| "must be a whole number".to_owned())?;
    Priority::new(number).map_err(|error| error.to_string())
}

fn task(problem: impl AsRef<str>) -> CliError {
    ClientError::Task {
        problem: visible(problem.as_ref()),
    }
    .into()
}
