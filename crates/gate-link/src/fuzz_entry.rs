//! The body of the fuzz target, shared with the test that replays its corpus.

use crate::{ConnectQuery, GateMessage, WorkerMessage};

/// Reads arbitrary bytes in every direction; what is accepted must survive
/// being written and read again.
pub fn decode(bytes: &[u8]) {
    if let Ok(message) = WorkerMessage::decode(bytes)
        && let Ok(frame) = message.encode()
    {
        let again = WorkerMessage::decode(&frame);
        assert!(
            again.is_ok_and(|again| again == message),
            "what was written reads back"
        );
    }
    match GateMessage::decode(bytes) {
        Ok(GateMessage::UnacceptableLease(_)) | Err(_) => {}
        Ok(message) => {
            if let Ok(frame) = message.encode() {
                let again = GateMessage::decode(&frame);
                assert!(
                    again.is_ok_and(|again| again == message),
                    "what was written reads back"
                );
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(query) = ConnectQuery::parse(text)
    {
        assert_eq!(ConnectQuery::parse(&query.to_string()).as_ref(), Ok(&query));
    }
}
