//! The workspace's own checks: `cargo xtask ci` runs all of them, each also runs alone.
//! It starts cargo, git and the programs of this workspace; it is no part of the appliance.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a build tool starts programs, reads its environment and talks to a person"
)]

use std::process::ExitCode;

mod ci;
mod cli_docs;
mod codex;
mod conformance;
mod deny;
mod floors;
mod interop;
mod nix;
mod packages;
mod soak;
mod stage;
mod tidy;
mod tools;
mod vm;
mod workspace;

const HELP: &str = "\
The workspace's own checks

Usage: cargo xtask COMMAND

  ci            every check and every test; installs what they need and says so
  tools         only installs what `ci` needs
  floors        edges between crates go strictly down; writes nothing
    --write       writes the crate graph into docs/architecture.md
  tidy          file heads, file sizes, lint tables, words that do not belong here
  conformance   every rule of docs/conformance names tests that exist
  deny          licences, sources and duplicates of the dependencies (deny.toml)
  cli-docs      docs/reference/cli.md is what the programs say
    --write       writes it
  nix           the flake through the stand-in of e2e/host: builds, refusals, units, apps
    --write       writes the units' texts
  packages      the publishable crates pack, and a plugin builds from the packed sources
  driver        the form and the tests of e2e/driver
  vm [NAME] [--backend nspawn|qemu]
                the scenarios of e2e/, or one, on machines of their own; root is needed
  interop       each attest verifies what the other made, the original's and ours; installs
                the original once, from the crate registry into a cache
  bench         every benchmark, one after the other
  soak          kills a Gate and two Workers at random and judges what is left
    --minutes N   for how long
    --seed S      repeats the schedule of an earlier run

Exit codes: 0 all is well, 1 a check found something, 2 it could not be run.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["ci"] => ci::run(),
        ["tools"] => ci::install(),
        ["floors"] => floors::run(false),
        ["floors", "--write"] => floors::run(true),
        ["tidy"] => tidy::run(),
        ["conformance"] => conformance::run(),
        ["deny"] => deny::run(),
        ["cli-docs"] => cli_docs::run(false),
        ["cli-docs", "--write"] => cli_docs::run(true),
        ["nix"] => nix::run(false),
        ["nix", "--write"] => nix::run(true),
        ["packages"] => packages::run(),
        ["driver"] => vm::driver(),
        ["vm", options @ ..] => vm::run(options),
        ["interop"] => interop::command(),
        ["bench"] => ci::bench(),
        ["soak", words @ ..] => soak::command(words),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => {
            eprintln!("xtask: no such command: {}\n", other.join(" "));
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(stage::Verdict::Clean) => ExitCode::SUCCESS,
        Ok(stage::Verdict::Found) => ExitCode::from(1),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
