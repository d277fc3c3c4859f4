//! Lists that a registry gives page by page.

use backplane_client::{Call, ClientError, Json, Object};
use clap::Args;
use cli_shell::CliError;

use crate::registry::Registry;
use crate::wire;

/// The most that a registry gives at once.
const PAGE: u32 = 100;
/// How many entries are shown unless more are asked for.
const USUAL: u32 = 20;

/// How much of a list is wanted.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct HowMany {
    /// At most so many entries [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// All entries
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
}

impl HowMany {
    fn most(self) -> u64 {
        match self.all {
            true => u64::MAX,
            false => u64::from(self.limit.unwrap_or(USUAL)),
        }
    }
}

/// What was shown of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) entries: u64,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// Shows entry after entry; `page` makes the call for a cursor and a number of entries, and
/// `explain` says what a failure means.
pub(crate) fn each(
    registry: &Registry,
    wanted: HowMany,
    page: impl Fn(Option<String>, u32) -> Result<Call<Object>, ClientError>,
    show: impl FnMut(&Object) -> Result<(), CliError>,
    explain: impl Fn(ClientError) -> CliError,
) -> Result<Shown, CliError> {
    let ask = |cursor, count| registry.try_ask(page(cursor, count)).map_err(&explain);
    walk(wanted.most(), ask, show)
}

fn walk(
    most: u64,
    ask: impl Fn(Option<String>, u32) -> Result<Object, CliError>,
    mut show: impl FnMut(&Object) -> Result<(), CliError>,
) -> Result<Shown, CliError> {
    let mut entries = 0;
    let mut cursor = None;
    loop {
        let left = u32::try_from(most - entries).unwrap_or(u32::MAX);
        let answer = ask(cursor.clone(), left.min(PAGE))?;
        let found = wire::objects(&answer, "data")?;
        let empty = found.is_empty();
        for (index, entry) in found.iter().enumerate() {
            if entries == most {
                let more = index < found.len();
                return Ok(Shown { entries, more });
            }
            show(entry)?;
            entries += 1;
        }
        let next = match answer.get("next_cursor") {
            Some(Json::Text(next)) => Some(next.clone()),
            _ => None,
        };
        let more = next.is_some();
        if !more || entries == most {
            return Ok(Shown { entries, more });
        }
        // A list must come to an end, whoever gives it.
        if empty || next == cursor {
            return Err(CliError::operation(
                "the registry's list goes on without giving anything",
            ));
        }
        cursor = next;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn page(entries: u64, next: Option<&str>) -> Object {
        let data = vec![r#"{"x":1}"#; usize::try_from(entries).unwrap()].join(",");
        let next = next.map_or("null".to_owned(), |next| format!("\"{next}\""));
        let text = format!(r#"{{"data":[{data}],"next_cursor":{next}}}"#);
        let limits = strict_json::Limits {
            bytes: 1 << 20,
            depth: 8,
        };
        strict_json::parse_object(text.as_bytes(), &limits, strict_json::Layout::Spaced).unwrap()
    }

    type Asked = Vec<(Option<String>, u32)>;

    fn walked(most: u64, pages: Vec<Object>) -> (Result<Shown, CliError>, Asked) {
        let asked = RefCell::new(Vec::new());
        let pages = RefCell::new(pages.into_iter());
        let ask = |cursor, count| {
            asked.borrow_mut().push((cursor, count));
            Ok(pages.borrow_mut().next().unwrap())
        };
        let shown = walk(most, ask, |_| Ok(()));
        (shown, asked.into_inner())
    }

    #[test]
    fn pages_are_asked_for_until_there_is_enough() {
        let (shown, asked) = walked(150, vec![page(100, Some("a")), page(50, Some("b"))]);
        assert_eq!(
            shown.unwrap(),
            Shown {
                entries: 150,
                more: true
            }
        );
        assert_eq!(asked, [(None, 100), (Some("a".to_owned()), 50)]);
        let (shown, asked) = walked(u64::MAX, vec![page(1, Some("a")), page(0, None)]);
        assert_eq!(
            shown.unwrap(),
            Shown {
                entries: 1,
                more: false
            }
        );
        assert_eq!(asked.len(), 2);
        let (shown, _) = walked(3, vec![page(5, None)]);
        assert_eq!(
            shown.unwrap(),
            Shown {
                entries: 3,
                more: true
            }
        );
        let (shown, _) = walked(5, vec![page(5, None)]);
        assert_eq!(
            shown.unwrap(),
            Shown {
                entries: 5,
                more: false
            }
        );
    }

    #[test]
    fn a_list_without_end_is_left() {
        let (shown, _) = walked(u64::MAX, vec![page(1, Some("a")), page(0, Some("b"))]);
        assert!(shown.is_err(), "nothing, and on");
        let (shown, _) = walked(u64::MAX, vec![page(1, Some("a")), page(1, Some("a"))]);
        assert!(shown.is_err(), "the same again");
    }
}
