//! The program that the tests of this crate run, and their process wrapper.
//!
//! It is built with the package, yet belongs to no product.
#![expect(clippy::print_stdout, reason = "tests read what it says there")]

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use attest_plugin_host::Executable;
use process_tree::{Capture, Spec, Wrapper, capture};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    if let Some(code) = process_tree::run_wrapper_if_asked() {
        return code;
    }
    let mut words = std::env::args_os().skip(1);
    let word = words.next().unwrap_or_default();
    let done = match word.to_str() {
        Some("mark") => mark(),
        Some("descriptors") => descriptors(),
        Some("hold") => hold(words),
        _ => Err(io::Error::other("no such word")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("fixture: {error}");
            ExitCode::from(99)
        }
    }
}

/// Says the last line of the file that it is executed from: tests put one behind the program.
fn mark() -> io::Result<()> {
    let bytes = fs_err::read("/proc/self/exe")?;
    let line = bytes.rsplit(|byte| *byte == b'\n').next();
    println!("{}", String::from_utf8_lossy(line.unwrap_or_default()));
    Ok(())
}

/// Says which descriptors it was given.
fn descriptors() -> io::Result<()> {
    let mut numbers = Vec::new();
    for entry in fs_err::read_dir("/proc/self/fd")? {
        let entry = entry?;
        // The reading itself takes one, which is gone when it is over.
        if fs_err::read_link(entry.path()).is_ok_and(|to| !to.starts_with("/proc")) {
            numbers.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    numbers.sort();
    println!("{}", numbers.join(" "));
    Ok(())
}

/// Holds a program, says how, waits for a line, and runs the program with the rest of the words.
fn hold(mut words: impl Iterator<Item = OsString>) -> io::Result<()> {
    let path = PathBuf::from(words.next().unwrap_or_default());
    let held = Executable::open(&path).map_err(io::Error::other)?;
    println!("{:?}", held.held());
    io::stdout().flush()?;
    io::stdin().lock().read_line(&mut String::new())?;
    let argv = std::iter::once(held.program().into()).chain(words);
    let limits = Capture::new(Duration::from_secs(60), 10_000);
    let cancel = CancellationToken::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let wrapper = Wrapper::current_exe()?;
    let ran = runtime
        .block_on(capture(&wrapper, Spec::new(argv), limits, &cancel))
        .map_err(io::Error::other)?;
    io::stdout().write_all(&ran.stdout)
}
