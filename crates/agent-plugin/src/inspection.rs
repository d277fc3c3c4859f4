//! What was found in a package as one JSON document.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::{Diagnostic, Files, Package};

/// A package and what was found in it, or why there is none.
///
/// It serializes as `{"package":…,"diagnostics":[…]}`, where `package` is `null` if it was
/// rejected. The bytes of files are not in it, their paths and lengths are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inspection<'a> {
    package: Option<&'a Package>,
    diagnostics: &'a [Diagnostic],
}

impl<'a> From<&'a Result<Package, Vec<Diagnostic>>> for Inspection<'a> {
    fn from(loaded: &'a Result<Package, Vec<Diagnostic>>) -> Self {
        match loaded {
            Ok(package) => Self {
                package: Some(package),
                diagnostics: &package.diagnostics,
            },
            Err(found) => Self {
                package: None,
                diagnostics: found,
            },
        }
    }
}

impl Serialize for Inspection<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("package", &self.package)?;
        map.serialize_entry("diagnostics", self.diagnostics)?;
        map.end()
    }
}

impl Serialize for Package {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("name", self.name())?;
        map.serialize_entry("version", &self.version())?;
        map.serialize_entry("manifest", &self.manifest)?;
        map.serialize_entry("skills", &self.skills)?;
        map.serialize_entry("mcp_servers", &self.mcp_servers)?;
        map.serialize_entry("files", &Listed(&self.files))?;
        map.end()
    }
}

/// Files by path and length.
struct Listed<'a>(&'a Files);

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    bytes: usize,
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(path, content)| File {
            path,
            bytes: content.len(),
        }))
    }
}
