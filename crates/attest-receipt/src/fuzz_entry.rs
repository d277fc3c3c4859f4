//! The bodies of the fuzz targets, shared with the test that replays their corpus.

mod typed;

use strict_json::{Json, Object, to_line};

use crate::yaml::{self, IntoJson as _, Limits, YamlError};

pub use typed::{capsule, event, pipeline, receipt};

/// What no message is longer than: the words of the readers and a shortened piece of the input.
const LONGEST_MESSAGE: usize = 1024;

/// Reads arbitrary bytes and checks what must hold for whatever was accepted or refused.
pub fn document(bytes: &[u8]) {
    let limits = Limits {
        bytes: 1 << 16,
        depth: 64,
    };
    // The second reading is of a longer document, two levels deeper.
    let wide = Limits {
        bytes: 1 << 24,
        depth: 66,
    };
    let read = |bytes: &[u8], limits| yaml::parse(bytes, limits).and_then(yaml::Node::into_json);
    match read(bytes, &limits) {
        Err(error) => check_message(&error),
        Ok(tree) => {
            // An object, so that it is tried as JSON at all.
            let tree = Json::Array(vec![tree]);
            let tree = Object::from_members(vec![(String::new(), tree)])
                .map(Json::Object)
                .unwrap_or(Json::Null);
            let line = to_line(&tree);
            let again = read(&line, &wide);
            assert!(
                again.is_ok_and(|again| to_line(&again) == line),
                "what was read is read again as JSON"
            );
            if let Ok(written) = yaml_serde::to_string(&tree)
                && !has_merge_key(&tree)
            {
                let again = read(written.as_bytes(), &wide);
                assert!(
                    again.is_ok_and(|again| to_line(&again) == line),
                    "what was read and written is read again"
                );
            }
        }
    }
}

/// The writer leaves `<<` plain, which no reader here accepts as a key.
fn has_merge_key(tree: &Json) -> bool {
    match tree {
        Json::Array(items) => items.iter().any(has_merge_key),
        Json::Object(members) => members
            .iter()
            .any(|(key, value)| key == "<<" || has_merge_key(value)),
        _ => false,
    }
}

fn check_message(error: &YamlError) {
    let message = error.to_string();
    assert!(message.len() <= LONGEST_MESSAGE, "a message is bounded");
    assert!(
        !message.contains(char::is_control),
        "a message has no control character"
    );
}
