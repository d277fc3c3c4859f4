//! An option that could not take effect is refused before anything runs, never dropped.

use cli_shell::CliError;

/// One rule: an option, and what it needs to mean anything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// The option as it is written.
    pub(crate) option: &'static str,
    /// Whether it was given.
    pub(crate) given: bool,
    /// What it requires, as it is written.
    pub(crate) requires: &'static str,
    /// Whether that is so.
    pub(crate) met: bool,
    /// Why, in half a sentence.
    pub(crate) why: &'static str,
}

/// Refuses the first option that could not take effect.
pub(crate) fn check(rules: &[Rule]) -> Result<(), CliError> {
    match rules.iter().find(|rule| rule.given && !rule.met) {
        None => Ok(()),
        Some(rule) => Err(CliError::usage(format!(
            "{} requires {}; {}",
            rule.option, rule.requires, rule.why
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_is_broken_is_told_in_a_line() {
        let rule = |given, met| Rule {
            option: "--key",
            given,
            requires: "--sign",
            met,
            why: "nothing would be signed",
        };
        for (given, met) in [(false, false), (false, true), (true, true)] {
            assert!(check(&[rule(given, met)]).is_ok());
        }
        let error = check(&[rule(false, false), rule(true, false)]).unwrap_err();
        assert_eq!(
            error.messages(),
            ["--key requires --sign; nothing would be signed"]
        );
        assert_eq!(error.kind().exit_code(), 2);
    }
}
