//! Agent Plugins 1.0.0 packages, loaded and judged from a map of files.
//!
//! [`load`] is a function of bytes: it opens no file, starts no process, asks no network and
//! fetches no schema. A package whose manifest is wrong is rejected with everything that is wrong
//! in it; a wrong skill, server or `mcp.json` disables itself alone and is reported.
//!
//! ```
//! use agent_plugin::{Files, Options, load};
//!
//! let manifest = br#"{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"example"}"#;
//! let files = Files::from([("plugin.json".to_owned(), manifest.to_vec())]);
//! let package = load(files, &Options::default()).map_err(|found| format!("{found:?}"))?;
//! assert_eq!(package.name(), "example");
//! # Ok::<(), String>(())
//! ```

mod address;
mod code;
mod collision;
mod diagnostic;
mod fields;
mod frontmatter;
#[doc(hidden)]
pub mod fuzz_entry;
mod inspection;
pub mod launch;
mod load;
mod manifest;
mod mcp;
mod package;
mod place;
mod scalar;
pub mod schemas;
mod server;
mod skills;

pub use code::Code;
pub use collision::collisions;
pub use diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Severity};
pub use inspection::Inspection;
pub use load::{Containment, Options, load, load_found, load_with};
pub use manifest::{MANIFEST, PLUGIN_SCHEMA};
pub use mcp::{MCP, MCP_SCHEMA};
pub use package::{Files, McpServer, Package, Skill, Transport};
