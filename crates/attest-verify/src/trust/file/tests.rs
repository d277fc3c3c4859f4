//! Policies that are read, changed and refused.

use super::*;

const FIRST: &str = "0654120df44ec106cbbfaecdac064695";
const SECOND: &str = "210d73a940dd2eaac419746eadc087a5";

const EDITED: &str = "# who signs our releases
version = 1
owner = \"release team\" # asked first

[[key]]
# the old one
id = \"0654120df44ec106cbbfaecdac064695\"
name = \"rel\"
status = \"trusted\" # until the summer
ticket = 12

[other]
kept = [1, 2]
";

fn id(text: &str) -> KeyId {
    KeyId::new(text).unwrap()
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

fn entry(lines: &str) -> String {
    format!("version = 1\n\n[[key]]\n{lines}\n")
}

fn revoked(date: &str) -> Result<KeyStatus, TrustError> {
    let lines =
        format!("id = \"{FIRST}\"\nname = \"a\"\nstatus = \"revoked\"\nrevoked_at = {date}");
    TrustFile::parse(&entry(&lines)).map(|file| file.entries()[0].status)
}

#[test]
fn a_new_policy_is_written_as_the_original_writes_it() {
    let mut file = TrustFile::default();
    assert_eq!(file.to_toml(), "version = 1\n");
    assert!(
        file.trust(id(FIRST), &KeyName::new("rel").unwrap())
            .unwrap()
    );
    let vector = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../attest-receipt/tests/vectors/trust/trust.toml"
    );
    assert_eq!(file.to_toml(), std::fs::read_to_string(vector).unwrap());

    assert!(
        file.trust(id(SECOND), &KeyName::new("a \"b\"").unwrap())
            .unwrap()
    );
    assert!(
        !file
            .trust(id(SECOND), &KeyName::new("again").unwrap())
            .unwrap()
    );
    let now = time("2026-11-30T12:00:00.5Z");
    assert_eq!(file.revoke(&id(FIRST), now), Revocation::Done);
    assert_eq!(
        file.to_toml(),
        "version = 1

[[key]]
id = \"0654120df44ec106cbbfaecdac064695\"
name = \"rel\"
status = \"revoked\"
revoked_at = \"2026-11-30T12:00:00.500Z\"

[[key]]
id = \"210d73a940dd2eaac419746eadc087a5\"
name = 'a \"b\"'
status = \"trusted\"
"
    );
    let read = TrustFile::parse(&file.to_toml()).unwrap();
    assert_eq!(read.entries(), file.entries());
}

#[test]
fn comments_order_and_unknown_keys_stay() {
    let mut file = TrustFile::parse(EDITED).unwrap();
    assert_eq!(file.to_toml(), EDITED);
    file.trust(id(SECOND), &KeyName::new("next").unwrap())
        .unwrap();
    file.revoke(&id(FIRST), time("2026-11-30T12:00:00Z"));
    let text = file.to_toml();
    for line in EDITED.lines().filter(|line| !line.starts_with("status")) {
        assert!(text.lines().any(|kept| kept == line), "{line} in {text}");
    }
    assert!(
        text.contains("status = \"revoked\" # until the summer\n"),
        "{text}"
    );
    assert_eq!(TrustFile::parse(&text).unwrap().entries(), file.entries());
}

#[test]
fn entries_written_inline_are_entries() {
    let text = format!(
        "version = 1\nkey = [{{ id = \"{FIRST}\", name = \"a\", status = \"trusted\" }}] # short\n"
    );
    let mut file = TrustFile::parse(&text).unwrap();
    file.trust(id(SECOND), &KeyName::new("b").unwrap()).unwrap();
    assert_eq!(
        file.revoke(&id(FIRST), time("2026-11-30T12:00:00Z")),
        Revocation::Done
    );
    let text = file.to_toml();
    assert!(text.contains("# short"), "{text}");
    assert_eq!(TrustFile::parse(&text).unwrap().entries(), file.entries());
    assert_eq!(file.entries().len(), 2);
}

#[test]
fn revoking_again_keeps_what_was_said_first() {
    let mut file = TrustFile::parse(EDITED).unwrap();
    let (first, later) = (time("2026-11-30T12:00:00Z"), time("2026-12-01T12:00:00Z"));
    assert_eq!(file.revoke(&id(SECOND), first), Revocation::Unknown);
    assert_eq!(file.to_toml(), EDITED);
    assert_eq!(file.revoke(&id(FIRST), first), Revocation::Done);
    let text = file.to_toml();
    let since = Some(first);
    assert_eq!(
        file.revoke(&id(FIRST), later),
        Revocation::Already { since }
    );
    assert_eq!(file.to_toml(), text);

    // Without a date a key is revoked ever since; a date would make old signatures good.
    let lines = format!("id = \"{FIRST}\"\nname = \"a\"\nstatus = \"revoked\"");
    let mut dateless = TrustFile::parse(&entry(&lines)).unwrap();
    let since = None;
    assert_eq!(
        dateless.revoke(&id(FIRST), later),
        Revocation::Already { since }
    );
    assert_eq!(dateless.to_toml(), entry(&lines));
}

#[test]
fn dates_have_any_offset_and_one_meaning() {
    for (text, meaning) in [
        ("2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z"),
        (
            "2026-11-30T12:00:00.123456789+00:00",
            "2026-11-30T12:00:00.123456789Z",
        ),
        ("2026-11-30T14:30:00+02:30", "2026-11-30T12:00:00Z"),
        ("2026-11-30T11:00:00-01:00", "2026-11-30T12:00:00Z"),
    ] {
        let since = Some(time(meaning));
        assert_eq!(
            revoked(&format!("\"{text}\"")),
            Ok(KeyStatus::Revoked { since }),
            "{text}"
        );
    }
    for text in [
        "\"\"",
        "\"2026-11-30\"",
        "\"2026-11-30T12:00:00\"",
        "\"2026-11-30 12:00:00Z\"",
        "\"2026-11-30t12:00:00z\"",
        "\"2026-11-30T12:00:00+0000\"",
        "\"2026-11-30T12:00:00+00:00[UTC]\"",
        "\"2026-13-30T12:00:00+00:00\"",
        "\"2026-11-30T12:00:00+99:99\"",
        "\"yesterday\"",
        "2026-11-30T12:00:00Z",
        "1",
        "true",
    ] {
        assert!(revoked(text).is_err(), "{text}");
    }
}

#[test]
fn a_malformed_policy_is_refused_as_a_whole() {
    let good = format!("id = \"{FIRST}\"\nname = \"a\"\nstatus = \"trusted\"");
    assert!(TrustFile::parse(&entry(&good)).is_ok());
    for (text, says) in [
        (String::new(), "version: is missing"),
        ("version = 2\n".to_owned(), "version: is 2"),
        ("version = \"1\"\n".to_owned(), "version: is not an integer"),
        ("version = 1.0\n".to_owned(), "version: is not an integer"),
        (
            "version = 1\nversion = 1\n".to_owned(),
            "line 2: duplicate key",
        ),
        ("version = 1\n[[key]\n".to_owned(), "line 2"),
        (
            "version = 1\nkey = 1\n".to_owned(),
            "key: is not a list of tables",
        ),
        (
            "version = 1\nkey = [1]\n".to_owned(),
            "entry 1: is not a table",
        ),
        (
            "version = 1\n[key]\nid = 1\n".to_owned(),
            "key: is not a list",
        ),
        (
            entry(&good.replace("id = ", "ID = ")),
            "entry 1: `id` is missing",
        ),
        (
            entry(&good.replace("name = \"a\"", "name = 1")),
            "`name` is not a string",
        ),
        (
            entry(&good.replace("name = \"a\"", "name = \"\\u001b[2J\"")),
            "control",
        ),
        (
            entry(&good.replace("status = \"trusted\"", "")),
            "`status` is missing",
        ),
        (
            entry(&good.replace("trusted", "Trusted")),
            "unknown status `Trusted`",
        ),
        (
            entry(&good.replace("trusted", "compromised")),
            "unknown status `compromised`",
        ),
        (
            entry(&good.replace("0654", "065G")),
            "malformed key id `065G120",
        ),
        (entry(&good.replace("0654", "065A")), "malformed key id"),
        (entry(&good.replace("0654", "../")), "malformed key id"),
        (
            entry(&good.replace("0654", &format!("x{}", "é".repeat(1000)))),
            "malformed key id `xééé",
        ),
        (entry(&good.replace("0654", "\\u202e")), "\\u{202e}"),
        (
            entry(&format!("{good}\nrevoked_at = \"2026-11-30T12:00:00Z\"")),
            "contradicts",
        ),
        (
            entry(&format!("{good}\n\n[[key]]\n{good}")),
            "more than once",
        ),
        (
            format!("version = 1\nx = {}\n", "[".repeat(100_000)),
            "line 2",
        ),
        (
            format!("version = 1\n#{}", " ".repeat(TrustFile::MAX_BYTES)),
            "more than",
        ),
    ] {
        let error = TrustFile::parse(&text).unwrap_err().to_string();
        let start: String = text.chars().take(200).collect();
        assert!(error.contains(says), "{start}: {error}");
        assert!(error.len() < 400 && !error.contains('\n'), "{error:?}");
    }
}

#[test]
fn a_policy_has_a_greatest_length() {
    let mut text = "version = 1\n".to_owned();
    for number in 0..TrustFile::MAX_KEYS {
        text.push_str(&format!(
            "[[key]]\nid=\"{number:032x}\"\nname=\"\"\nstatus=\"trusted\"\n"
        ));
    }
    let mut full = TrustFile::parse(&text).unwrap();
    let full_error = TrustError::TooMany {
        what: "keys",
        limit: TrustFile::MAX_KEYS,
    };
    assert_eq!(
        full.trust(id(FIRST), &KeyName::new("a").unwrap()),
        Err(full_error.clone())
    );
    assert_eq!(full.to_toml(), text);
    text.push_str(&format!(
        "[[key]]\nid=\"{FIRST}\"\nname=\"\"\nstatus=\"trusted\"\n"
    ));
    assert_eq!(TrustFile::parse(&text).unwrap_err(), full_error);
}
