//! What stands between an operator and a job that runs, asked from this side of the network.
//!
//! One question after the other, from the address to the queue; where an answer is missing, what
//! needs it is not asked.

use std::time::Duration;

use cli_shell::{CliError, Finding, clock, visible};
use jiff::{SignedDuration, Timestamp};
use strict_json::Json;

use crate::error::ClientError;
use crate::http::GateClient;
use crate::layout::{age, moment};
use crate::options::{Connection, Source};
use crate::view::Pool;

/// The longest time for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The answer's date has whole seconds, and the answer takes its time.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(5);
/// A job that has waited longer than this deserves a look.
const LONG_WAIT: SignedDuration = SignedDuration::from_mins(10);

/// 32 bytes in base64url; what the Gate makes of them is not looked at.
const CHALLENGE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Asks everything that can be asked over this connection.
pub(crate) async fn ask(connection: &Connection) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Source::File(path) = connection.token_source() {
        found.push(Finding::of_secret_file("token file", &path));
    }
    let client = match connection.client() {
        Ok(client) => client,
        Err(error) => {
            let check = match &error {
                ClientError::Token { .. } => "token",
                ClientError::Tls { .. } => "tls",
                _ => "address",
            };
            found.push(failed(check, error));
            return found;
        }
    };
    found.push(address(&client));
    let reached = reach(&client).await;
    let gone = reached.fix.is_some();
    found.push(reached);
    if gone {
        return found;
    }
    if let Err(error) = client.ready().await {
        found.push(failed("gate", error));
        return found;
    }
    found.push(Finding::ok("gate", "it answers and is ready"));
    found.push(version(&client).await);
    found.push(clocks(&client).await);
    match client.workers().await {
        Ok(_) => found.push(Finding::ok("token", "the Gate accepts it")),
        Err(error) => {
            found.push(failed("token", error));
            return found;
        }
    }
    found.extend(pools(&client).await);
    found
}

fn failed(check: &str, error: ClientError) -> Finding {
    let error = CliError::from(error);
    let fix = error.hints().join("; ");
    let message = visible(&error.messages().join(": "));
    let fix = if fix.is_empty() {
        "see the Gate's log".to_owned()
    } else {
        visible(&fix)
    };
    Finding::fail(check, message, fix)
}

fn address(client: &GateClient) -> Finding {
    let url = visible(client.url());
    if client.sends_plain() {
        let message = format!("the token travels to {url} in clear text");
        return Finding::warn("address", message, "give the Gate `tls` and use `https://`");
    }
    Finding::ok("address", url)
}

/// Opens a connection, so that a name, a route and a service that does not speak are told apart.
async fn reach(client: &GateClient) -> Finding {
    const FIX: &str = "start `forge-gate`, open the port, or name another Gate with `--gate-url`";
    let (host, port) = client.host();
    let place = format!("{}:{port}", visible(&host));
    let connected = tokio::net::TcpStream::connect((host.as_str(), port));
    match tokio::time::timeout(CONNECT_TIME, connected).await {
        Ok(Ok(_)) => Finding::ok("connection", format!("{place} accepts connections")),
        Ok(Err(error)) => Finding::fail("connection", format!("{place}: {error}"), FIX),
        Err(_) => Finding::fail(
            "connection",
            format!("{place} does not answer within 5 s"),
            FIX,
        ),
    }
}

async fn version(client: &GateClient) -> Finding {
    let query = [("challenge", CHALLENGE)];
    let what = "say its version";
    let told = match client.get_json(&["install-proof"], &query, what).await {
        Ok(Json::Object(told)) => {
            let mut fields = told.fields("");
            let mut text = |name: &str| fields.opt_text(name).ok().flatten().unwrap_or_default();
            format!("{} {}", text("version"), text("commit"))
        }
        _ => String::new(),
    };
    let told = visible(told.trim());
    let own = cli_shell::version();
    if told.is_empty() {
        let message = "the Gate does not say its version";
        return Finding::warn("version", message, "is it a Gate?");
    }
    if told == own {
        return Finding::ok("version", format!("Gate and client are {own}"));
    }
    Finding::warn(
        "version",
        format!("the Gate is {told}, this client is {own}"),
        "install the same version on both sides",
    )
}

async fn clocks(client: &GateClient) -> Finding {
    let asked = clock::now();
    let date = match client.get(&["healthz"], &[], "say the time").await {
        Ok(answer) => answer.date,
        Err(error) => return failed("clock", error),
    };
    compare(date.as_deref(), asked, clock::now())
}

/// Compares the Gate's date with the time around it.
fn compare(date: Option<&str>, asked: Timestamp, answered: Timestamp) -> Finding {
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    let Some(date) = date.map(|date| date.timestamp()) else {
        let message = "the Gate does not say the time";
        return Finding::warn("clock", message, "is there a proxy in front of it?");
    };
    let apart = if date < asked {
        asked.duration_since(date)
    } else {
        date.duration_since(answered)
    };
    if apart > CLOCKS_APART {
        let message = format!(
            "the Gate's clock is {} s away from this one",
            apart.as_secs()
        );
        let fix = "set both clocks from the network; leases are not affected, times in outputs are";
        return Finding::warn("clock", message, fix);
    }
    Finding::ok("clock", "the Gate's clock agrees with this one")
}

async fn pools(client: &GateClient) -> Vec<Finding> {
    match client.pools().await {
        Ok(pools) => pools
            .iter()
            .flat_map(|pool| pool_findings(&pool.view, clock::now()))
            .collect(),
        Err(ClientError::Refused { status: 404, .. }) => vec![Finding::warn(
            "pools",
            "this Gate does not list its pools",
            "it is an older one; `forge workers` shows who is connected",
        )],
        Err(error) => vec![failed("pools", error)],
    }
}

fn pool_findings(pool: &Pool, now: Timestamp) -> Vec<Finding> {
    let id = visible(&pool.id);
    let check = format!("pool {id}");
    let mut found = vec![slots(&check, pool)];
    if pool.paused {
        let since = pool.paused_since.as_deref().map(moment);
        let reason = pool.pause_reason.as_deref().map(visible);
        let message = format!(
            "it is paused since {}{}",
            since.unwrap_or_default(),
            reason.map(|why| format!(": {why}")).unwrap_or_default()
        );
        let fix = format!("`forge resume {id}` when the reason is gone");
        found.push(Finding::warn(&check, message, fix));
    }
    found.extend(queue(&check, pool, now));
    found
}

fn slots(check: &str, pool: &Pool) -> Finding {
    let of = format!("{} of {} slots are connected", pool.connected, pool.slots);
    let start = "start its Workers; their logs say why they cannot connect";
    if pool.slots == 0 {
        let message = "no Worker of the Gate's configuration is in it, and jobs are";
        return Finding::fail(check, message, "add a Worker to the Gate's `workers`");
    }
    if pool.connected == 0 {
        return Finding::fail(check, of, start);
    }
    if pool.refusing > 0 {
        let message = format!("{of}, and {} of them take no work", pool.refusing);
        return Finding::warn(check, message, "`forge workers` shows which and why");
    }
    if pool.connected < pool.slots {
        return Finding::warn(check, of, start);
    }
    Finding::ok(check, of)
}

fn queue(check: &str, pool: &Pool, now: Timestamp) -> Option<Finding> {
    let oldest = pool.oldest_ready_at.as_deref()?;
    let waits = now.duration_since(oldest.parse().ok()?);
    if pool.paused || waits < LONG_WAIT {
        return None;
    }
    let message = format!(
        "{} jobs wait for a slot, the oldest for {}",
        pool.ready,
        age(oldest, now)
    );
    let idle = pool
        .connected
        .saturating_sub(pool.working)
        .saturating_sub(pool.refusing);
    Some(if idle > 0 {
        let fix = "idle slots do not take them: see the Gate's log, and restart it";
        Finding::fail(check, message, fix)
    } else {
        let fix = "add slots (`concurrency`) or Workers, or cancel what is not needed";
        Finding::warn(check, message, fix)
    })
}

#[cfg(test)]
mod tests {
    use cli_shell::Grade;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn clocks_may_differ_by_what_the_answer_takes() {
        let now = at("2026-11-30T14:00:10Z");
        let grade = |date| compare(date, now, now).status;
        assert_eq!(grade(Some("Mon, 30 Nov 2026 14:00:10 GMT")), Grade::Ok);
        assert_eq!(grade(Some("Mon, 30 Nov 2026 14:00:05 GMT")), Grade::Ok);
        assert_eq!(grade(Some("Mon, 30 Nov 2026 14:00:04 GMT")), Grade::Warn);
        assert_eq!(grade(Some("Mon, 30 Nov 2026 14:00:16 GMT")), Grade::Warn);
        assert_eq!(grade(Some("today")), Grade::Warn);
        assert_eq!(grade(None), Grade::Warn);
    }

    #[test]
    fn a_pool_is_judged_by_who_could_take_its_jobs() {
        let pool = Pool {
            id: "p".to_owned(),
            paused: false,
            paused_since: None,
            pause_reason: None,
            slots: 2,
            connected: 2,
            working: 0,
            refusing: 0,
            ready: 0,
            oldest_ready_at: None,
            retrying: 0,
            leased: 0,
        };
        let now = at("2026-11-30T14:00:00Z");
        let old = Some("2026-11-30T13:00:00Z".to_owned());
        let grades = |pool: &Pool| -> Vec<Grade> {
            let found = pool_findings(pool, now);
            found.iter().map(|one| one.status).collect()
        };
        assert_eq!(grades(&pool), [Grade::Ok]);
        let cases = [
            (
                Pool {
                    connected: 1,
                    ..pool.clone()
                },
                vec![Grade::Warn],
            ),
            (
                Pool {
                    connected: 0,
                    ..pool.clone()
                },
                vec![Grade::Fail],
            ),
            (
                Pool {
                    slots: 0,
                    connected: 0,
                    ..pool.clone()
                },
                vec![Grade::Fail],
            ),
            (
                Pool {
                    refusing: 1,
                    ..pool.clone()
                },
                vec![Grade::Warn],
            ),
            (
                Pool {
                    paused: true,
                    ready: 3,
                    oldest_ready_at: old.clone(),
                    ..pool.clone()
                },
                vec![Grade::Ok, Grade::Warn],
            ),
            (
                Pool {
                    ready: 3,
                    oldest_ready_at: old.clone(),
                    ..pool.clone()
                },
                vec![Grade::Ok, Grade::Fail],
            ),
            (
                Pool {
                    working: 2,
                    ready: 3,
                    oldest_ready_at: old,
                    ..pool.clone()
                },
                vec![Grade::Ok, Grade::Warn],
            ),
            (
                Pool {
                    working: 2,
                    ready: 3,
                    oldest_ready_at: Some("2026-11-30T13:59:00Z".to_owned()),
                    ..pool
                },
                vec![Grade::Ok],
            ),
        ];
        for (pool, expected) in cases {
            assert_eq!(grades(&pool), expected, "{pool:?}");
        }
    }
}
