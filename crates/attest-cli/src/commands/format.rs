//! The `--format` of `export` and `import`, which stands beside the global one.

use clap::Args;
use cli_shell::Format;

/// What a statement is. The global `--format` goes before the command.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct StatementFormat {
    /// The format of the statement: `in-toto`, a Statement v1 with SLSA provenance v1 in a DSSE envelope
    #[arg(id = "statement_format", long = "format", value_name = "FORMAT", required = true, value_parser = in_toto)]
    _statement: InToto,
    /// How results are written, which every other command calls `--format`: under this id the
    /// global option passes its value on, and under this name it does not collide.
    #[arg(
        id = "format",
        long = "record-format",
        value_name = "FORMAT",
        hide = true
    )]
    _records: Option<Format>,
}

/// The only format of a statement that there is.
#[derive(Debug, Clone, Copy)]
struct InToto;

fn in_toto(text: &str) -> Result<InToto, String> {
    match text {
        "in-toto" => Ok(InToto),
        "json" | "human" | "text" => Err(format!(
            "the only format of a statement is `in-toto`; `--format {text}` for what is printed goes before the command"
        )),
        _ => Err("the only format of a statement is `in-toto`".to_owned()),
    }
}
