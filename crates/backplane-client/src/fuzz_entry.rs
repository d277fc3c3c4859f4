//! The body of the fuzz target, shared with the test that replays its corpus.

use crate::answer;
use crate::selection::Selection;
use crate::transport::{Answer, Body};
use crate::{Auth, Client, RequestPath};

/// Reads an answer: a status in two bytes, then the body. What is refused is never shown.
pub fn answer(bytes: &[u8]) {
    let Some((head, body)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let status = u16::from_be_bytes(*head);
    let read = answer::object(Answer::new(status, Body::Bytes(body.to_vec())));
    match read {
        Ok(object) => {
            assert!((200..300).contains(&status), "a success");
            let written = strict_json::to_line(&object);
            let again = answer::object(Answer::new(200, Body::Bytes(written)));
            assert_eq!(again.ok(), Some(object), "every member survives");
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(shown.is_ascii() && shown.len() < 100, "{shown:?}");
        }
    }
}

/// Puts a text into every place of a URL; it comes out again or is refused.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(client) = Client::new("https://host.example/base", Auth::None, Vec::new(), ()) else {
        return;
    };
    if let Ok(call) = client.resolve_call(&Selection::plugin(text)) {
        let url = url::Url::parse(call.request().url());
        let pairs = url.map(|url| url.query_pairs().into_owned().collect::<Vec<_>>());
        assert_eq!(pairs, Ok(vec![("plugin_id".to_owned(), text.to_owned())]));
    }
    if let Ok(path) = text.parse::<RequestPath>() {
        let whole = format!(
            "https://host.example/base{}{}",
            crate::PREFIX,
            path.as_str()
        );
        let url = url::Url::parse(&whole).map(String::from);
        assert_eq!(url, Ok(whole), "a path that URLs do not change");
    }
}
