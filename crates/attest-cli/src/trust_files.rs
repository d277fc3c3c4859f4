//! The public files of a trust store, to be carried along as context.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use attest_verify::trust::PublicKey;
use cli_shell::CliError;

const FILE_BYTES: u64 = 1024 * 1024;
const ALL_BYTES: usize = 4 * 1024 * 1024;
const FILES: usize = 256;

/// Reads the policy, the public keys and the certificates of authorities; an absent store has none.
pub(crate) fn public(store: &Path) -> Result<BTreeMap<String, Vec<u8>>, CliError> {
    let mut files = BTreeMap::new();
    take(&mut files, store, "", |name| {
        name == "trust.toml" || name.ends_with(".pub")
    })?;
    take(&mut files, &store.join("tsa"), "tsa/", |name| {
        [".crt", ".pem", ".der"]
            .iter()
            .any(|end| name.ends_with(end))
    })?;
    let bytes: usize = files.values().map(Vec::len).sum();
    if bytes > ALL_BYTES || files.len() > FILES {
        return Err(CliError::operation(format!(
            "more than {FILES} files or {ALL_BYTES} bytes cannot travel along"
        ))
        .because(failed(store))
        .hint("name another store with `--trust-store`"));
    }
    Ok(files)
}

fn take(
    files: &mut BTreeMap<String, Vec<u8>>,
    folder: &Path,
    prefix: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), CliError> {
    let refused = |error: CliError| error.because(failed(folder));
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(CliError::operation(error))),
    };
    for entry in entries {
        let entry = entry.map_err(|error| refused(CliError::operation(error)))?;
        let name = entry.file_name();
        let Some(name) = name
            .to_str()
            .filter(|name| !name.starts_with('.') && wanted(name))
        else {
            continue;
        };
        let bytes = safe_fs::read_bounded(&entry.path(), FILE_BYTES)
            .map_err(|error| refused(CliError::operation(error)))?;
        // A private key under a wrong name must not leave the machine.
        if bytes.windows(7).any(|window| window == b"PRIVATE") {
            return Err(refused(CliError::operation(format!(
                "`{}` holds a private key",
                entry.path().display()
            ))));
        }
        // The store itself minds no such file, and nobody could use it.
        let is_key =
            || std::str::from_utf8(&bytes).is_ok_and(|pem| PublicKey::from_spki_pem(pem).is_ok());
        if files.len() <= FILES && (!name.ends_with(".pub") || is_key()) {
            files.insert(format!("{prefix}{name}"), bytes);
        }
    }
    Ok(())
}

fn failed(folder: &Path) -> String {
    format!("cannot carry the trust store `{}` along", folder.display())
}
