//! A host and a plugin in memory: what one writes the other reads, however the bytes are cut.

use std::time::Duration;

use attest_plugin_protocol::{
    Announcement, Expected, Hook, HostEvent, HostSession, Payload, PluginEvent, PluginSession,
    Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies;
use crate::support::{announcement, epoch, expected};

/// Gives a side one message, cut into pieces of these sizes in turn.
fn feed(message: &[u8], sizes: &[usize], mut to: impl FnMut(&[u8])) {
    let mut rest = message;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes
            .next()
            .map_or(rest.len(), |size| (*size).min(rest.len()));
        let (piece, after) = rest.split_at(size);
        to(piece);
        rest = after;
    }
}

struct Pair {
    host: HostSession,
    plugin: PluginSession,
    sizes: Vec<usize>,
}

impl Pair {
    fn new(expected: Expected, sizes: Vec<usize>) -> Self {
        let host = HostSession::new(expected, "1.0.0", Duration::from_secs(1), epoch());
        Self {
            host,
            plugin: PluginSession::new(),
            sizes,
        }
    }

    fn down(&mut self) -> PluginEvent {
        let message = self.host.poll_transmit().unwrap();
        one_line(&message);
        feed(&message, &self.sizes, |piece| {
            self.plugin.receive(piece).unwrap()
        });
        self.plugin.poll_event().unwrap()
    }

    fn up(&mut self) -> HostEvent {
        let message = self.plugin.poll_transmit().unwrap();
        one_line(&message);
        feed(&message, &self.sizes, |piece| {
            self.host.receive(epoch(), piece)
        });
        self.host.poll_event().unwrap()
    }
}

/// One compact object, one line feed (seed 4).
fn one_line(message: &[u8]) {
    let text = std::str::from_utf8(message).unwrap();
    let object = text.strip_suffix('\n').unwrap();
    assert!(!object.contains('\n'));
    let limits = strict_json::Limits {
        bytes: object.len(),
        depth: 64,
    };
    strict_json::parse_object(object.as_bytes(), &limits, strict_json::Layout::Compact).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_one_side_writes_the_other_reads(
        rounds in vec((strategies::payload(), strategies::verdict()), 0..6),
        sizes in vec(1usize..40, 1..5),
    ) {
        let mut pair = Pair::new(expected(), sizes);
        prop_assert!(matches!(pair.down(), PluginEvent::Hello { .. }), "hello");
        pair.plugin.accept(announcement()).unwrap();
        prop_assert_eq!(pair.up(), HostEvent::Ready(announcement()));
        for (at, (payload, verdict)) in (2..).zip(rounds) {
            pair.host.request(epoch(), &payload).unwrap();
            match pair.down() {
                PluginEvent::Request { id, payload: read } => {
                    prop_assert_eq!(id, at);
                    prop_assert_eq!(read, payload);
                }
                other => prop_assert!(false, "{:?}", other),
            }
            pair.plugin.verdict(at, &verdict).unwrap();
            prop_assert_eq!(pair.up(), HostEvent::Verdict(verdict));
        }
        pair.host.shutdown(epoch());
        prop_assert_eq!(pair.down(), PluginEvent::Shutdown);
    }

    #[test]
    fn every_announcement_comes_over(said in strategies::announcement()) {
        let expected = Expected {
            name: said.name.clone(),
            hooks: Vec::new(),
            deterministic: said.deterministic,
        };
        let mut pair = Pair::new(expected, vec![7]);
        pair.down();
        pair.plugin.accept(said.clone()).unwrap();
        prop_assert_eq!(pair.up(), HostEvent::Ready(said));
    }
}

#[test]
fn a_plugin_of_a_later_minor_version_works_with_this_core() {
    let later = Announcement {
        hooks: vec!["step.pre".to_owned(), "step.retry".to_owned()],
        ..announcement()
    };
    let narrow = Expected {
        hooks: vec![Hook::StepPre],
        ..expected()
    };
    let mut pair = Pair::new(narrow, vec![64]);
    pair.down();
    pair.plugin.accept(later).unwrap();
    pair.up();
    pair.host
        .request(epoch(), &Payload::BeforeStep(Default::default()))
        .unwrap();
    pair.down();
    pair.plugin.verdict(2, &Verdict::allow()).unwrap();
    assert_eq!(pair.up(), HostEvent::Verdict(Verdict::allow()));
}
