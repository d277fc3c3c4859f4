//! What an operator gets wrong on a Gate's host, looked at without starting one.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cli_shell::{Finding, Secret};
use gate_store::Location;
use tls_files::ServerTls;

use crate::config::{GateConfig, TokenSource};
use crate::serve::tokens;

/// Below it nothing is stored: room for some minutes of a busy log.
const MIN_FREE_BYTES: u64 = 64 << 20;

/// Looks at everything that a Gate with this configuration needs of its host. Changes nothing.
#[must_use]
pub fn examine(file: &Path) -> Vec<Finding> {
    let config = match cli_shell::config::load(file, GateConfig::read) {
        Ok(config) => config,
        Err(error) => {
            let fix = format!(
                "correct it until `forge-gate --check-config {}` is content",
                file.display()
            );
            return vec![Finding::error("gate config", &error, fix)];
        }
    };
    let mut found = vec![Finding::ok(
        "gate config",
        format!("`{}` is valid", file.display()),
    )];
    found.push(token("gate owner token", &config.owner_token));
    for worker in &config.workers {
        found.push(token(
            &format!("gate token of {}", worker.id),
            &worker.token,
        ));
    }
    if found.iter().all(|one| one.fix.is_none())
        && let Err(error) = tokens(&config)
    {
        let fix = "give the owner and each Worker a token of its own";
        found.push(Finding::error("gate tokens", &error, fix));
    }
    if let Some(files) = &config.tls {
        found.push(Finding::of_secret_file("gate key", &files.key));
        found.push(match ServerTls::load(&files.certificate, &files.key) {
            Ok(_) => Finding::ok("gate certificate", "certificate and key fit together"),
            Err(error) => Finding::error(
                "gate certificate",
                &error,
                "give PEM files of one pair, the whole chain in the certificate",
            ),
        });
    }
    found.extend(database(&config.database));
    found
}

fn token(check: &str, source: &TokenSource) -> Finding {
    match source {
        TokenSource::Env(name) => {
            let name: &str = name.as_ref();
            match Secret::from_env(name) {
                Ok(_) => Finding::ok(check, format!("variable `{name}` holds one")),
                Err(error) => Finding::warn(
                    check,
                    format!("{error}: `{name}`"),
                    "fine if only the Gate's service sets it; else set it",
                ),
            }
        }
        TokenSource::File(path) => match Secret::from_file(path) {
            Ok(_) => Finding::of_secret_file(check, path),
            Err(error) => Finding::error(
                check,
                &error,
                "put the token there, in one line, readable for the Gate's user",
            ),
        },
    }
}

fn database(location: &Location) -> Vec<Finding> {
    const CHECK: &str = "gate database";
    let Location::File(path) = location else {
        return vec![Finding::warn(
            CHECK,
            "the queue is in memory only and ends with the Gate",
            "name a file in `database`",
        )];
    };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let Some(folder) = path.parent() else {
        return vec![Finding::fail(CHECK, "it names no file", "name a file")];
    };
    let shown = folder.display();
    let mode = match fs_err::metadata(folder) {
        Ok(found) => found.mode() & 0o7777,
        Err(error) => {
            let message = format!("{error}; the Gate makes the folder at its start if it may");
            let fix = format!("install -d -m 0700 {shown}, owned by the Gate's user");
            return vec![Finding::warn(CHECK, message, fix)];
        }
    };
    let space = Finding::of_free_space("gate space", folder, MIN_FREE_BYTES);
    if mode & 0o077 != 0 {
        let message =
            format!("`{shown}` is not private (mode {mode:04o}), and the Gate refuses it");
        return vec![
            Finding::fail(CHECK, message, format!("chmod 0700 {shown}")),
            space,
        ];
    }
    let first = match fs_err::metadata(&path) {
        Ok(found) if found.mode() & 0o077 != 0 => {
            let file = path.display();
            let message = format!("`{file}` is not private, and the Gate refuses it");
            Finding::fail(CHECK, message, format!("chmod 0600 {file}"))
        }
        Ok(_) => Finding::ok(CHECK, format!("`{}` is private", path.display())),
        Err(_) => Finding::ok(
            CHECK,
            format!("`{shown}` is private, the Gate makes the file"),
        ),
    };
    vec![first, space]
}
