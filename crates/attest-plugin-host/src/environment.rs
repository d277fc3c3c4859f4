//! Everything that a plugin's process gets beside its descriptors (seed 4.1).
//!
//! The seed's own table is lost; which variables there are beside `ATTEST_WORKSPACE` is ours:
//!
//! | variable | value |
//! |---|---|
//! | `ATTEST_WORKSPACE` | the workspace, absolute; also the working directory |
//! | `ATTEST_PLUGIN_NAME` | the declared name |
//! | `ATTEST_PLUGIN_PROTOCOL` | `1` |
//! | `ATTEST_VERSION` | as in `hello` |
//! | `PATH` | the absolute entries of the core's; absent where there are none |
//! | `LANG`, `LC_ALL` | `C.UTF-8`, unless declared |
//! | `TZ` | `UTC`, unless declared |
//! | what `env` declares | as declared; never an `ATTEST_` name or `PATH` |

use std::ffi::OsString;
use std::path::Path;

use attest_plugin_protocol::MAJOR;

use crate::declare::Declared;
use crate::resolve::SearchPath;

/// The whole environment of a plugin; nothing of the core's own.
pub(crate) fn environment(
    declared: &Declared,
    workspace: &Path,
    attest_version: &str,
    search: &SearchPath,
) -> Vec<(OsString, OsString)> {
    let fixed = [("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TZ", "UTC")];
    let mut variables: Vec<(OsString, OsString)> = fixed
        .into_iter()
        .filter(|(name, _)| !declared.env.contains_key(*name))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let declared_ones = declared.env.iter();
    variables.extend(declared_ones.map(|(name, value)| (name.into(), value.into())));
    variables.extend([
        ("ATTEST_WORKSPACE".into(), workspace.into()),
        (
            "ATTEST_PLUGIN_NAME".into(),
            declared.name.to_string().into(),
        ),
        ("ATTEST_PLUGIN_PROTOCOL".into(), MAJOR.to_string().into()),
        ("ATTEST_VERSION".into(), attest_version.into()),
    ]);
    variables.extend(search.variable().map(|path| ("PATH".into(), path.into())));
    variables
}
