//! The `--format` of `export` and `import`, which takes the place of the global one.

use cli_shell::Format;

/// Takes the only format that there is.
pub(super) fn in_toto(text: &str) -> Result<Format, String> {
    match text {
        "in-toto" => Ok(Format::Human),
        _ => Err("the only format is `in-toto`".to_owned()),
    }
}
