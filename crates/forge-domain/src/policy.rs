//! The policy that is resolved once, at submission, and travels unchanged with every attempt.
//!
//! Its canonical form is the wire form (`docs/protocols/gate-worker.md`): compact, in a fixed
//! order, durations in nanoseconds. A later change of configuration never reaches a stored job.

use std::collections::BTreeSet;
use std::time::Duration;

use bounded::{BranchName, EnvName};
use digest_text::Sha256Text;
use serde::Serialize;
use serde::ser::Serializer;
use strict_json::{FieldError, Fields, Layout, Limits, parse_object, to_forge_frame};

use crate::lease::RetryRule;
use crate::{DomainError, PluginId, PoolId, RepositoryId};

/// Shortest duration of a policy.
pub const MIN_DURATION: Duration = Duration::from_millis(1);
/// Longest duration of a policy, and the longest delay between attempts.
pub const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);
/// Most attempts of a job.
pub const MAX_ATTEMPTS: u16 = 100;
/// Most environment names of a policy.
pub const MAX_ENVIRONMENT: usize = 64;
/// Longest canonical form.
pub const MAX_POLICY_BYTES: usize = 16 * 1024;
/// The one retry algorithm.
pub const RETRY_ALGORITHM: &str = "exponential-v1";

const MEBIBYTE: u64 = 1024 * 1024;
const VERSION: u64 = 1;

/// The seven limits of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionLimits {
    /// Whole session of the plugin.
    pub plugin_timeout: Duration,
    /// One declared check.
    pub check_timeout: Duration,
    /// One git command.
    pub git_timeout: Duration,
    /// Clean-up of an attempt.
    pub cleanup_timeout: Duration,
    /// stdout and stderr of the plugin together: 1 byte to 64 MiB.
    pub plugin_output_bytes: u64,
    /// Output of one check: 1 byte to 1 MiB.
    pub check_output_bytes: u64,
    /// Output of one git command: 1 byte to 64 MiB.
    pub git_output_bytes: u64,
}

/// Names one of the seven limits, as the configuration spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitName(&'static str);

impl LimitName {
    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl ExecutionLimits {
    /// Tells whether every limit is inside the bounds of the protocol.
    ///
    /// # Errors
    /// Names the first limit that is not.
    pub fn check(&self) -> Result<(), DomainError> {
        for (name, value) in self.durations() {
            check_duration(name.0, value)?;
        }
        for (name, value, most) in self.sizes() {
            if value == 0 || value > most {
                return Err(DomainError::rule(
                    name.0,
                    format!("must be from 1 to {most} bytes"),
                ));
            }
        }
        Ok(())
    }

    /// Tells whether every limit is at most the same limit of `ceilings`.
    ///
    /// # Errors
    /// Names the first limit that is above.
    pub fn within(&self, ceilings: &Self) -> Result<(), LimitName> {
        let durations = self.durations().into_iter().zip(ceilings.durations());
        for ((name, value), (_, ceiling)) in durations {
            if value > ceiling {
                return Err(name);
            }
        }
        for ((name, value, _), (_, ceiling, _)) in self.sizes().into_iter().zip(ceilings.sizes()) {
            if value > ceiling {
                return Err(name);
            }
        }
        Ok(())
    }

    const fn durations(&self) -> [(LimitName, Duration); 4] {
        [
            (LimitName("plugin_timeout"), self.plugin_timeout),
            (LimitName("check_timeout"), self.check_timeout),
            (LimitName("git_timeout"), self.git_timeout),
            (LimitName("cleanup_timeout"), self.cleanup_timeout),
        ]
    }

    const fn sizes(&self) -> [(LimitName, u64, u64); 3] {
        [
            (
                LimitName("plugin_output_bytes"),
                self.plugin_output_bytes,
                64 * MEBIBYTE,
            ),
            (
                LimitName("check_output_bytes"),
                self.check_output_bytes,
                MEBIBYTE,
            ),
            (
                LimitName("git_output_bytes"),
                self.git_output_bytes,
                64 * MEBIBYTE,
            ),
        ]
    }
}

/// The repository that a coding policy is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyTarget {
    /// The registered repository.
    pub repository_id: RepositoryId,
    /// The branch that a base must belong to.
    pub default_branch: BranchName,
}

/// How an attempt is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionPolicy {
    target: Option<PolicyTarget>,
    plugin_id: PluginId,
    environment: Vec<EnvName>,
    limits: ExecutionLimits,
}

impl ExecutionPolicy {
    /// Makes a policy; `target` is there for coding jobs and absent for text jobs.
    ///
    /// # Errors
    /// A limit is out of bounds, or a name of the environment stands twice or is one too many.
    pub fn new(
        target: Option<PolicyTarget>,
        plugin_id: PluginId,
        environment: Vec<EnvName>,
        limits: ExecutionLimits,
    ) -> Result<Self, DomainError> {
        if environment.len() > MAX_ENVIRONMENT {
            return Err(DomainError::rule(
                "environment",
                format!("must hold at most {MAX_ENVIRONMENT} names"),
            ));
        }
        let unique: BTreeSet<&str> = environment.iter().map(AsRef::as_ref).collect();
        if unique.len() != environment.len() {
            return Err(DomainError::rule("environment", "must hold each name once"));
        }
        limits.check()?;
        Ok(Self {
            target,
            plugin_id,
            environment,
            limits,
        })
    }

    /// Returns the repository, for coding jobs.
    #[must_use]
    pub const fn target(&self) -> Option<&PolicyTarget> {
        self.target.as_ref()
    }

    /// Returns the plugin to run.
    #[must_use]
    pub const fn plugin_id(&self) -> &PluginId {
        &self.plugin_id
    }

    /// Returns the variables that the plugin may see.
    #[must_use]
    pub fn environment(&self) -> &[EnvName] {
        &self.environment
    }

    /// Returns the limits.
    #[must_use]
    pub const fn limits(&self) -> &ExecutionLimits {
        &self.limits
    }

    fn from_fields(mut fields: Fields) -> Result<Self, FieldError> {
        let path = fields.path().to_owned();
        let repository_id = fields.opt_parse("repository_id")?;
        let default_branch = fields.opt_parse("default_branch")?;
        let target = match (repository_id, default_branch) {
            (Some(repository_id), Some(default_branch)) => Some(PolicyTarget {
                repository_id,
                default_branch,
            }),
            (None, None) => None,
            _ => {
                let reason = "must have both `repository_id` and `default_branch` or neither";
                return Err(FieldError::invalid(path, reason));
            }
        };
        let plugin_id = fields.parse("plugin_id")?;
        let environment = fields
            .array("environment")?
            .into_iter()
            .map(strict_json::Element::parse)
            .collect::<Result<_, _>>()?;
        let limits = ExecutionLimits {
            plugin_timeout: nanoseconds(&mut fields, "plugin_timeout_nanos")?,
            check_timeout: nanoseconds(&mut fields, "check_timeout_nanos")?,
            git_timeout: nanoseconds(&mut fields, "git_timeout_nanos")?,
            cleanup_timeout: nanoseconds(&mut fields, "cleanup_timeout_nanos")?,
            plugin_output_bytes: fields.u64("plugin_output_bytes")?,
            check_output_bytes: fields.u64("check_output_bytes")?,
            git_output_bytes: fields.u64("git_output_bytes")?,
        };
        fields.end()?;
        Self::new(target, plugin_id, environment, limits)
            .map_err(|error| FieldError::invalid(path, error.to_string()))
    }
}

/// Everything that a job was promised when it was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPolicy {
    worker_pool: PoolId,
    lease_ttl: Duration,
    retry_base: Duration,
    max_attempts: u16,
    execution: ExecutionPolicy,
}

impl ResolvedPolicy {
    /// Makes a policy of version 1 with the retry algorithm `exponential-v1`.
    ///
    /// # Errors
    /// A value is out of bounds, or the canonical form is longer than [`MAX_POLICY_BYTES`].
    pub fn new(
        worker_pool: PoolId,
        lease_ttl: Duration,
        retry_base: Duration,
        max_attempts: u16,
        execution: ExecutionPolicy,
    ) -> Result<Self, DomainError> {
        check_duration("lease_ttl", lease_ttl)?;
        check_duration("retry_base", retry_base)?;
        if !(1..=MAX_ATTEMPTS).contains(&max_attempts) {
            return Err(DomainError::rule(
                "max_attempts",
                format!("must be from 1 to {MAX_ATTEMPTS}"),
            ));
        }
        let policy = Self {
            worker_pool,
            lease_ttl,
            retry_base,
            max_attempts,
            execution,
        };
        if policy.canonical().len() > MAX_POLICY_BYTES {
            return Err(DomainError::rule(
                "policy",
                format!("must be at most {MAX_POLICY_BYTES} bytes"),
            ));
        }
        Ok(policy)
    }

    /// Decodes the object of the wire; every field is required, no other is allowed.
    ///
    /// # Errors
    /// Names the field that breaks a rule.
    pub fn from_fields(mut fields: Fields) -> Result<Self, FieldError> {
        let path = fields.path().to_owned();
        expect_u64(&mut fields, "version", VERSION)?;
        let worker_pool = fields.parse("worker_pool")?;
        let lease_ttl = nanoseconds(&mut fields, "lease_ttl_nanos")?;
        let retry_base = nanoseconds(&mut fields, "retry_base_nanos")?;
        let max_attempts = fields.u64("max_attempts")?;
        let max_attempts = u16::try_from(max_attempts).unwrap_or(u16::MAX);
        if fields.text("retry_algorithm")? != RETRY_ALGORITHM {
            let reason = format!("must be `{RETRY_ALGORITHM}`");
            return Err(FieldError::invalid(
                fields.path_of("retry_algorithm"),
                reason,
            ));
        }
        if nanoseconds(&mut fields, "retry_max_nanos")? != MAX_DURATION {
            let reason = format!("must be {}", MAX_DURATION.as_nanos());
            return Err(FieldError::invalid(
                fields.path_of("retry_max_nanos"),
                reason,
            ));
        }
        let execution = ExecutionPolicy::from_fields(fields.object("execution")?)?;
        fields.end()?;
        Self::new(worker_pool, lease_ttl, retry_base, max_attempts, execution)
            .map_err(|error| FieldError::invalid(path, error.to_string()))
    }

    /// Reads a canonical form back and refuses every other spelling of the same policy.
    ///
    /// # Errors
    /// The text is not the canonical form of a policy.
    pub fn from_canonical(text: &str) -> Result<Self, DomainError> {
        let limits = Limits {
            bytes: MAX_POLICY_BYTES,
            depth: 4,
        };
        let policy = Self::from_fields(
            parse_object(text.as_bytes(), &limits, Layout::Compact)?.fields("policy"),
        )?;
        if policy.canonical() != text {
            return Err(DomainError::rule("policy", "must be in canonical form"));
        }
        Ok(policy)
    }

    /// Returns the canonical form.
    #[must_use]
    pub fn canonical(&self) -> String {
        String::from_utf8_lossy(&to_forge_frame(self)).into_owned()
    }

    /// Returns the digest of the canonical form, under which equal policies are stored once.
    #[must_use]
    pub fn digest(&self) -> Sha256Text {
        Sha256Text::of(self.canonical().as_bytes())
    }

    /// Returns the version of the policy, which is 1.
    #[must_use]
    pub const fn version(&self) -> u64 {
        VERSION
    }

    /// Returns the pool whose Workers may lease the job.
    #[must_use]
    pub const fn worker_pool(&self) -> &PoolId {
        &self.worker_pool
    }

    /// Returns how long a lease lives without a heartbeat.
    #[must_use]
    pub const fn lease_ttl(&self) -> Duration {
        self.lease_ttl
    }

    /// Returns the delay after the first lost attempt.
    #[must_use]
    pub const fn retry_base(&self) -> Duration {
        self.retry_base
    }

    /// Returns how many attempts the job may have.
    #[must_use]
    pub const fn max_attempts(&self) -> u16 {
        self.max_attempts
    }

    /// Returns how an attempt is executed.
    #[must_use]
    pub const fn execution(&self) -> &ExecutionPolicy {
        &self.execution
    }

    /// Returns when lost attempts are repeated.
    #[must_use]
    pub const fn retry_rule(&self) -> RetryRule {
        RetryRule {
            base: self.retry_base,
            max_delay: MAX_DURATION,
            max_attempts: self.max_attempts,
        }
    }
}

impl Serialize for ResolvedPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let execution = &self.execution;
        let limits = &execution.limits;
        let target = execution.target.as_ref();
        WirePolicy {
            version: VERSION,
            worker_pool: &self.worker_pool,
            lease_ttl_nanos: self.lease_ttl.as_nanos(),
            retry_base_nanos: self.retry_base.as_nanos(),
            max_attempts: self.max_attempts,
            retry_algorithm: RETRY_ALGORITHM,
            retry_max_nanos: MAX_DURATION.as_nanos(),
            execution: WireExecution {
                repository_id: target.map(|target| &target.repository_id),
                default_branch: target.map(|target| &target.default_branch),
                plugin_id: &execution.plugin_id,
                environment: &execution.environment,
                plugin_timeout_nanos: limits.plugin_timeout.as_nanos(),
                check_timeout_nanos: limits.check_timeout.as_nanos(),
                git_timeout_nanos: limits.git_timeout.as_nanos(),
                cleanup_timeout_nanos: limits.cleanup_timeout.as_nanos(),
                plugin_output_bytes: limits.plugin_output_bytes,
                check_output_bytes: limits.check_output_bytes,
                git_output_bytes: limits.git_output_bytes,
            },
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct WirePolicy<'a> {
    version: u64,
    worker_pool: &'a PoolId,
    lease_ttl_nanos: u128,
    retry_base_nanos: u128,
    max_attempts: u16,
    retry_algorithm: &'static str,
    retry_max_nanos: u128,
    execution: WireExecution<'a>,
}

#[derive(Serialize)]
struct WireExecution<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    repository_id: Option<&'a RepositoryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_branch: Option<&'a BranchName>,
    plugin_id: &'a PluginId,
    environment: &'a [EnvName],
    plugin_timeout_nanos: u128,
    check_timeout_nanos: u128,
    git_timeout_nanos: u128,
    cleanup_timeout_nanos: u128,
    plugin_output_bytes: u64,
    check_output_bytes: u64,
    git_output_bytes: u64,
}

fn check_duration(name: &str, value: Duration) -> Result<(), DomainError> {
    if (MIN_DURATION..=MAX_DURATION).contains(&value) {
        Ok(())
    } else {
        Err(DomainError::rule(name, "must be from 1ms to 24h"))
    }
}

fn nanoseconds(fields: &mut Fields, name: &str) -> Result<Duration, FieldError> {
    fields.u64(name).map(Duration::from_nanos)
}

fn expect_u64(fields: &mut Fields, name: &str, expected: u64) -> Result<(), FieldError> {
    if fields.u64(name)? == expected {
        Ok(())
    } else {
        Err(FieldError::invalid(
            fields.path_of(name),
            format!("must be {expected}"),
        ))
    }
}

#[cfg(test)]
mod tests;
