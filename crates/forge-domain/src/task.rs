//! What a job asks for: a text, or a change of a repository.

use std::fmt;
use std::str::FromStr;

use bounded::{AuthorEmail, AuthorName, GitSha};
use serde::{Serialize, Serializer};
use strict_json::{Element, FieldError, Fields, Layout, Limits, parse_object, to_forge_frame};

use crate::{DomainError, RepositoryId};

/// Longest instruction, in bytes.
pub const MAX_INSTRUCTION_BYTES: usize = 65_536;
/// Longest input of a text job, in bytes: what the plugin protocol carries.
pub const MAX_INPUT_BYTES: usize = 65_536;
/// Most declared checks.
pub const MAX_TESTS: usize = 32;
/// Most arguments of a declared check, the program included.
pub const MAX_ARGUMENTS: usize = 64;
/// Longest argument, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 4096;

/// Longest canonical form of a submitted task: with its policy it must fit into one lease message.
pub const MAX_TASK_BYTES: usize = 1024 * 1024 - 20 * 1024;

const MAX_REPOSITORY_BYTES: usize = 4096;

/// Which of the two kinds a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// A change of a repository, with a candidate commit as its result.
    Coding,
    /// A text, with a text as its result; the name is the original's.
    Legacy,
}

impl JobKind {
    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Coding => "coding",
            Self::Legacy => "legacy",
        }
    }
}

impl fmt::Display for JobKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The author of the candidate commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The name, at most 256 bytes.
    pub name: AuthorName,
    /// The address, at most 254 bytes.
    pub email: AuthorEmail,
}

/// Where a task is read from, which decides the fields that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOrigin {
    /// An owner's request: no `repository`; `tests` may be absent.
    Submission,
    /// A lease or the store: `repository` is allowed; `tests` is required and may be null.
    Lease,
}

/// A change of a repository, to be made from one base commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodingTask {
    repository_id: RepositoryId,
    repository: Option<String>,
    base_sha: GitSha,
    instruction: String,
    tests: Option<Vec<Vec<String>>>,
    author: Option<Author>,
}

impl CodingTask {
    /// Takes the fields of a task out of an object, and leaves the rest to the caller.
    ///
    /// # Errors
    /// Names the field that breaks a rule.
    pub fn take(fields: &mut Fields, origin: TaskOrigin) -> Result<Self, FieldError> {
        let repository_id = fields.parse("repository_id")?;
        let repository = match origin {
            TaskOrigin::Submission => None,
            TaskOrigin::Lease => fields.opt_text("repository")?,
        };
        if let Some(reason) = repository.as_deref().and_then(not_absolute) {
            return Err(FieldError::invalid(fields.path_of("repository"), reason));
        }
        let base_sha = fields.parse("base_sha")?;
        let instruction = fields.text("instruction")?;
        if instruction.is_empty() || instruction.len() > MAX_INSTRUCTION_BYTES {
            let reason = format!("must be 1 to {MAX_INSTRUCTION_BYTES} bytes");
            return Err(FieldError::invalid(fields.path_of("instruction"), reason));
        }
        let tests = if origin == TaskOrigin::Submission && !fields.contains("tests") {
            None
        } else {
            let path = fields.path_of("tests");
            fields
                .null_or_array("tests")?
                .map(|tests| decode_tests(&path, tests))
                .transpose()?
        };
        let author = match (
            fields.opt_parse("commit_author_name")?,
            fields.opt_parse("commit_author_email")?,
        ) {
            (Some(name), Some(email)) => Some(Author { name, email }),
            (None, None) => None,
            _ => {
                let reason =
                    "must have both `commit_author_name` and `commit_author_email` or neither";
                return Err(FieldError::invalid(
                    fields.path_of("commit_author_name"),
                    reason,
                ));
            }
        };
        let task = Self {
            repository_id,
            repository,
            base_sha,
            instruction,
            tests,
            author,
        };
        if origin == TaskOrigin::Submission && task.canonical().len() > MAX_TASK_BYTES {
            let reason = format!("must be at most {MAX_TASK_BYTES} bytes when it is encoded");
            return Err(FieldError::invalid(fields.path_of("task"), reason));
        }
        Ok(task)
    }

    /// Decodes the object of a lease; no other field is allowed.
    ///
    /// # Errors
    /// Names the field that breaks a rule.
    pub fn from_fields(mut fields: Fields) -> Result<Self, FieldError> {
        let task = Self::take(&mut fields, TaskOrigin::Lease)?;
        fields.end()?;
        Ok(task)
    }

    /// Reads a canonical form back and refuses every other spelling of the same task.
    ///
    /// # Errors
    /// The text is not the canonical form of a task.
    pub fn from_canonical(text: &str) -> Result<Self, DomainError> {
        let limits = Limits {
            bytes: MAX_TASK_BYTES,
            depth: 4,
        };
        let task = Self::from_fields(
            parse_object(text.as_bytes(), &limits, Layout::Compact)?.fields("task"),
        )?;
        if task.canonical() != text {
            return Err(DomainError::rule("task", "must be in canonical form"));
        }
        Ok(task)
    }

    /// Returns the canonical form, which is the form of the wire.
    #[must_use]
    pub fn canonical(&self) -> String {
        String::from_utf8_lossy(&to_forge_frame(self)).into_owned()
    }

    /// Returns the repository to change.
    #[must_use]
    pub const fn repository_id(&self) -> &RepositoryId {
        &self.repository_id
    }

    /// Returns the absolute path of a repository that the Gate prepared, if it did.
    #[must_use]
    pub fn repository(&self) -> Option<&str> {
        self.repository.as_deref()
    }

    /// Returns the commit to start from.
    #[must_use]
    pub const fn base_sha(&self) -> &GitSha {
        &self.base_sha
    }

    /// Returns what the agent is told.
    #[must_use]
    pub fn instruction(&self) -> &str {
        &self.instruction
    }

    /// Returns the argument vectors of the declared checks, in order.
    #[must_use]
    pub fn tests(&self) -> &[Vec<String>] {
        self.tests.as_deref().unwrap_or_default()
    }

    /// Returns the author of the candidate commit, if the task names one.
    #[must_use]
    pub const fn author(&self) -> Option<&Author> {
        self.author.as_ref()
    }
}

impl Serialize for CodingTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let author = self.author.as_ref();
        WireTask {
            repository_id: &self.repository_id,
            repository: self.repository(),
            base_sha: &self.base_sha,
            instruction: &self.instruction,
            tests: self.tests.as_deref(),
            commit_author_name: author.map(|author| &author.name),
            commit_author_email: author.map(|author| &author.email),
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct WireTask<'a> {
    repository_id: &'a RepositoryId,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<&'a str>,
    base_sha: &'a GitSha,
    instruction: &'a str,
    tests: Option<&'a [Vec<String>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_author_name: Option<&'a AuthorName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_author_email: Option<&'a AuthorEmail>,
}

/// What a job asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A text for the plugin, not empty.
    Text {
        /// The text.
        input: String,
    },
    /// A change of a repository.
    Coding(CodingTask),
}

impl Work {
    /// Makes the work of a text job of 1 to [`MAX_INPUT_BYTES`] bytes.
    ///
    /// # Errors
    /// The text is empty or too long.
    pub fn text(input: String) -> Result<Self, DomainError> {
        if input.is_empty() || input.len() > MAX_INPUT_BYTES {
            return Err(DomainError::rule(
                "input",
                format!("must be 1 to {MAX_INPUT_BYTES} bytes"),
            ));
        }
        Ok(Self::Text { input })
    }

    /// Returns the kind of the job.
    #[must_use]
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Text { .. } => JobKind::Legacy,
            Self::Coding(_) => JobKind::Coding,
        }
    }

    /// Returns the task of a coding job.
    #[must_use]
    pub const fn coding(&self) -> Option<&CodingTask> {
        match self {
            Self::Text { .. } => None,
            Self::Coding(task) => Some(task),
        }
    }
}

impl FromStr for JobKind {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "coding" => Ok(Self::Coding),
            "legacy" => Ok(Self::Legacy),
            _ => Err(DomainError::rule("kind", "must be `coding` or `legacy`")),
        }
    }
}

fn decode_tests(path: &str, tests: Vec<Element>) -> Result<Vec<Vec<String>>, FieldError> {
    if tests.len() > MAX_TESTS {
        return Err(FieldError::invalid(
            path,
            format!("must hold at most {MAX_TESTS} checks"),
        ));
    }
    tests.into_iter().map(decode_argv).collect()
}

fn decode_argv(test: Element) -> Result<Vec<String>, FieldError> {
    let path = test.path().to_owned();
    let argv = test
        .array()?
        .into_iter()
        .map(decode_argument)
        .collect::<Result<Vec<_>, _>>()?;
    if argv.is_empty() || argv.len() > MAX_ARGUMENTS {
        return Err(FieldError::invalid(
            path,
            format!("must hold 1 to {MAX_ARGUMENTS} arguments"),
        ));
    }
    if argv.first().is_some_and(String::is_empty) {
        return Err(FieldError::invalid(path, "must name a program"));
    }
    Ok(argv)
}

fn decode_argument(argument: Element) -> Result<String, FieldError> {
    let path = argument.path().to_owned();
    let argument = argument.text()?;
    if argument.len() > MAX_ARGUMENT_BYTES {
        return Err(FieldError::invalid(
            path,
            format!("must be at most {MAX_ARGUMENT_BYTES} bytes"),
        ));
    }
    if argument.contains('\0') {
        return Err(FieldError::invalid(path, "must hold no NUL"));
    }
    Ok(argument)
}

fn not_absolute(path: &str) -> Option<String> {
    if !path.starts_with('/') || path.contains('\0') {
        return Some("must be an absolute path".to_owned());
    }
    (path.len() > MAX_REPOSITORY_BYTES)
        .then(|| format!("must be at most {MAX_REPOSITORY_BYTES} bytes"))
}

#[cfg(test)]
mod tests;
