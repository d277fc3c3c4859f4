//! Arguments as the programs of the same names took them: one dash before a long option.
//!
//! `-config gate.json` and `-operation=text` become `--config gate.json` and `--operation=text`.
//! What follows `--`, and what belongs to a command line that is passed on, is never touched.

use std::ffi::{OsStr, OsString};

use clap::{ArgAction, Command};

/// Rewrites `-long` to `--long` where `long` is an option of the command or subcommand in force.
pub fn normalize_args(
    command: &Command,
    args: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut args = args.into_iter();
    let mut out: Vec<OsString> = args.next().into_iter().collect();
    let mut scope = Scope::of(command);
    while let Some(arg) = args.next() {
        let Some(text) = arg.to_str() else {
            out.push(arg);
            continue;
        };
        if text == "--" {
            out.push(arg);
            break;
        }
        let Some(option) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            let descended = scope.enter(text);
            out.push(arg);
            if !descended && scope.passes_on() {
                break;
            }
            continue;
        };
        let (name, inline_value) = match option.strip_prefix('-').unwrap_or(option).split_once('=')
        {
            Some((name, _)) => (name, true),
            None => (option.strip_prefix('-').unwrap_or(option), false),
        };
        let known = scope.long(name);
        let takes_value = known.or_else(|| scope.short(option)).unwrap_or(false);
        let single_dash = !option.starts_with('-');
        if known.is_some() && single_dash && name.chars().count() > 1 {
            let mut long = OsString::from("-");
            long.push(OsStr::new(text));
            out.push(long);
        } else {
            out.push(arg);
        }
        // The next argument may be this option's value and look like an option itself.
        if takes_value && !inline_value {
            out.extend(args.next());
        }
    }
    out.extend(args);
    out
}

/// The command in force and those above it, whose global options also count.
struct Scope<'a> {
    commands: Vec<&'a Command>,
}

impl<'a> Scope<'a> {
    fn of(command: &'a Command) -> Self {
        Self {
            commands: vec![command],
        }
    }

    /// Goes down into the subcommand of that name, if there is one.
    fn enter(&mut self, name: &str) -> bool {
        let found = self
            .commands
            .last()
            .and_then(|last| last.find_subcommand(name));
        self.commands.extend(found);
        found.is_some()
    }

    /// Whether everything from the first positional on belongs to another command line.
    fn passes_on(&self) -> bool {
        self.commands.last().is_some_and(|last| {
            last.get_positionals()
                .any(clap::Arg::is_trailing_var_arg_set)
        })
    }

    /// Whether the long option exists, and if so whether it takes a value.
    fn long(&self, name: &str) -> Option<bool> {
        if matches!(name, "help" | "version") {
            return Some(false);
        }
        self.find(|arg| {
            arg.get_long() == Some(name)
                || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
        })
    }

    /// The same for a lone short option.
    fn short(&self, name: &str) -> Option<bool> {
        let mut letters = name.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => self.find(|arg| arg.get_short() == Some(letter)),
            _ => None,
        }
    }

    fn find(&self, matches: impl Fn(&clap::Arg) -> bool) -> Option<bool> {
        let last = self.commands.len().saturating_sub(1);
        self.commands
            .iter()
            .enumerate()
            .flat_map(|(depth, command)| {
                command
                    .get_arguments()
                    .filter(move |arg| depth == last || arg.is_global_set())
            })
            .find(|arg| !arg.is_positional() && matches(arg))
            .map(|arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn command() -> Command {
        Command::new("tool")
            .arg(Arg::new("operation").long("operation"))
            .arg(Arg::new("wait").long("wait").action(ArgAction::SetTrue))
            .arg(Arg::new("url").long("url").short('u').global(true))
            .subcommand(
                Command::new("run")
                    .arg(Arg::new("file").long("file"))
                    .arg(Arg::new("argv").num_args(1..).trailing_var_arg(true)),
            )
    }

    fn normalized(line: &str) -> String {
        let args = line.split(' ').map(OsString::from);
        let words: Vec<_> = normalize_args(&command(), args)
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        words.join(" ")
    }

    #[test]
    fn single_dash_long_options_get_their_second_dash() {
        assert_eq!(normalized("tool -operation text"), "tool --operation text");
        assert_eq!(normalized("tool -operation=text"), "tool --operation=text");
        assert_eq!(normalized("tool -wait -version"), "tool --wait --version");
        assert_eq!(
            normalized("tool run -file F -url U"),
            "tool run --file F --url U"
        );
    }

    #[test]
    fn what_is_no_option_of_the_command_stays() {
        assert_eq!(normalized("tool -u -wait"), "tool -u -wait");
        assert_eq!(normalized("tool -file F"), "tool -file F");
        assert_eq!(
            normalized("tool --operation -wait"),
            "tool --operation -wait"
        );
        assert_eq!(normalized("tool - -x -vv"), "tool - -x -vv");
    }

    #[test]
    fn a_command_line_that_is_passed_on_stays() {
        assert_eq!(normalized("tool run prog -file x"), "tool run prog -file x");
        assert_eq!(normalized("tool -- -wait"), "tool -- -wait");
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_not_text_stay() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(vec![b'-', 0xff]);
        let args = vec![OsString::from("tool"), odd.clone(), OsString::from("-wait")];
        assert_eq!(
            normalize_args(&command(), args),
            [OsString::from("tool"), odd, OsString::from("--wait")]
        );
    }
}
