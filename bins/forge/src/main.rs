//! The operator's command, and under hidden names every program that `forge demo` starts.
use clap::{Parser, Subcommand};
use cli_shell::{GlobalOpts, Ui};
use reference_plugins::{codex_plugin, exec_plugin, ref_plugin};
use std::process::ExitCode;

/// Submits tasks, follows them, and fetches the commits that they made.
#[derive(Debug, Parser)]
#[command(name = "forge", version = cli_shell::version(), max_term_width = 80)]
struct Forge {
    #[command(flatten)]
    global: GlobalOpts,
    #[command(subcommand)]
    command: Command,
}
#[derive(Debug, Subcommand)]
enum Command {
    /// Show the main job on this machine, from the task to the candidate commit
    Demo(demo::Demo),
    #[command(flatten)]
    Client(forge_client::Commands),
}
/// What `forge doctor` looks at on this machine.
const HOSTS: forge_client::HostChecks = forge_client::HostChecks {
    gate: |file| Box::pin(async move { gate::examine(&file) }),
    worker: |file| Box::pin(async move { worker::examine(&file).await }),
};
fn main() -> ExitCode {
    if let Some(code) = process_tree::run_wrapper_if_asked() {
        return code;
    }
    let args: Vec<_> = std::env::args_os().collect();
    let under = |name: &str| std::iter::once(name.into()).chain(args.iter().skip(2).cloned());
    match args.get(1).and_then(|role| role.to_str()) {
        Some("__gate") => gate::main_from(under("forge-gate")),
        Some("__worker") => worker::main_from(under("forge-worker")),
        Some("__attest") => attest_cli::main_from(under("attest")),
        Some("__attest-policy") => attest_policy_plugin::main_from(under("attest-policy")),
        Some("__backplane") => backplane_cli::main_from(under("backplane")),
        Some("__codex-plugin") => codex_plugin::main_from(under(codex_plugin::NAME)),
        Some("__exec-plugin") => exec_plugin::main_from(under(exec_plugin::NAME)),
        Some("__ref-plugin") => ref_plugin::main_from(under("forge-ref-plugin")),
        _ => cli_shell::main_with(args, |forge: Forge| match &forge.command {
            Command::Demo(demo) => demo.run(&Ui::new(&forge.global)),
            Command::Client(client) => forge_client::run(client, &Ui::new(&forge.global), &HOSTS),
        }),
    }
}
