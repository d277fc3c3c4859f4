//! The main job on one machine from one command.
//!
//! A Gate, a Worker and a plugin run as processes of their own on loopback, with state that is
//! thrown away; a coding task goes in, and a candidate commit comes out with its evidence. What is
//! shown is asked of the running parts or of git, and every shown step can fail the whole. The
//! user's branches and files are never touched, and no process is left when it ends.
//!
//! A second part does the same for attest: a receipt is made, signed, verified, and put to the test. A
//! third does it for backplane: a package goes to a registry and comes back, and what must not, does not.

mod attest;
mod backplane;
mod command;
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
use cli_shell::{CliError, Ui, exit};

/// Which parts of the appliance are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Gate, Worker, plugin and candidate
    Forge,
    /// A pipeline, its signed receipt, and what a receipt does not survive
    Attest,
    /// A registry, a package on its way through it, and what a registry refuses
    Backplane,
    /// Everything that this version can do
    All,
}

/// The parts in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    forge: bool,
    attest: bool,
    backplane: bool,
}

impl Parts {
    const ALL: Self = Self {
        forge: true,
        attest: true,
        backplane: true,
    };
    const NONE: Self = Self {
        forge: false,
        attest: false,
        backplane: false,
    };
}

/// Shows the main job, from the task to the candidate commit, then a signed receipt and a registry.
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
    /// Which part to show: `forge`, `attest`, `backplane` or `all` [default: all; with a repository,
    /// task or agent of yours: forge]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "PART")]
    part: Option<Part>,
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
        let parts = self.parts()?;
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| CliError::operation(error).because("cannot start the runtime"))?
            .block_on(async {
                if parts.forge {
                    story::tell(self, ui).await?;
                }
                if parts.forge && parts.attest {
                    ui.status("\nthe second part: a pipeline, and the signed receipt of it\n");
                }
                if parts.attest {
                    attest::tell(self.keep, ui).await?;
                }
                if parts.attest && parts.backplane {
                    ui.status(
                        "\nthe third part: a registry, and a package on its way through it\n",
                    );
                }
                if parts.backplane {
                    backplane::tell(self.keep, ui).await?;
                }
                Ok(exit::ok())
            })
    }

    /// Which parts are shown.
    fn parts(&self) -> Result<Parts, CliError> {
        let only = match (self.part, self.is_about_a_task()) {
            (None, false) | (Some(Part::All), _) => return Ok(Parts::ALL),
            (None, true) | (Some(Part::Forge), _) => Parts {
                forge: true,
                ..Parts::NONE
            },
            (Some(Part::Attest), false) => Parts {
                attest: true,
                ..Parts::NONE
            },
            (Some(Part::Backplane), false) => Parts {
                backplane: true,
                ..Parts::NONE
            },
            (Some(Part::Attest | Part::Backplane), true) => {
                return Err(CliError::usage(
                    "the options for a repository, task or agent go with `--part forge` and `--part all` only",
                ));
            }
        };
        Ok(only)
    }

    fn is_about_a_task(&self) -> bool {
        self.repo.is_some()
            || self.instruction.is_some()
            || !self.check.is_empty()
            || !self.env.is_empty()
            || !self.plugin.is_empty()
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
    fn a_task_of_ones_own_is_shown_alone_unless_all_is_asked_for() {
        let one = |name: &str| Parts {
            forge: name == "forge",
            attest: name == "attest",
            backplane: name == "backplane",
        };
        for (line, parts) in [
            ("--keep", Parts::ALL),
            ("--part all", Parts::ALL),
            ("--part forge", one("forge")),
            ("--part attest --keep", one("attest")),
            ("--part backplane", one("backplane")),
            ("--repo x", one("forge")),
            ("--check true", one("forge")),
            ("--part all --plugin x", Parts::ALL),
        ] {
            assert_eq!(parse(line).parts().unwrap(), parts, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_shown_is_a_usage_error() {
        let (ui, _) = Ui::captured(&cli_shell::GlobalOpts::default());
        for line in [
            "--part backplane --repo x",
            "--part attest --repo x",
            "--part attest --env A",
        ] {
            let error = parse(line).run(&ui).unwrap_err();
            assert_eq!(error.kind().exit_code(), 2);
        }
    }
}
