//! The plugins of a run: declared before it, started before anything of it, and gone when it is
//! over, whatever became of it.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use attest_engine::hooks::Hooks;
use attest_engine::output::Secrets;
use attest_engine::plugins::PluginHooks;
use attest_plugin_host::{HostOptions, Plugins, RunLog, SearchPath, StartError, Strictness};
use cli_shell::{CliError, env};
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

use super::log::Log;
use super::pipeline::version;
use crate::commands::plugins::refused;
use crate::commands::through::Aside;

/// Whoever is asked in a run.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    workspace: &'a Path,
    plugins: Plugins,
    file: Option<&'a Path>,
    log: OnceCell<Arc<Log>>,
}

/// Why a run did not begin.
#[derive(Debug)]
pub(super) enum Unstarted {
    /// It was interrupted while plugins were starting.
    Interrupted,
    /// A plugin is not what was declared, or is needed and did not start.
    Failed(CliError),
}

impl From<CliError> for Unstarted {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}

impl<'a> Asked<'a> {
    /// Reads the declarations of a workspace. What plugins say goes to the file, too.
    pub(super) fn declared(workspace: &'a Path, file: Option<&'a Path>) -> Result<Self, CliError> {
        let plugins = Plugins::load(workspace, Strictness::Run).map_err(refused)?;
        Ok(Self {
            workspace,
            plugins: plugins.unwrap_or_default(),
            file,
            log: OnceCell::new(),
        })
    }

    /// Does the work while the plugins are there to be asked.
    pub(super) async fn during<T>(
        &self,
        wrapper: &Wrapper,
        cancel: &CancellationToken,
        secrets: Secrets,
        show: Aside,
        work: impl AsyncFnOnce(&mut PluginHooks) -> T,
    ) -> Result<T, Unstarted> {
        let log = Arc::new(Log::new(show, secrets, self.file, self.workspace)?);
        let log = self.log.get_or_init(|| log);
        let workspace = fs_err::canonicalize(self.workspace);
        let options = HostOptions {
            workspace: workspace.map_err(CliError::operation)?,
            attest_version: version(),
            search: SearchPath::new(env::var_os("PATH").unwrap_or_default()),
            wrapper: wrapper.clone(),
            log: Arc::clone(log) as Arc<dyn RunLog>,
            cancel: cancel.clone(),
        };
        let hooks = PluginHooks::start(&self.plugins, options).await;
        let mut hooks = hooks.map_err(unstarted)?;
        let done = work(&mut hooks).await;
        // A run that got as far as its receipt has ended them itself.
        hooks.finish().await;
        Ok(done)
    }

    /// Says that what changed while a step ran may be the work of a plugin.
    pub(super) fn suspects(&self) -> Option<&'static str> {
        const ALSO: &str = "a plugin that was asked before the step may have changed them as well";
        (!self.plugins.plugins.is_empty()).then_some(ALSO)
    }

    /// Returns why the log lacks lines, if it does.
    pub(super) fn lost(&self) -> Option<CliError> {
        self.log.get()?.lost()
    }
}

fn unstarted(error: StartError) -> Unstarted {
    let hint = match &error {
        StartError::Cancelled => return Unstarted::Interrupted,
        // The error of a digest that differs says itself what to do.
        StartError::Resolve { .. } => Some("`attest plugins list` shows what each plugin is"),
        _ => None,
    };
    let error = CliError::operation(error).because("the run did not begin");
    Unstarted::Failed(match hint {
        Some(hint) => error.hint(hint),
        None => error,
    })
}
