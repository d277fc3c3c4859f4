//! Licences of crates that name a file instead of an expression: `[[licenses.clarify]]` says which
//! it is, and the hash of the file says for which text that was judged.

use std::fs;
use std::path::Path;

use crate::workspace::Package;

use super::xxh32::xxh32;

/// One `[[licenses.clarify]]` table.
#[derive(Debug)]
pub(super) struct Clarification {
    name: String,
    expression: String,
    files: Vec<(String, u32)>,
}

impl Clarification {
    /// Tells whether it speaks of a package.
    pub(super) fn is_about(&self, package: &Package) -> bool {
        self.name == package.name && package.licence.is_none()
    }

    /// Returns the expression, if the package's files are the ones that were judged.
    pub(super) fn expression(&self, package: &Package) -> Result<&str, String> {
        if self.files.is_empty() {
            return Err(format!("`{}` is clarified without a file", self.name));
        }
        for (path, expected) in &self.files {
            let hash = hash_of(&package.folder.join(path))
                .map_err(|error| format!("`{}`: cannot read {path}: {error}", self.name))?;
            if hash != *expected {
                return Err(format!(
                    "`{}`: {path} is another text (hash 0x{hash:08x}): read it and judge it anew",
                    self.name
                ));
            }
        }
        Ok(&self.expression)
    }

    /// Names the crate.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Reads the clarifications of `deny.toml`; one that is not understood is an error.
pub(super) fn read(rules: &toml::Table) -> Result<Vec<Clarification>, String> {
    let Some(list) = rules
        .get("licenses")
        .and_then(|licenses| licenses.get("clarify"))
    else {
        return Ok(Vec::new());
    };
    let tables = list.as_array().map_or(&[][..], Vec::as_slice);
    tables.iter().map(clarification).collect()
}

fn clarification(table: &toml::Value) -> Result<Clarification, String> {
    let text = |key: &str| {
        table
            .get(key)
            .and_then(toml::Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| format!("a clarification has no `{key}`"))
    };
    let name = text("crate")?;
    let files = table
        .get("license-files")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .map(|file| {
            license_file(file).ok_or_else(|| format!("`{name}`: a file needs path and hash"))
        })
        .collect::<Result<_, _>>()?;
    Ok(Clarification {
        expression: text("expression")?,
        name,
        files,
    })
}

fn license_file(file: &toml::Value) -> Option<(String, u32)> {
    let path = file.get("path")?.as_str()?.to_owned();
    let hash = u32::try_from(file.get("hash")?.as_integer()?).ok()?;
    Some((path, hash))
}

/// Hashes a text as cargo-deny does: every line ends in a line feed, the last one too.
fn hash_of(path: &Path) -> std::io::Result<u32> {
    let mut text = String::new();
    for line in fs::read_to_string(path)?.lines() {
        text.push_str(line.trim_end_matches('\r'));
        text.push('\n');
    }
    Ok(xxh32(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIT: &str = "Permission is granted,\r\nfree of charge\r\n";

    fn package(folder: &Path) -> Package {
        Package {
            name: "x".to_owned(),
            version: "1.0.0".to_owned(),
            licence: None,
            source: None,
            folder: folder.to_path_buf(),
        }
    }

    fn rules(hash: u32) -> Vec<Clarification> {
        let text = format!(
            "[[licenses.clarify]]\ncrate = \"x\"\nexpression = \"MIT\"\nlicense-files = [{{ path = \"LICENSE\", hash = {hash} }}]\n"
        );
        read(&toml::from_str(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_known_text_has_the_licence_that_was_judged() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("LICENSE"), MIT).unwrap();
        let hash = xxh32(b"Permission is granted,\nfree of charge\n");
        let package = package(folder.path());
        let known = rules(hash);
        assert!(known[0].is_about(&package));
        assert_eq!(known[0].expression(&package), Ok("MIT"));

        let other = rules(hash ^ 1);
        assert!(other[0].expression(&package).is_err());
        fs::remove_file(folder.path().join("LICENSE")).unwrap();
        assert!(known[0].expression(&package).is_err());
    }

    #[test]
    fn a_stated_licence_needs_no_clarification() {
        let mut package = package(Path::new("nowhere"));
        package.licence = Some("MIT".to_owned());
        assert!(!rules(0)[0].is_about(&package));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "crate = \"x\"",
            "expression = \"MIT\"",
            "crate = \"x\"\nexpression = \"MIT\"\nlicense-files = [{ path = \"LICENSE\" }]",
        ] {
            let rules = toml::from_str(&format!("[[licenses.clarify]]\n{text}\n")).unwrap();
            assert!(read(&rules).is_err(), "{text}");
        }
    }
}
