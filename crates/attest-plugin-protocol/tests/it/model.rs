//! The host's machine under random moves: whatever a plugin and a clock do, these hold.

use attest_plugin_protocol::{
    END_GRACE, Failure, HostEvent, PluginEvent, PluginExit, PluginSession, SHUTDOWN_GRACE,
    TERMINATE_GRACE, Violation, encode, fuzz_entry,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::{
    Driver, TIMEOUT, after, allow, announcement, before, epoch, hello_ok, pipeline, verdict,
};

#[derive(Debug, Clone)]
enum Move {
    Greet,
    Ask(usize),
    Answer,
    AnswerWith(&'static str),
    WrongId(u64),
    Line(&'static str),
    Bytes(Vec<u8>),
    Wait(u64),
    WaitForDeadline,
    StdoutClosed,
    Exited(PluginExit),
    Shutdown,
}

const BODIES: &[&str] = &[
    r#","decision":"deny""#,
    r#","decision":"warn","annotation":{}"#,
    r#","decision":"no""#,
    "",
];
const LINES: &[&str] = &["\n", "x\n", "{}\n", "{", " ", "[]\n"];

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let exit = prop_oneof![
        (0..3).prop_map(PluginExit::Code),
        (9..16).prop_map(PluginExit::Signal)
    ];
    let ordinary = prop_oneof![
        8 => (0usize..3).prop_map(Move::Ask),
        8 => Just(Move::Answer),
        2 => (0u64..31_000).prop_map(Move::Wait),
        1 => select(&BODIES[..2]).prop_map(Move::AnswerWith),
    ];
    let rare = prop_oneof![
        Just(Move::Greet),
        select(BODIES).prop_map(Move::AnswerWith),
        (0u64..9).prop_map(Move::WrongId),
        select(LINES).prop_map(Move::Line),
        vec(any::<u8>(), 1..20).prop_map(Move::Bytes),
        Just(Move::WaitForDeadline),
        Just(Move::StdoutClosed),
        exit.prop_map(Move::Exited),
        Just(Move::Shutdown),
    ];
    let all = vec(prop_oneof![6 => ordinary, 1 => rare], 0..40);
    (any::<bool>(), all).prop_map(|(greet, mut moves)| {
        if greet {
            moves.insert(0, Move::Greet);
        }
        moves
    })
}

/// Makes a move; returns whether it was a request that the session took.
fn make(driver: &mut Driver, step: Move) -> bool {
    let last = driver.sent.len() as u64;
    match step {
        Move::Greet => driver.write(hello_ok()),
        Move::Ask(which) => {
            let payload = [pipeline(), before(), after()][which].clone();
            let taken = driver.session.request(driver.now, &payload).is_ok();
            driver.pump();
            return taken;
        }
        Move::Answer => driver.write(allow(last)),
        Move::AnswerWith(body) => driver.write(verdict(last, body)),
        Move::WrongId(id) => driver.write(allow(id)),
        Move::Line(line) => driver.write(line),
        Move::Bytes(bytes) => driver.write(bytes),
        Move::Wait(millis) => driver.wait(std::time::Duration::from_millis(millis)),
        Move::WaitForDeadline => {
            let deadline = driver.session.poll_timeout();
            let time = deadline.map(|deadline| deadline.saturating_duration_since(driver.now));
            driver.wait(time.unwrap_or_default());
        }
        Move::StdoutClosed => driver.stdout_closed(),
        Move::Exited(exit) => {
            driver.session.exited(driver.now, exit);
            driver.pump();
        }
        Move::Shutdown => driver.shutdown(),
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_keeps_its_promises(moves in moves()) {
        let mut driver = Driver::new();
        let mut open = 0;
        let mut failed = false;
        let mut over = false;
        let mut acts = Vec::new();
        for step in moves {
            let sent = driver.sent.len();
            let idle = driver.session.is_idle();
            let asked = make(&mut driver, step);
            prop_assert!(!asked || idle, "asked while another request was open");
            open += usize::from(asked);
            for event in driver.acts() {
                prop_assert!(!failed, "nothing after a failure: {:?}", event);
                match &event {
                    HostEvent::Verdict(_) => {
                        prop_assert_eq!(open, 1, "a verdict answers a request");
                        open = 0;
                    }
                    HostEvent::Ready(_) => {
                        prop_assert!(acts.is_empty(), "ready comes first");
                    }
                    HostEvent::Failed(failure) => {
                        failed = true;
                        let ready = matches!(acts.first(), Some(HostEvent::Ready(_)));
                        prop_assert_eq!(ready, matches!(failure, Failure::Broken(_)));
                        prop_assert!(failure.reason().len() <= 1_024);
                        prop_assert!(driver.session.is_over());
                    }
                    _ => {}
                }
                acts.push(event);
            }
            prop_assert!(!over || driver.sent.len() == sent, "nothing is sent after the end");
            prop_assert!(!over || driver.session.is_over(), "the end is the end");
            over = driver.session.is_over();
            let patience = TIMEOUT.max(END_GRACE).max(SHUTDOWN_GRACE).max(TERMINATE_GRACE);
            if let Some(deadline) = driver.session.poll_timeout() {
                prop_assert!(deadline <= driver.now + patience);
            }
        }
        for (line, id) in driver.sent.iter().zip(1u64..) {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            prop_assert_eq!(message["id"].as_u64(), Some(id), "ids rise by one");
            let last = id == driver.sent.len() as u64;
            prop_assert!(last || message["kind"] != "shutdown", "shutdown is the last message");
        }
        // Without a word from the plugin the session comes to its end.
        driver.shutdown();
        for _ in 0..4 {
            make(&mut driver, Move::WaitForDeadline);
        }
        driver.exited(0);
        driver.stdout_closed();
        prop_assert!(driver.session.is_over());
        prop_assert_eq!(driver.session.poll_timeout(), None);
        let notes = driver.notes();
        prop_assert!(notes.len() <= 5, "{:?}", notes);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_their_cuts_change_nothing(
        bytes in vec(any::<u8>(), 0..400),
    ) {
        fuzz_entry::host(epoch(), &bytes);
        fuzz_entry::plugin(&bytes);
    }

    #[test]
    fn damaged_sessions_never_panic_and_their_cuts_change_nothing(
        damage in vec((any::<Index>(), any::<u8>()), 0..4),
    ) {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus");
        for side in ["host", "plugin"] {
            let mut bytes = std::fs::read(format!("{folder}/{side}/everything")).unwrap();
            for (at, byte) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            match side {
                "host" => fuzz_entry::host(epoch(), &bytes),
                _ => fuzz_entry::plugin(&bytes),
            }
        }
    }

    #[test]
    fn a_stream_may_be_cut_anywhere(
        stream in vec(prop_oneof![
            4 => Just(allow(2).into_bytes()),
            2 => select(LINES).prop_map(|line| line.as_bytes().to_vec()),
            1 => vec(any::<u8>(), 1..9),
        ], 1..4),
        at in any::<Index>(),
    ) {
        let stream = stream.concat();
        let (head, tail) = stream.split_at(at.index(stream.len()));
        let mut whole = Driver::asked();
        whole.write(&stream);
        let mut cut = Driver::asked();
        cut.write(head);
        cut.write(tail);
        prop_assert_eq!(whole.session.is_over(), cut.session.is_over());
        prop_assert_eq!(whole.acts(), cut.acts());
    }

    #[test]
    fn what_a_core_writes_may_be_cut_anywhere(
        ids in vec(0u64..6, 1..4),
        kinds in vec(0usize..4, 4),
        at in any::<Index>(),
    ) {
        let line = |(id, kind): (&u64, &usize)| match kind {
            0 => encode::request(*id, &before()),
            1 => encode::shutdown(*id),
            2 => format!("{{\"v\":1,\"id\":{id},\"kind\":\"later\"}}\n").into_bytes(),
            _ => b"{}\n".to_vec(),
        };
        let stream: Vec<u8> = ids.iter().zip(&kinds).flat_map(line).collect();
        let (head, tail) = stream.split_at(at.index(stream.len()));
        prop_assert_eq!(read_by_a_plugin(&[&stream]), read_by_a_plugin(&[head, tail]));
    }
}

/// What a plugin that said hello makes of a stream.
fn read_by_a_plugin(pieces: &[&[u8]]) -> (Vec<PluginEvent>, Option<Violation>) {
    let mut session = PluginSession::new();
    session.receive(&encode::hello(1, "1.0.0")).unwrap();
    session.poll_event().unwrap();
    session.accept(announcement()).unwrap();
    let read = pieces.iter().try_for_each(|piece| session.receive(piece));
    let events = std::iter::from_fn(|| session.poll_event()).collect();
    (events, read.err().map(|error| error.violation().clone()))
}
