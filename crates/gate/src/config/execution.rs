//! How attempts run: the life cycle of jobs and the limits of an execution.

use std::time::Duration;

use bounded::{EnvName, GoDuration};
use forge_domain::{
    DomainError, ExecutionLimits, ExecutionPolicy, MAX_DURATION, MAX_ENVIRONMENT, MIN_DURATION,
    PluginId, PolicyTarget, PoolId, ResolvedPolicy,
};
use strict_json::{FieldError, Fields};

const MEBIBYTE: u64 = 1 << 20;

/// The rules that every job's attempts follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    /// How long a lease lasts without a heartbeat.
    pub lease_ttl: Duration,
    /// The delay before the second attempt; it doubles from there.
    pub retry_base: Duration,
    /// How many attempts a job gets.
    pub max_attempts: u16,
}

/// What an attempt runs and how far it may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The plugin, as Workers know it.
    pub plugin_id: PluginId,
    /// The variables that the plugin may see.
    pub environment: Vec<EnvName>,
    /// How far it may go.
    pub limits: ExecutionLimits,
}

impl Lifecycle {
    pub(super) fn read(mut fields: Fields) -> Result<Self, FieldError> {
        let lifecycle = Self {
            lease_ttl: duration(&mut fields, "lease_ttl", MIN_DURATION, MAX_DURATION)?,
            retry_base: duration(&mut fields, "retry_base", MIN_DURATION, MAX_DURATION)?,
            max_attempts: number(&mut fields, "max_attempts", 1, 100)?,
        };
        fields.end()?;
        Ok(lifecycle)
    }
}

impl Execution {
    pub(super) fn read(mut fields: Fields) -> Result<Self, FieldError> {
        let execution = Self {
            plugin_id: fields.parse("plugin_id")?,
            environment: environment(&mut fields)?,
            limits: ExecutionLimits {
                plugin_timeout: duration(
                    &mut fields,
                    "plugin_timeout",
                    MIN_DURATION,
                    MAX_DURATION,
                )?,
                check_timeout: duration(&mut fields, "check_timeout", MIN_DURATION, MAX_DURATION)?,
                git_timeout: duration(&mut fields, "git_timeout", MIN_DURATION, MAX_DURATION)?,
                cleanup_timeout: duration(
                    &mut fields,
                    "cleanup_timeout",
                    MIN_DURATION,
                    MAX_DURATION,
                )?,
                plugin_output_bytes: number(&mut fields, "plugin_output_bytes", 1, 64 * MEBIBYTE)?,
                check_output_bytes: number(&mut fields, "check_output_bytes", 1, MEBIBYTE)?,
                git_output_bytes: number(&mut fields, "git_output_bytes", 1, 64 * MEBIBYTE)?,
            },
        };
        fields.end()?;
        Ok(execution)
    }
}

impl Lifecycle {
    /// The policy of jobs that run like this; `target` is there for coding jobs.
    pub(crate) fn policy(
        &self,
        pool: &PoolId,
        target: Option<PolicyTarget>,
        execution: &Execution,
    ) -> Result<ResolvedPolicy, DomainError> {
        let execution = ExecutionPolicy::new(
            target,
            execution.plugin_id.clone(),
            execution.environment.clone(),
            execution.limits,
        )?;
        ResolvedPolicy::new(
            pool.clone(),
            self.lease_ttl,
            self.retry_base,
            self.max_attempts,
            execution,
        )
    }
}

fn environment(fields: &mut Fields) -> Result<Vec<EnvName>, FieldError> {
    let path = fields.path_of("environment");
    let elements = fields.array("environment")?;
    if elements.len() > MAX_ENVIRONMENT {
        let reason = format!("must name at most {MAX_ENVIRONMENT} variables");
        return Err(FieldError::invalid(path, reason));
    }
    let mut names: Vec<EnvName> = Vec::with_capacity(elements.len());
    for element in elements {
        let path = element.path().to_owned();
        let name = element.parse()?;
        if names.contains(&name) {
            return Err(FieldError::invalid(path, format!("names `{name}` again")));
        }
        names.push(name);
    }
    Ok(names)
}

/// Reads a duration in Go's spelling, bounds included.
pub(super) fn duration(
    fields: &mut Fields,
    name: &str,
    least: Duration,
    most: Duration,
) -> Result<Duration, FieldError> {
    let path = fields.path_of(name);
    let value = Duration::from(fields.parse::<GoDuration>(name)?);
    if value < least || value > most {
        let shown =
            |bound| GoDuration::try_from(bound).map_or_else(|_| String::new(), String::from);
        let reason = format!("must be from {} to {}", shown(least), shown(most));
        return Err(FieldError::invalid(path, reason));
    }
    Ok(value)
}

/// Reads a whole number, bounds included.
pub(super) fn number<T: TryFrom<u64>>(
    fields: &mut Fields,
    name: &str,
    least: u64,
    most: u64,
) -> Result<T, FieldError> {
    let path = fields.path_of(name);
    let value = fields.u64(name)?;
    let out_of_bounds =
        || FieldError::invalid(path.clone(), format!("must be from {least} to {most}"));
    if value < least || value > most {
        return Err(out_of_bounds());
    }
    T::try_from(value).map_err(|_| out_of_bounds())
}
