//! The repository of the demonstration: three lines of shell with a mistake, and a test that shows
//! it; or the user's own. And the stand-in for an agent. Nothing but git and sh is needed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cli_shell::{CliError, env, visible};
use forge_client::split_words;
use git_workspace::Repository;

use crate::Demo;
use crate::error::DemoError;
use crate::git::git;
use crate::place::Place;

/// What is worked on, and what is asked for.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) repository: PathBuf,
    pub(crate) branch: String,
    pub(crate) base: String,
    pub(crate) instruction: String,
    pub(crate) checks: Vec<Vec<String>>,
    pub(crate) agent: Vec<String>,
    /// Whether the repository was made for this.
    pub(crate) is_ours: bool,
}

const SUM: &str = "\
#!/bin/sh
# Prints the sum of its arguments.
total=0
for number in \"$@\"; do
    total=$((total - number))
done
echo \"$total\"
";

const TEST: &str = "\
#!/bin/sh
# Exits 0 only if sum.sh adds up.
expect() {
    wanted=$1
    shift
    found=$(sh ./sum.sh \"$@\")
    if [ \"$found\" != \"$wanted\" ]; then
        echo \"sum of $*: expected $wanted, found $found\"
        exit 1
    fi
}
expect 0
expect 5 2 3
expect 42 40 1 1
echo 'all sums are right'
";

const INSTRUCTION: &str = "\
sum.sh must print the sum of its arguments, and test.sh shows that it does not. \
Mend sum.sh; leave test.sh alone.";

const AGENT: &str = r#"#!/bin/sh
# Stands in for an agent: reads the instruction, edits a file, says what it did.
set -eu
IFS= read -r instruction || :
case $instruction in
*sum.sh*) ;;
*) echo 'I only know about sum.sh' >&2 && exit 1 ;;
esac
mended=
while IFS= read -r line; do
    case $line in
    *'total - number'*) line='    total=$((total + number))' ;;
    esac
    mended="$mended$line
"
done <sum.sh
printf '%s' "$mended" >sum.sh
printf '%s\n' 'fix: sum.sh adds instead of subtracting' >"$FORGE_SUBJECT_FILE"
printf '%s\n' '{"summary":"The loop subtracted each argument. It adds them now.",' \
    '"changes":["sum.sh: add each argument to the total"]}' >"$FORGE_REPORT_FILE"
"#;

const OTHER_FILE: &str = "FORGE-DEMO.md";

const OTHER_INSTRUCTION: &str =
    "Add a file FORGE-DEMO.md that says that the appliance was here; change nothing else.";

const OTHER_AGENT: &str = r#"#!/bin/sh
# Stands in for an agent in a repository that it knows nothing of: adds one file.
set -eu
printf '%s\n' '# Agent Forge was here' '' 'This file exists in the candidate commit only.' >FORGE-DEMO.md
printf '%s\n' 'docs: say that Agent Forge was here' >"$FORGE_SUBJECT_FILE"
printf '%s\n' '{"summary":"Added one file, as asked.","changes":["FORGE-DEMO.md: new"]}' \
    >"$FORGE_REPORT_FILE"
"#;

impl Project {
    /// Makes the small repository, or looks at the user's.
    pub(crate) async fn prepare(demo: &Demo, place: &Place) -> Result<Self, CliError> {
        let agent = demo.agent()?;
        if let Some(program) = agent.iter().flatten().next()
            && !can_run(program)
        {
            return Err(DemoError::NoAgent {
                program: visible(program),
            }
            .into());
        }
        let mut project = match &demo.repo {
            Some(path) => Self::theirs(path, place).await?,
            None => Self::ours(place).await?,
        };
        if let Some(agent) = agent {
            project.agent = agent;
        }
        if let Some(instruction) = &demo.instruction {
            project.instruction.clone_from(instruction);
        }
        if !demo.check.is_empty() {
            project.checks = demo.check.iter().map(|words| words.0.clone()).collect();
        } else if demo.repo.is_some() && (demo.instruction.is_some() || !demo.plugin.is_empty()) {
            // What somebody else is told cannot be checked by our file.
            project.checks.clear();
        }
        Ok(project)
    }

    async fn ours(place: &Place) -> Result<Self, CliError> {
        let repository = place.path("repositories/demo");
        place.folder("repositories/demo")?;
        place.write("repositories/demo/sum.sh", SUM)?;
        place.write("repositories/demo/test.sh", TEST)?;
        git(
            &repository,
            &[
                "init",
                "--quiet",
                "--initial-branch=main",
                "--template=",
                ".",
            ],
        )
        .await?;
        git(&repository, &["add", "sum.sh", "test.sh"]).await?;
        git(
            &repository,
            &["commit", "--quiet", "--message", "Sums, with a mistake"],
        )
        .await?;
        Ok(Self {
            base: git(&repository, &["rev-parse", "HEAD"]).await?,
            repository,
            branch: "main".to_owned(),
            instruction: INSTRUCTION.to_owned(),
            checks: vec![words("sh test.sh")],
            agent: script(place, AGENT)?,
            is_ours: true,
        })
    }

    async fn theirs(path: &Path, place: &Place) -> Result<Self, CliError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let path = fs_err::canonicalize(&path).unwrap_or(path);
        let found =
            Repository::discover(&path).map_err(|source| DemoError::Repository { source })?;
        let repository = found.path().to_owned();
        let branch = git(&repository, &["symbolic-ref", "--quiet", "--short", "HEAD"])
            .await
            .map_err(|_| DemoError::NoBranch {
                path: repository.clone(),
            })?;
        let base = git(&repository, &["rev-parse", "--verify", "HEAD^{commit}"])
            .await
            .map_err(|_| DemoError::NoCommit {
                path: repository.clone(),
            })?;
        Ok(Self {
            base,
            repository,
            branch,
            instruction: OTHER_INSTRUCTION.to_owned(),
            checks: vec![vec![
                "test".to_owned(),
                "-s".to_owned(),
                OTHER_FILE.to_owned(),
            ]],
            agent: script(place, OTHER_AGENT)?,
            is_ours: false,
        })
    }
}

/// Whether a program is there: what is only found out later costs attempts.
fn can_run(program: &str) -> bool {
    let is_there = |path: &Path| {
        fs_err::metadata(path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_there(Path::new(program));
    }
    let search_path = env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search_path).any(|folder| is_there(&folder.join(program)))
}

/// Writes a script beside the state, not into the repository, and returns how to run it.
fn script(place: &Place, text: &str) -> Result<Vec<String>, DemoError> {
    let path = place.write("agent.sh", text)?;
    Ok(vec!["sh".to_owned(), path.display().to_string()])
}

fn words(line: &str) -> Vec<String> {
    split_words(line).unwrap_or_default()
}
