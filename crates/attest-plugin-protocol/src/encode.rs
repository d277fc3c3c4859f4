//! The messages as bytes: one compact object and a line feed each (seed 4).

use serde::Serialize;

use crate::announcement::Announcement;
use crate::limits::MAJOR;
use crate::payload::Payload;
use crate::verdict::{Finding, Verdict};

#[derive(Serialize)]
struct Message<'a, T> {
    v: u32,
    id: u64,
    kind: &'a str,
    #[serde(flatten)]
    rest: T,
}

fn line<T: Serialize>(id: u64, kind: &str, rest: T) -> Vec<u8> {
    let mut line = strict_json::to_line(&Message {
        v: MAJOR,
        id,
        kind,
        rest,
    });
    line.push(b'\n');
    line
}

#[derive(Serialize)]
struct Nothing {}

/// Writes `hello` (seed 6.1).
#[must_use]
pub fn hello(id: u64, attest_version: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Hello<'a> {
        attest_version: &'a str,
        protocols: [u32; 1],
    }
    let protocols = [MAJOR];
    line(
        id,
        "hello",
        Hello {
            attest_version,
            protocols,
        },
    )
}

/// Writes `hello_ok` (seed 6.2).
#[must_use]
pub fn hello_ok(id: u64, announcement: &Announcement) -> Vec<u8> {
    #[derive(Serialize)]
    struct HelloOk<'a> {
        name: &'a str,
        version: &'a str,
        protocol: u32,
        hooks: &'a [String],
        deterministic: bool,
    }
    let rest = HelloOk {
        name: announcement.name.as_str(),
        version: &announcement.version,
        protocol: announcement.protocol,
        hooks: &announcement.hooks,
        deterministic: announcement.deterministic,
    };
    line(id, "hello_ok", rest)
}

/// Writes a request (seed 6.3). The caller checks its length.
#[must_use]
pub fn request(id: u64, payload: &Payload) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a> {
        payload: &'a Payload,
    }
    line(id, payload.hook().as_str(), Request { payload })
}

/// Writes a verdict (seed 6.4). The caller checks its length.
#[must_use]
pub fn verdict(id: u64, verdict: &Verdict) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<'a> {
        decision: crate::Decision,
        findings: &'a [Finding],
        #[serde(skip_serializing_if = "Option::is_none")]
        annotation: Option<&'a crate::Annotation>,
    }
    let rest = Answer {
        decision: verdict.decision,
        findings: &verdict.findings,
        annotation: verdict.annotation.as_ref(),
    };
    line(id, "verdict", rest)
}

/// Writes `shutdown` (seed 6.5).
#[must_use]
pub fn shutdown(id: u64) -> Vec<u8> {
    line(id, "shutdown", Nothing {})
}
