//! The query of the connect route: which slot a connection is for, and which
//! extensions the Worker offers. Keys that are not known are ignored, so that a
//! newer Worker can offer what this Gate does not select.

use std::fmt::{self, Write as _};

use forge_domain::SlotId;

use crate::message::{ActivityVersion, ControlVersion};

/// The parsed query of `GET /v1/workers/connect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectQuery {
    /// The Worker and the number of its slot.
    pub slot: SlotId,
    /// The activity extension, if the Worker offers exactly a version known here.
    pub activity_version: Option<ActivityVersion>,
    /// The job control extension, if the Worker offers exactly a version known here.
    pub control_version: Option<ControlVersion>,
}

/// Why a connect query names no slot. The Gate answers all of them alike.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A percent escape is cut short or is not hexadecimal, or the bytes are not UTF-8.
    #[error("query is not valid percent encoding of UTF-8")]
    Encoding,
    /// A key that may stand once stands twice.
    #[error("query names `{0}` more than once")]
    Duplicate(&'static str),
    /// A key that must be there is not.
    #[error("query lacks `{0}`")]
    Missing(&'static str),
    /// The Worker id is not one.
    #[error("`worker_id` is not a Worker id")]
    WorkerId,
    /// The slot is not a canonical decimal number below the largest concurrency.
    #[error("`slot` is not a canonical decimal number below 64")]
    Slot,
}

impl ConnectQuery {
    /// A query without any offer.
    #[must_use]
    pub const fn new(slot: SlotId) -> Self {
        Self {
            slot,
            activity_version: None,
            control_version: None,
        }
    }

    /// Reads the part of the request target behind the `?`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let mut worker_id = None;
        let mut slot = None;
        let mut activity = None;
        let mut control = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (unescape(key)?, unescape(value)?);
            match key.as_str() {
                "worker_id" => put(&mut worker_id, "worker_id", value)?,
                "slot" => put(&mut slot, "slot", value)?,
                "activity_version" => put(&mut activity, "activity_version", value)?,
                "control_version" => put(&mut control, "control_version", value)?,
                _ => {}
            }
        }
        let worker_id = worker_id.ok_or(QueryError::Missing("worker_id"))?;
        let slot = slot.ok_or(QueryError::Missing("slot"))?;
        let worker_id = worker_id.parse().map_err(|_| QueryError::WorkerId)?;
        Ok(Self {
            slot: SlotId::new(worker_id, parse_slot(&slot)?).map_err(|_| QueryError::Slot)?,
            activity_version: activity.and_then(|text| ActivityVersion::exactly(&text)),
            control_version: control.and_then(|text| ControlVersion::exactly(&text)),
        })
    }
}

/// Prints the query without the leading `?`.
impl fmt::Display for ConnectQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "worker_id={}&slot={}",
            self.slot.worker(),
            self.slot.slot()
        )?;
        if let Some(version) = self.activity_version {
            write!(f, "&activity_version={}", Escaped(version.as_str()))?;
        }
        if let Some(version) = self.control_version {
            write!(f, "&control_version={}", Escaped(version.as_str()))?;
        }
        Ok(())
    }
}

fn put(place: &mut Option<String>, key: &'static str, value: String) -> Result<(), QueryError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(QueryError::Duplicate(key)),
    }
}

/// Canonical decimal: digits only, no leading zero but `0` itself.
fn parse_slot(text: &str) -> Result<u16, QueryError> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit())
        && !text.is_empty()
        && (text == "0" || !text.starts_with('0'));
    if !canonical {
        return Err(QueryError::Slot);
    }
    text.parse().map_err(|_| QueryError::Slot)
}

fn unescape(text: &str) -> Result<String, QueryError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let high = rest.next().and_then(hex_digit);
                let low = rest.next().and_then(hex_digit);
                let (Some(high), Some(low)) = (high, low) else {
                    return Err(QueryError::Encoding);
                };
                bytes.push(high << 4 | low);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| QueryError::Encoding)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Percent-encodes everything that is not unreserved (RFC 3986 section 2.3).
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    f.write_char(char::from(byte))?;
                }
                other => write!(f, "%{other:02X}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<ConnectQuery, QueryError> {
        ConnectQuery::parse(query)
    }

    #[test]
    fn reads_the_slot_and_the_offer() {
        let query =
            parse("worker_id=worker-1&slot=12&activity_version=live_activity%2Fv1").unwrap();
        assert_eq!(query.activity_version, Some(ActivityVersion::V1));
        assert_eq!(query.slot.to_string(), "worker-1#12");
        assert_eq!(parse(&query.to_string()).unwrap(), query);
    }

    #[test]
    fn an_offer_of_another_version_is_no_offer() {
        for version in [
            "live_activity/v2",
            "",
            "LIVE_ACTIVITY/V1",
            "live_activity/v1 ",
        ] {
            let query = parse(&format!("worker_id=w&slot=0&activity_version={version}")).unwrap();
            assert_eq!(query.activity_version, None, "{version:?}");
        }
    }

    #[test]
    fn unknown_keys_are_ignored() {
        let query = parse("x=1&worker_id=w&output_version=live_output%2Fv1&slot=0&x=2").unwrap();
        assert_eq!(query, ConnectQuery::new("w".parse().unwrap()));
    }

    #[test]
    fn a_slot_is_canonical_decimal() {
        for slot in [
            "",
            "00",
            "01",
            "+1",
            "-1",
            "1.0",
            "1e0",
            "0x1",
            " 1",
            "64",
            "65536",
            "9999999999999",
        ] {
            let error = parse(&format!("worker_id=w&slot={slot}")).unwrap_err();
            assert_eq!(error, QueryError::Slot, "{slot:?}");
        }
        assert_eq!(parse("worker_id=w&slot=63").unwrap().slot.slot(), 63);
    }

    #[test]
    fn refuses_what_names_no_slot() {
        assert_eq!(parse("slot=0"), Err(QueryError::Missing("worker_id")));
        assert_eq!(parse("worker_id=w"), Err(QueryError::Missing("slot")));
        assert_eq!(parse("worker_id=W&slot=0"), Err(QueryError::WorkerId));
        assert_eq!(parse("worker_id=w%23a&slot=0"), Err(QueryError::WorkerId));
        assert_eq!(parse("worker_id=%ff&slot=0"), Err(QueryError::Encoding));
        assert_eq!(parse("worker_id=%4&slot=0"), Err(QueryError::Encoding));
        assert_eq!(
            parse("worker_id=a&worker_id=b&slot=0"),
            Err(QueryError::Duplicate("worker_id"))
        );
    }
}
