//! Whether a lease may be carried out here, judged before anything is touched.
//!
//! A refusal ends the attempt as `invalid_task`, without evidence; its reason stays in the log of
//! the Worker.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bounded::EnvName;
use forge_domain::{CodingTask, ExecutionLimits, PolicyTarget, ResolvedPolicy, Work};

use crate::config::{Host, PluginEntry, WorkerConfig};

/// Variables of a child, in the order of the policy.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// A lease that fits this Worker.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// By what.
    pub(crate) terms: Terms,
    /// What is to be done.
    pub(crate) work: AcceptedWork,
}

/// What both kinds of work have.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The plugin to run.
    pub(crate) plugin: PluginEntry,
    /// Its variables.
    pub(crate) environment: Environment,
    /// The limits of the attempt.
    pub(crate) limits: ExecutionLimits,
}

/// The two kinds of work.
#[derive(Debug)]
pub(crate) enum AcceptedWork {
    /// A text for a text.
    Text {
        /// What the plugin gets.
        input: String,
    },
    /// A change of a repository.
    Coding(Box<AcceptedCoding>),
}

/// A coding task whose repository has been found.
#[derive(Debug)]
pub(crate) struct AcceptedCoding {
    /// The task.
    pub(crate) task: CodingTask,
    /// Where its base must be found.
    pub(crate) target: PolicyTarget,
    /// The canonical path of the repository.
    pub(crate) repository: PathBuf,
    /// The variables of checks: those of the plugin that checks may see.
    pub(crate) check_environment: Environment,
}

/// Why a lease does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Rejection(pub(crate) String);

/// Judges the policy and the task of a lease.
pub(crate) fn accept(
    config: &WorkerConfig,
    host: &Host,
    policy: &ResolvedPolicy,
    work: Work,
) -> Result<Accepted, Rejection> {
    let execution = policy.execution();
    if let Err(limit) = execution.limits().within(&config.ceilings) {
        return Err(reject(format!(
            "`{}` of the policy is above this Worker's ceiling",
            limit.as_str()
        )));
    }
    if let Some(name) = execution
        .environment()
        .iter()
        .find(|name| !config.environment_allowlist.contains(*name))
    {
        return Err(reject(format!(
            "the policy asks for `{name}`, which `environment_allowlist` lacks"
        )));
    }
    let plugin = config.plugins.get(execution.plugin_id()).ok_or_else(|| {
        reject(format!(
            "no plugin `{}` is registered here",
            execution.plugin_id()
        ))
    })?;
    let roots = host
        .repository_roots
        .iter()
        .chain([&host.worktree_root, &host.runtime_root]);
    for root in roots {
        unmoved(root)?;
    }
    let environment = pick(host, execution.environment().iter());
    let work = match (work, execution.target()) {
        (Work::Text { input }, None) => AcceptedWork::Text { input },
        (Work::Text { .. }, Some(_)) => {
            return Err(reject(
                "a text job whose policy names a repository".to_owned(),
            ));
        }
        (Work::Coding(_), None) => {
            return Err(reject(
                "a coding job whose policy names no repository".to_owned(),
            ));
        }
        (Work::Coding(task), Some(target)) => {
            let visible = execution
                .environment()
                .iter()
                .filter(|name| config.check_environment_allowlist.contains(*name));
            AcceptedWork::Coding(Box::new(AcceptedCoding {
                repository: repository(host, &task, target)?,
                target: target.clone(),
                check_environment: pick(host, visible),
                task,
            }))
        }
    };
    let terms = Terms {
        plugin: plugin.clone(),
        environment,
        limits: *execution.limits(),
    };
    Ok(Accepted { terms, work })
}

/// The repository that the Gate prepared, or the one that is registered here.
fn repository(host: &Host, task: &CodingTask, target: &PolicyTarget) -> Result<PathBuf, Rejection> {
    if *task.repository_id() != target.repository_id {
        return Err(reject(
            "the task names another repository than its policy".to_owned(),
        ));
    }
    let path = match task.repository() {
        Some(prepared) => PathBuf::from(prepared),
        None => host
            .repositories
            .get(task.repository_id())
            .cloned()
            .ok_or_else(|| {
                reject(format!(
                    "no repository `{}` is registered here",
                    task.repository_id()
                ))
            })?,
    };
    unmoved(&path)?;
    Ok(path)
}

/// A path that was canonical, or claims to be, still is.
fn unmoved(path: &Path) -> Result<(), Rejection> {
    match path.canonicalize() {
        Ok(canonical) if canonical == path && canonical.is_dir() => Ok(()),
        Ok(canonical) if canonical == path => {
            Err(reject(format!("`{}` is not a directory", path.display())))
        }
        Ok(canonical) => Err(reject(format!(
            "`{}` is not canonical, it leads to `{}`",
            path.display(),
            canonical.display()
        ))),
        Err(error) => Err(reject(format!(
            "`{}` cannot be resolved: {error}",
            path.display()
        ))),
    }
}

/// The values of the named variables; one that is not set here is skipped.
fn pick<'a>(host: &Host, names: impl Iterator<Item = &'a EnvName>) -> Environment {
    names
        .filter_map(|name| {
            let value = host.environment.get(name)?;
            Some((OsString::from(AsRef::<str>::as_ref(name)), value.clone()))
        })
        .collect()
}

fn reject(reason: String) -> Rejection {
    Rejection(reason)
}
