//! The plugin under test, and what each process of it is given: what a run would give it.

use std::ffi::OsString;
use std::iter::once;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attest_plugin_host::{Executable, SearchPath};
use attest_plugin_protocol::PluginName;
use process_tree::{Child, Leftovers, Spec, StartError, Stdin, Wrapper};
use safe_fs::{PrivateTempDir, SafeFsError};

/// The name under which a plugin runs before it has told its own.
const UNKNOWN_NAME: &str = "plugin";

/// A plugin and what is declared about it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The executable, held as a run holds it: what is started is what was opened.
    pub executable: Arc<Executable>,
    /// Its arguments, of which a run has none.
    pub arguments: Vec<OsString>,
    /// The declared name; whatever the plugin says where it is not known.
    pub name: Option<PluginName>,
    /// The declared `env` table.
    pub env: Vec<(String, String)>,
    /// The folders in which bare names are found.
    pub search: SearchPath,
    /// The version of attest that the plugin is told.
    pub attest_version: String,
    /// The workspace; a new empty folder for each process where there is none.
    pub workspace: Option<PathBuf>,
    /// The executable that watches over each process.
    pub wrapper: Wrapper,
}

/// Why there is no process.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The plugin could not be started.
    #[error("the plugin cannot be started")]
    Start(#[from] StartError),
    /// There is no folder for it to work in.
    #[error("the suite cannot make a workspace")]
    Workspace(#[from] SafeFsError),
    /// The temporary folder cannot be found.
    #[error("the suite cannot find the temporary folder")]
    Temporary(#[source] std::io::Error),
}

/// A started process and the folder that goes away with it.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) ground: Option<PrivateTempDir>,
}

impl Target {
    /// Starts a process under a name, with variables of its own beside those of a run.
    pub(crate) async fn start(
        &self,
        name: &str,
        more: &[(&str, &str)],
    ) -> Result<Started, TargetError> {
        let (workspace, ground) = match &self.workspace {
            Some(workspace) => (workspace.clone(), None),
            None => {
                let ground = temporary()?;
                (ground.path().to_owned(), Some(ground))
            }
        };
        let program = self.executable.program().as_os_str().to_owned();
        let spec = Spec::new(once(program).chain(self.arguments.iter().cloned()))
            .env(self.environment(name, &workspace))
            .env(more.iter().copied())
            .cwd(workspace)
            .stdin(Stdin::Pipe)
            .leftovers(Leftovers::Fail);
        let child = process_tree::spawn(&self.wrapper, spec)
            .await
            .map_err(|error| error.naming(self.executable.path()))?;
        Ok(Started { child, ground })
    }

    /// Returns the name to start under before the plugin has told its own.
    pub(crate) fn first_name(&self) -> String {
        let declared = || Some(self.name.as_ref()?.to_string());
        declared()
            .or_else(|| guess(self.executable.path()))
            .unwrap_or_else(|| UNKNOWN_NAME.to_owned())
    }

    /// The variables of a plugin process, and no other.
    fn environment(&self, name: &str, workspace: &Path) -> Vec<(OsString, OsString)> {
        let table: [(&str, OsString); 7] = [
            ("ATTEST_WORKSPACE", workspace.into()),
            ("ATTEST_PLUGIN_NAME", name.into()),
            ("ATTEST_PLUGIN_PROTOCOL", "1".into()),
            ("ATTEST_VERSION", self.attest_version.clone().into()),
            ("LANG", "C.UTF-8".into()),
            ("LC_ALL", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
        ];
        let path = self.search.variable().map(|path| ("PATH", path.to_owned()));
        let declared = self
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        table
            .into_iter()
            .chain(path)
            .map(|(name, value)| (name.into(), value))
            .chain(declared)
            .collect()
    }
}

/// The name that a file suggests: `attest-policy` is `policy`.
fn guess(path: &Path) -> Option<String> {
    let file = path.file_stem()?.to_str()?;
    let name = file.strip_prefix("attest-").unwrap_or(file);
    Some(name.parse::<PluginName>().ok()?.to_string())
}

fn temporary() -> Result<PrivateTempDir, TargetError> {
    let root = fs_err::canonicalize(std::env::temp_dir()).map_err(TargetError::Temporary)?;
    Ok(PrivateTempDir::new_in(&root, "attest-conformance-")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t41_the_environment_is_the_table_and_what_is_declared() {
        let mut target = Target {
            executable: Arc::new(Executable::open(Path::new("/bin/sh")).unwrap()),
            arguments: Vec::new(),
            name: None,
            env: vec![("POLICY_FILE".to_owned(), "p.toml".to_owned())],
            search: SearchPath::new(":/usr/bin:.:/bin"),
            attest_version: "1.2.3".to_owned(),
            workspace: None,
            wrapper: Wrapper::new("/wrapper"),
        };
        let given = |target: &Target| -> Vec<String> {
            target
                .environment("policy", Path::new("/work"))
                .into_iter()
                .map(|(name, value)| format!("{}={}", name.display(), value.display()))
                .collect()
        };
        let all = [
            "ATTEST_WORKSPACE=/work",
            "ATTEST_PLUGIN_NAME=policy",
            "ATTEST_PLUGIN_PROTOCOL=1",
            "ATTEST_VERSION=1.2.3",
            "LANG=C.UTF-8",
            "LC_ALL=C.UTF-8",
            "TZ=UTC",
            "PATH=/usr/bin:/bin",
            "POLICY_FILE=p.toml",
        ];
        assert_eq!(given(&target), all);
        target.search = SearchPath::new("");
        assert_eq!(given(&target).len(), all.len() - 1);
    }

    #[test]
    fn a_file_suggests_a_name_if_it_can() {
        let name = |path: &str| guess(Path::new(path));
        assert_eq!(name("/bin/attest-policy").unwrap(), "policy");
        assert_eq!(name("./noop.sh").unwrap(), "noop");
        assert_eq!(name("./No Op"), None);
    }
}
