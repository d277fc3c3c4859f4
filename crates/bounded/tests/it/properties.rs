//! What holds for every text that a type accepts.

use bounded::{BoundedText, GitSha, GoDuration, Hex32, text};
use proptest::prelude::*;

proptest! {
    #[test]
    fn hex_ids_round_trip(bytes: [u8; 16], sha: [u8; 20]) {
        let id = Hex32::from_bytes(bytes);
        prop_assert_eq!(id.as_str().parse(), Ok(id));
        let json = serde_json::to_string(&id).unwrap();
        prop_assert_eq!(serde_json::from_str::<Hex32>(&json).unwrap(), id);
        let sha = GitSha::from_bytes(sha);
        prop_assert_eq!(sha.as_str().parse(), Ok(sha));
    }

    #[test]
    fn durations_round_trip(nanos in 0..=i64::MAX.unsigned_abs()) {
        let duration = GoDuration::from_nanos(nanos).unwrap();
        prop_assert_eq!(GoDuration::new(duration.to_string()), Ok(duration));
        prop_assert_eq!(GoDuration::try_from(duration.duration()), Ok(duration));
    }

    #[test]
    fn bounded_texts_accept_exactly_their_range(input in "\\PC{0,24}") {
        let accepted = BoundedText::<4, 16>::new(input.as_str()).is_ok();
        prop_assert_eq!(accepted, (4..=16).contains(&input.len()));
    }

    #[test]
    fn visible_text_hides_nothing_and_keeps_the_rest(input: String) {
        let shown = text::visible(&input);
        prop_assert!(!text::has_control_or_format(&shown));
        if !text::has_control_or_format(&input) {
            prop_assert_eq!(shown, input);
        }
    }

    #[test]
    fn arbitrary_texts_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), input: String) {
        bounded::fuzz_entry::texts(&bytes);
        bounded::fuzz_entry::texts(input.as_bytes());
    }

    #[test]
    fn duration_like_texts_never_panic(input in "[+-]?([0-9]{0,20}(\\.[0-9]{0,20})?(ns|us|µs|ms|s|m|h)){1,4}") {
        bounded::fuzz_entry::texts(input.as_bytes());
    }
}

#[test]
fn fuzz_corpus_replays() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/texts");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        bounded::fuzz_entry::texts(&std::fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 10, "{replayed} files");
}
