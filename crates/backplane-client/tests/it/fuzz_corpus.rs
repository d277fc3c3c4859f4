//! Replays the corpora of the fuzz targets.

use std::path::Path;

use proptest::prelude::*;

fn replay(name: &str, body: fn(&[u8])) {
    let folder = format!("{}/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for entry in Path::new(&folder).read_dir().unwrap() {
        body(&std::fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen > 5, "{seen} specimens in {folder}");
}

#[test]
fn answers() {
    replay("answer", backplane_client::fuzz_entry::answer);
}

#[test]
fn texts() {
    replay("text", backplane_client::fuzz_entry::text);
}

proptest! {
    #[test]
    fn any_answer_is_read_or_refused_without_being_shown(
        status in prop_oneof![Just(200_u16), any::<u16>()],
        body in "[\\[\\]{}\":,0-9a-e.\\\\\\- \u{0}\u{e9}]{0,40}|\\PC{0,20}",
        tail in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let bytes = [&status.to_be_bytes()[..], body.as_bytes(), &tail].concat();
        backplane_client::fuzz_entry::answer(&bytes);
    }

    #[test]
    fn any_text_survives_a_url_or_is_refused(text in "/?([%/.?#\\\\+& a-c\u{e9}]|%[0-9a-fA-F]{2}){0,20}|.{0,20}") {
        backplane_client::fuzz_entry::text(text.as_bytes());
    }
}
