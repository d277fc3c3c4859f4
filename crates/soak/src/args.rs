//! The command line.

use std::path::PathBuf;
use std::time::Duration;

/// What the tool says of itself.
pub(crate) const HELP: &str = "\
Usage: soak --programs FOLDER [--seconds N] [--seed S] [--keep]

  --programs FOLDER  where forge-gate, forge-worker, forge-ref-plugin and forge-exec-plugin lie
  --seconds N        how long jobs are submitted and programs are killed; 60 unless given
  --seed S           repeats the jobs and the schedule of faults of an earlier run
  --keep             keeps the folder also when all is well

Exit codes: 0 nothing found, 1 something found, 2 it could not be run.
";

/// The longest run: a day.
const LONGEST: u64 = 86_400;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Where the programs lie.
    pub(crate) programs: PathBuf,
    /// How long faults are made.
    pub(crate) time: Duration,
    /// The seed of an earlier run.
    pub(crate) seed: Option<u64>,
    /// Whether the folder stays.
    pub(crate) keep: bool,
}

/// Reads the arguments behind the program's name.
pub(crate) fn parse(words: &[String]) -> Result<Options, String> {
    let mut programs = None;
    let mut seconds = 60;
    let mut seed = None;
    let mut keep = false;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--programs" => programs = Some(PathBuf::from(value()?)),
            "--seconds" => seconds = number(word, value()?)?,
            "--seed" => seed = Some(number(word, value()?)?),
            "--keep" => keep = true,
            other => return Err(format!("`{other}` is unknown")),
        }
    }
    if !(1..=LONGEST).contains(&seconds) {
        return Err(format!("--seconds must be 1 to {LONGEST}"));
    }
    Ok(Options {
        programs: programs.ok_or("--programs is missing")?,
        time: Duration::from_secs(seconds),
        seed,
        keep,
    })
}

fn number(word: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{word} needs a number, not `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn everything_can_be_given() {
        let options = parsed("--programs x --seconds 5 --seed 7 --keep").unwrap();
        assert_eq!(options.time, Duration::from_secs(5));
        assert_eq!((options.seed, options.keep), (Some(7), true));
        assert_eq!(parsed("--programs x").unwrap().seed, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "",
            "--seconds 5",
            "--programs x --seconds 0",
            "--programs x --seconds 86401",
            "--programs x --seed a",
            "--programs x --seed",
            "--programs x --fast",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
