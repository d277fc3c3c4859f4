//! The main job on one machine from one command.
//!
//! A Gate, a Worker and a plugin run as processes of their own on loopback, with state that is
//! thrown away; a coding task goes in, and a candidate commit comes out with its evidence. What is
//! shown is asked of the running parts or of git, and every shown step can fail the whole. The
//! user's branches and files are never touched, and no process is left when it ends.

mod error;
mod git;
mod place;
mod present;
mod project;
mod server;
mod story;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use cli_shell::{CliError, Ui};

/// Which parts of the appliance are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Part {
    /// Gate, Worker, plugin and candidate
    Forge,
    /// Everything that this version can do
    #[default]
    All,
    #[value(hide = true)]
    Backplane,
    #[value(hide = true)]
    Attest,
}

/// Shows the main job, from the task to the candidate commit.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Without options it mends a failing test in a small repository made for it, with
a scripted stand-in for an agent. With your own agent in your own repository:
  forge demo --repo ~/src/app --instruction 'Fix the typo in README' \\
      --check 'make test' --env HOME --env OPENAI_API_KEY \\
      --plugin codex exec --sandbox workspace-write -")]
pub struct Demo {
    /// Work on this repository; it gains one ref below refs/agent-forge/ and nothing else
    #[arg(long, value_name = "PATH")]
    repo: Option<PathBuf>,
    /// What the agent is told
    #[arg(long, value_name = "TEXT")]
    instruction: Option<String>,
    /// A command that must succeed in the workspace; may be given several times
    #[arg(long, value_name = "COMMAND", value_parser = check)]
    check: Vec<Words>,
    /// Let the plugin and the checks see this variable; may be given several times
    #[arg(long, value_name = "NAME")]
    env: Vec<bounded::EnvName>,
    /// Keep the state and say how to look further
    #[arg(long)]
    keep: bool,
    /// Which part to show: `forge` or `all`
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "PART"
    )]
    part: Part,
    /// The agent, as the last option: a command that gets the instruction on standard input
    /// and the workspace as its directory
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true)]
    plugin: Vec<String>,
}

/// One command line in words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Words(Vec<String>);

impl Demo {
    /// Runs the demonstration and shows its outcome.
    ///
    /// # Errors
    /// A step failed; what is said names it.
    pub fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        match self.part {
            Part::Forge | Part::All => {}
            Part::Backplane | Part::Attest => {
                return Err(CliError::usage("this version cannot show that part yet")
                    .hint("`--part forge` and `--part all` work"));
            }
        }
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| CliError::operation(error).because("cannot start the runtime"))?
            .block_on(story::tell(self, ui))
    }

    /// The agent's argument vector, if one was named; a single word is split as a shell would.
    fn agent(&self) -> Result<Option<Vec<String>>, CliError> {
        match self.plugin.as_slice() {
            [] => Ok(None),
            [line] => forge_client::split_words(line)
                .map(Some)
                .map_err(|problem| CliError::usage(format!("cannot use `--plugin`: {problem}"))),
            words => Ok(Some(words.to_vec())),
        }
    }
}

fn check(line: &str) -> Result<Words, String> {
    forge_client::split_words(line).map(Words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        demo: Demo,
    }

    fn parse(line: &str) -> Demo {
        let words = line.split(' ').map(|word| word.replace('~', " "));
        Cli::try_parse_from(std::iter::once("demo".to_owned()).chain(words))
            .unwrap()
            .demo
    }

    #[test]
    fn the_plugin_takes_the_rest_of_the_line() {
        let demo = parse("--check make~test --plugin codex exec --keep -");
        assert_eq!(
            demo.agent().unwrap().unwrap(),
            ["codex", "exec", "--keep", "-"]
        );
        assert!(!demo.keep);
        assert_eq!(demo.check, [Words(vec!["make".into(), "test".into()])]);
        let demo = parse("--plugin sh~-c~'a~b'");
        assert_eq!(demo.agent().unwrap().unwrap(), ["sh", "-c", "a b"]);
        assert_eq!(parse("--keep").agent().unwrap(), None);
    }

    #[test]
    fn parts_of_later_versions_are_a_usage_error() {
        let (ui, _) = Ui::captured(&cli_shell::GlobalOpts::default());
        for part in ["backplane", "attest"] {
            let error = parse(&format!("--part {part}")).run(&ui).unwrap_err();
            assert_eq!(error.kind().exit_code(), 2);
        }
    }
}
