//! The body of the fuzz target, shared with the test that replays its corpus.

use std::fmt::Display;
use std::str::FromStr;

use crate::{
    AuthorEmail, AuthorName, BoundedText, BranchName, CommitSubject, ConfigId, EnvName, GitSha,
    GoDuration, Hex32, text,
};

/// Tries a text as every type and checks what must hold for whatever was accepted.
pub fn texts(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    round_trip::<Hex32>(&input);
    round_trip::<GitSha>(&input);
    round_trip::<ConfigId>(&input);
    round_trip::<EnvName>(&input);
    round_trip::<BranchName>(&input);
    round_trip::<BoundedText<1, 64>>(&input);
    round_trip::<AuthorName>(&input);
    round_trip::<AuthorEmail>(&input);
    if round_trip::<CommitSubject>(&input) {
        assert_eq!(text::visible(&input), input, "a subject hides nothing");
    }
    if let Ok(duration) = GoDuration::new(&input) {
        assert_eq!(
            GoDuration::new(duration.to_string()),
            Ok(duration),
            "the printed form reads back"
        );
    }
    let shown = text::visible(&input);
    assert!(
        !text::has_control_or_format(&shown),
        "nothing hidden is left"
    );
    assert_eq!(
        text::visible(&shown),
        shown,
        "showing twice changes nothing"
    );
    assert!(
        !text::has_control_or_format(&text::visible_bytes(bytes)),
        "nothing hidden is left"
    );
}

fn round_trip<T: FromStr + Display>(input: &str) -> bool {
    let Ok(value) = input.parse::<T>() else {
        return false;
    };
    assert_eq!(value.to_string(), input, "the printed form is the text");
    true
}
