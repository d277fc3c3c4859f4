//! A workspace plugin: it appends the instruction to `NOTES.md`.
//!
//! Try it: `cargo build --example edit`, then
//! `forge-plugin-conformance --operation workspace_edit target/debug/examples/edit`.

use std::io::Write;
use std::process::ExitCode;

use forge_plugin_kit::{Edit, Failure, Stage, serve_workspace};

fn main() -> ExitCode {
    serve_workspace(|task, context| {
        context.progress(Stage::Working, "writing down what to do");
        if context.cancel().is_cancelled() {
            return Err(Failure::cancelled());
        }
        let path = task.workspace.join("NOTES.md");
        let mut notes = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        writeln!(notes, "- {}", task.instruction)?;
        Ok(Edit::new().commit_subject("docs: note what to do").report(
            "Wrote the instruction down.",
            ["NOTES.md has one more line"],
        ))
    })
}
