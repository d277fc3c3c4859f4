//! Each recorded message, changed in one place in every systematic way: nothing
//! but the original spelling or an equal meaning may pass.

use serde_json::{Map, Value, json};

use crate::samples::{frames, is_from_worker, rewrite};

/// Fields that a message may lack: the meaning changes, the shape does not.
const OPTIONAL: &[&str] = &[
    "/activity_version",
    "/disposition",
    "/result",
    "/candidate_sha",
    "/task/repository",
    "/evidence/0/exit_code",
    "/evidence/0/candidate_sha",
];

/// Every field of the envelope with a value that fits its own message.
fn envelope() -> Map<String, Value> {
    let mut all = Map::new();
    for frame in frames() {
        let Value::Object(message) = serde_json::from_str(&frame).unwrap() else {
            panic!("not an object");
        };
        all.extend(message);
    }
    all
}

/// The JSON pointers of all members of objects, at every depth.
fn members(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{at}/{key}");
                found.push(path.clone());
                members(value, &path, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                members(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn parent<'a>(value: &'a mut Value, pointer: &str) -> (&'a mut Map<String, Value>, String) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let Some(Value::Object(map)) = value.pointer_mut(parent) else {
        panic!("{pointer} is not in an object");
    };
    (map, key.to_owned())
}

fn each_member(mut check: impl FnMut(&str, &str, &Value, bool)) {
    for frame in frames() {
        let message: Value = serde_json::from_str(&frame).unwrap();
        let mut pointers = Vec::new();
        members(&message, "", &mut pointers);
        for pointer in pointers {
            check(&frame, &pointer, &message, is_from_worker(&frame));
        }
    }
}

fn refused(message: &Value, from_worker: bool) -> bool {
    rewrite(message.to_string().as_bytes(), from_worker).is_err()
}

#[test]
fn a_dropped_field_is_noticed() {
    each_member(|frame, pointer, message, from_worker| {
        let mut changed = message.clone();
        let (map, key) = parent(&mut changed, pointer);
        map.remove(&key);
        // A report or text that is gone leaves an empty text; a candidate that is gone leaves a text.
        let may_pass = OPTIONAL.contains(&pointer);
        assert!(
            may_pass || refused(&changed, from_worker),
            "{pointer} of {frame}"
        );
    });
}

#[test]
fn an_added_field_is_refused_at_every_depth() {
    each_member(|frame, pointer, message, from_worker| {
        let mut changed = message.clone();
        let (map, _) = parent(&mut changed, pointer);
        map.insert("unheard_of".to_owned(), json!(1));
        assert!(refused(&changed, from_worker), "{pointer} of {frame}");
    });
}

#[test]
fn a_field_of_another_message_is_refused() {
    for frame in frames() {
        let message: Value = serde_json::from_str(&frame).unwrap();
        let kind = message["type"].as_str().unwrap().to_owned();
        for (key, value) in envelope() {
            let mut changed = message.clone();
            let map = changed.as_object_mut().unwrap();
            if map.contains_key(&key) {
                continue;
            }
            map.insert(key.clone(), value);
            // The activity version is an ordinary field of every lease.
            let own = kind == "lease" && key == "activity_version";
            // A result may say its end in one of three ways, each of which stands alone.
            let own = own
                || (kind == "result"
                    && key == "candidate_sha"
                    && message["result"]
                        .as_str()
                        .is_some_and(|text| text.starts_with('{')));
            assert!(
                own || refused(&changed, is_from_worker(&frame)),
                "{key} in {frame}"
            );
        }
    }
}

#[test]
fn null_is_no_value() {
    each_member(|frame, pointer, message, from_worker| {
        let mut changed = message.clone();
        *changed.pointer_mut(pointer).unwrap() = Value::Null;
        let may_pass = pointer == "/task/tests";
        assert!(
            may_pass || refused(&changed, from_worker),
            "{pointer} of {frame}"
        );
    });
}

#[test]
fn another_type_is_refused() {
    each_member(|frame, pointer, message, from_worker| {
        let was = message.pointer(pointer).unwrap();
        for other in [
            json!("x y"),
            json!(-1),
            json!(1.5),
            json!(true),
            json!([1]),
            json!({}),
            json!([]),
        ] {
            if std::mem::discriminant(&other) == std::mem::discriminant(was) && !was.is_number() {
                continue;
            }
            if pointer == "/task/tests" && other == json!([]) {
                continue;
            }
            let mut changed = message.clone();
            *changed.pointer_mut(pointer).unwrap() = other.clone();
            assert!(
                refused(&changed, from_worker),
                "{other} as {pointer} of {frame}"
            );
        }
    });
}

#[test]
fn a_duplicated_key_is_refused_at_every_depth() {
    let mut seen = 0;
    for frame in frames() {
        for (at, _) in frame.match_indices('{') {
            // Inside of a string the brace stands behind a quote or an escape.
            let rest = &frame[at + 1..];
            let Some(member) = rest
                .strip_prefix('"')
                .and_then(|rest| rest.split_once("\":"))
            else {
                continue;
            };
            let changed = format!("{}{{\"{}\":1,{}", &frame[..at], member.0, rest);
            assert!(
                rewrite(changed.as_bytes(), is_from_worker(&frame)).is_err(),
                "{changed}"
            );
            seen += 1;
        }
    }
    assert!(seen > 15, "only {seen} objects found");
}

#[test]
fn every_cut_and_every_tail_is_refused() {
    for frame in frames() {
        let from_worker = is_from_worker(&frame);
        let body = frame.trim_end();
        for end in 0..body.len() {
            assert!(
                rewrite(&body.as_bytes()[..end], from_worker).is_err(),
                "{end} of {frame}"
            );
        }
        for tail in ["x", "{}", "\0", "\u{feff}", "null", ",", "}"] {
            let changed = format!("{frame}{tail}");
            assert!(
                rewrite(changed.as_bytes(), from_worker).is_err(),
                "{tail:?} after {frame}"
            );
        }
    }
}

#[test]
fn invalid_utf8_and_unpaired_surrogates_are_refused_in_every_string() {
    for frame in frames() {
        let from_worker = is_from_worker(&frame);
        for (at, _) in frame.match_indices('"') {
            for bad in [
                &b"\xff"[..],
                b"\xc0\xaf",
                b"\xed\xa0\x80",
                br"\ud800",
                br"\udc00",
            ] {
                let mut changed = frame.as_bytes().to_vec();
                changed.splice(at + 1..at + 1, bad.iter().copied());
                assert!(rewrite(&changed, from_worker).is_err(), "{at} of {frame}");
            }
        }
    }
}
