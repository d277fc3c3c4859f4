//! The names of commands that other programs of this name have and this one does not.
//!
//! A script that calls one learns in a line what it met, whatever the arguments. They are looked
//! for before anything is parsed, so that no help text and no completion offers them.

use std::ffi::OsString;

use cli_shell::CliError;

/// Words, and what is here instead.
const NAMES: [(&[&str], &str); 7] = [
    (&["trust"], "`attest keys import` trusts a key"),
    (
        &["evidence", "verify"],
        "`attest verify --archive` verifies one",
    ),
    (&["evidence"], "`attest causal export` makes an archive"),
    (&["image"], "images are signed by other tools"),
    (&["identity"], "`attest sign` signs a receipt"),
    (&["causal", "publish"], "nothing is sent to a log"),
    (&["causal", "fetch-consistency"], "no log is asked"),
];

/// Returns the error for a command that is not here, if the arguments ask for one.
pub(crate) fn asked(args: &[OsString]) -> Option<CliError> {
    let words = words(args);
    let (name, instead) = NAMES.iter().find(|(name, _)| words.starts_with(name))?;
    Some(CliError::usage(format!(
        "no command `{}` here; {instead}",
        name.join(" ")
    )))
}

/// The words at the start that are neither options nor their values.
fn words(args: &[OsString]) -> Vec<&str> {
    let mut args = args.iter().skip(1);
    let mut words = Vec::new();
    while let Some(word) = args.next().and_then(|arg| arg.to_str()) {
        match word.strip_prefix('-') {
            None => words.push(word),
            Some("format" | "-format" | "color" | "-color") => drop(args.next()),
            Some("-") => break,
            Some(_) => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> Option<String> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        asked(&args).map(|error| error.to_string())
    }

    #[test]
    fn names_are_found_behind_global_options_only() {
        for line in [
            "attest trust",
            "attest -v trust bundle --help",
            "attest --format json trust",
            "attest --color=never trust",
        ] {
            let message = error(line).unwrap();
            assert!(
                message.contains("`trust`") && message.len() < 72,
                "{message}"
            );
        }
        assert!(
            error("attest causal publish x")
                .unwrap()
                .contains("`causal publish`")
        );
        for line in [
            "attest causal path trust",
            "attest keys trust",
            "attest --format trust verify",
            "attest -- trust",
            "attest",
        ] {
            assert_eq!(error(line), None, "{line}");
        }
    }
}
