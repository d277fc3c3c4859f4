//! What is a policy, and what the error says of what is none.

use test_case::test_case;

use super::{MAX_BYTES, MAX_RULES, Policy, PolicyError};

const RULE: &str =
    "[[env]]\nid = \"r\"\ndecision = \"deny\"\nseverity = \"low\"\nforbidden = [\"X\"]\n";

#[track_caller]
fn refused(text: &str) -> String {
    Policy::parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn rules_stay_in_the_order_of_the_file_and_the_digest_is_of_its_bytes() {
    let text = "# ours\nversion = 1\n\
        [[duration]]\nid = \"d.1\"\ndecision = \"warn\"\nseverity = \"info\"\ntotal_secs = 0\n\
        [[step]]\nid = \"s_1\"\ndecision = \"deny\"\nseverity = \"critical\"\nrequired = [\"a\"]\n\
        [[duration]]\nid = \"d-2\"\ndecision = \"warn\"\nseverity = \"high\"\nstep_secs = 1\nsteps = [\"a*\"]\n";
    let policy = Policy::parse(text.as_bytes()).unwrap();
    let ids: Vec<&str> = policy.rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids, ["d.1", "s_1", "d-2"]);
    let digest = blake3::hash(text.as_bytes()).to_hex();
    assert_eq!(policy.digest(), format!("blake3:{digest}"));
}

#[test_case("id = \"r\"", "name = \"r\"", "line 3: unknown field `name`, expected one of"; "unknown key")]
#[test_case("[[env]]", "[[envs]]", "line 2: unknown field `envs`"; "unknown table")]
#[test_case("version = 1", "version = 2", "line 1: `version` is 1; another version needs another program"; "version")]
#[test_case("version = 1", "version = 2\nlater = true", "line 1: `version` is 1; another version needs another program"; "version before what it brings")]
#[test_case("[[env]]", "[env]", "line 2: a table where a list is expected; a rule begins with two brackets, as in `[[step]]`"; "one bracket")]
#[test_case("version = 1", "version = \"1\"", "line 1: invalid type: string \"1\", expected i64"; "version as text")]
#[test_case("version = 1\n", "", "line 1: missing field `version`"; "no version")]
#[test_case("severity = \"low\"\n", "", "line 2: missing field `severity`"; "no severity")]
#[test_case("severity = \"low\"", "severity = \"Low\"", "line 5: `severity` is one of info, low, medium, high, critical"; "severity")]
#[test_case("\"deny\"", "\"allow\"", "line 4: `decision` is \"warn\" or \"deny\""; "a decision that could not refuse")]
#[test_case("\"r\"", "\"R\"", "line 3: `id` is 1 to 64 of a-z, 0-9, `-`, `_` and `.`"; "id")]
#[test_case("\"r\"", "\"\"", "line 3: `id` is 1 to 64"; "empty id")]
#[test_case("[\"X\"]", "[]", "line 6: `forbidden` is a list of 1 to 256 patterns"; "no pattern")]
#[test_case("[\"X\"]", "\"X\"", "line 6: invalid type: string \"X\", expected a list"; "no list")]
#[test_case("[\"X\"]", "[\"X\",\n\"\"]", "line 7: `forbidden`: a pattern is empty, which matches nothing"; "empty pattern")]
#[test_case("[\"X\"]", "[\"X\",\n\n\"X\"]", "line 8: `forbidden`: the pattern stands twice"; "twice")]
#[test_case("[\"X\"]", "[\"LD_PRELOAD=*\"]", "line 6: `forbidden`: a pattern has a `=`, which is in no name of a variable"; "a value")]
#[test_case("[\"X\"]", "[\"a**\"]", "line 6: `forbidden`: a pattern has `**`; one `*` matches `/` as well"; "two stars")]
#[test_case("[\"X\"]", "[\"a[\"]", "line 6: `forbidden`: a pattern has a `[` that nothing closes"; "bracket")]
#[test_case("id = \"r\"", "id = \"r\"\nmessage = \"a\\nb\"", "line 4: `message` is one line of 1 to 256 bytes"; "message")]
#[test_case("id = \"r\"", "id = \"r\"\nif_unknown = \"warn\"", "line 4: unknown field `if_unknown`"; "a key of other rules")]
#[test_case("id = \"r\"", "id = \"r\"\nid = \"q\"", "line 4: duplicate key"; "key twice")]
fn what_is_refused(from: &str, to: &str, says: &str) {
    let text = format!("version = 1\n{RULE}");
    assert!(Policy::parse(text.as_bytes()).is_ok());
    assert!(text.contains(from));
    let error = refused(&text.replacen(from, to, 1));
    assert!(error.starts_with(says), "{error}");
}

#[test_case("command", "", "line 3: a command rule has `allow`, `deny` or both")]
#[test_case(
    "command",
    "allow = [\"a[;]\"]",
    "line 6: `allow`: a pattern has ';' in brackets"
)]
#[test_case(
    "duration",
    "",
    "line 3: a duration rule has `step_secs`, `total_secs` or both"
)]
#[test_case(
    "duration",
    "total_secs = 1\nsteps = [\"a\"]",
    "line 7: `steps` without `step_secs`"
)]
#[test_case(
    "duration",
    "total_secs = -1",
    "line 6: invalid value: integer `-1`, expected u64"
)]
#[test_case(
    "step",
    "required = [\"a\"]\nordered = true",
    "line 7: `ordered`: there is no order"
)]
#[test_case(
    "step",
    "required = [\"a\"]\nif_unknown = \"allow\"",
    "line 7: `if_unknown` is"
)]
#[test_case("output", "", "line 2: missing field `required`")]
fn what_contradicts_itself(table: &str, keys: &str, says: &str) {
    let head = "id = \"r\"\ndecision = \"deny\"\nseverity = \"low\"";
    let error = refused(&format!("version = 1\n[[{table}]]\n{head}\n{keys}\n"));
    assert!(error.starts_with(says), "{error}");
}

#[test]
fn names_stand_once_in_the_whole_file() {
    let other =
        "[[command]]\nid = \"r\"\ndecision = \"deny\"\nseverity = \"low\"\ndeny = [\"X\"]\n";
    assert_eq!(
        refused(&format!("version = 1\n{RULE}{other}")),
        "line 8: `id`: another rule is called `r` already"
    );
}

#[test]
fn a_policy_without_a_rule_is_none() {
    assert_eq!(Policy::parse(b"version = 1"), Err(PolicyError::Empty));
    assert_eq!(
        Policy::parse(b"version = 1\nenv = []\n"),
        Err(PolicyError::Empty)
    );
}

#[test]
fn what_is_no_text_has_its_line() {
    assert_eq!(
        Policy::parse(b"version = 1\n# \xff\n")
            .unwrap_err()
            .to_string(),
        "line 2: not UTF-8"
    );
    let error = refused("version = 1\n[[step]\n");
    assert!(error.starts_with("line 2: "), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn as_many_bytes_and_rules_as_allowed_and_one_more() {
    let mut text = format!("version = 1\n{RULE}#");
    text.push_str(&"x".repeat(MAX_BYTES - text.len()));
    assert!(Policy::parse(text.as_bytes()).is_ok());
    text.push('x');
    assert_eq!(
        Policy::parse(text.as_bytes()),
        Err(PolicyError::TooLong(MAX_BYTES + 1))
    );
    let rules = |count: usize| -> String {
        let rules = (0..count).map(|number| RULE.replacen("\"r\"", &format!("\"r{number}\""), 1));
        format!("version = 1\n{}", rules.collect::<String>())
    };
    assert!(Policy::parse(rules(MAX_RULES).as_bytes()).is_ok());
    assert_eq!(
        refused(&rules(MAX_RULES + 1)),
        format!(
            "line {}: this is one rule more than the 256 of a policy",
            2 + 5 * MAX_RULES + 1
        )
    );
}

#[test]
fn many_patterns_and_long_words_at_their_limits() {
    let list = |count: usize| {
        let patterns = (0..count).map(|number| format!("\"X{number}\""));
        let list = patterns.collect::<Vec<_>>().join(",");
        RULE.replacen("[\"X\"]", &format!("[{list}]"), 1)
    };
    assert!(Policy::parse(format!("version = 1\n{}", list(256)).as_bytes()).is_ok());
    assert!(refused(&format!("version = 1\n{}", list(257))).contains("1 to 256 patterns"));
    for (length, fits) in [(64, true), (65, false)] {
        let rule = RULE.replacen("\"r\"", &format!("\"{}\"", "r".repeat(length)), 1);
        assert_eq!(
            Policy::parse(format!("version = 1\n{rule}").as_bytes()).is_ok(),
            fits
        );
    }
    for (length, fits) in [(256, true), (257, false)] {
        let message = format!("message = \"{}\"\n", "m".repeat(length));
        let text = format!("version = 1\n{RULE}{message}");
        assert_eq!(Policy::parse(text.as_bytes()).is_ok(), fits);
    }
}

#[test_case("[[command]]", "deny = [\"curl *\", \"rm \"]", "line 6: `deny`: a pattern begins or ends with white space"; "deny")]
#[test_case("[[command]]", "allow = [\" make *\"]", "line 6: `allow`: a pattern begins or ends with white space"; "allow")]
#[test_case("[[command]]", "deny = [\"[z-a]*\"]", "line 6: `deny`: a pattern has a range that holds nothing"; "range")]
#[test_case("[[output]]", "required = [\"./out/app\"]", "line 6: `required`: a pattern begins with `/`, `./` or `../`"; "output")]
fn a_pattern_that_could_match_nothing_is_refused(table: &str, patterns: &str, told: &str) {
    let rule = "id = \"r\"\ndecision = \"deny\"\nseverity = \"low\"";
    let text = format!("version = 1\n{table}\n{rule}\n{patterns}\n");
    let error = Policy::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with(told), "{error}");
}
