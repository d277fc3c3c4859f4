//! The body of the fuzz target, shared with the test that replays its corpus.

use crate::{Json, Layout, Limits, parse_value, to_forge_frame, to_line};

/// Reads arbitrary bytes in both layouts and checks what must hold for whatever was accepted.
pub fn read(bytes: &[u8]) {
    let limits = Limits {
        bytes: 1 << 16,
        depth: 64,
    };
    let compact = parse_value(bytes, &limits, Layout::Compact);
    let spaced = parse_value(bytes, &limits, Layout::Spaced);
    if let Ok(value) = &compact {
        assert_eq!(
            Ok(value),
            spaced.as_ref(),
            "what is compact reads the same when spaced"
        );
    }
    if let Ok(value) = spaced {
        // Escapes make a text longer, so the second reading gets more room.
        let limits = Limits {
            bytes: 1 << 20,
            ..limits
        };
        for written in [to_line(&value), to_forge_frame(&value)] {
            let again = parse_value(&written, &limits, Layout::Compact);
            assert!(
                again.is_ok_and(|again| same(&again, &value)),
                "what was written reads back"
            );
        }
    }
}

/// Compares as the writer sees it: a double that prints without a fraction may come back whole.
fn same(left: &Json, right: &Json) -> bool {
    to_line(left) == to_line(right)
}
