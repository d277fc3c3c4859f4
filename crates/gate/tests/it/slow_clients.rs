//! R60, R19: clients that hold what they have been given. Heads and bodies that drip, connections
//! and slots that say nothing: descriptors and memory stay bounded and others are served.

use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{OWNER, PATIENCE, Peer, Rig};

/// As many slots as a Gate can have: four Workers with 64 each.
const SLOTS: [(&str, u16); 4] = [("w-1", 64), ("w-2", 64), ("w-3", 64), ("w-4", 64)];
/// More than are served at once.
const IDLE: usize = 1100;
/// What each connection may cost, both of its ends and the runtime included.
const MOST_BYTES: u64 = 96 * 1024;

/// Both ends of every connection are in this process.
fn room_for(descriptors: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < descriptors) {
        let current = limit
            .maximum
            .map_or(descriptors, |most| most.min(descriptors));
        let raised = Rlimit {
            current: Some(current),
            ..limit
        };
        setrlimit(Resource::Nofile, raised).unwrap();
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

async fn many_slots() -> Rig {
    Rig::start_with(|config| {
        let owner = config["owner_token_file"].as_str().unwrap();
        let folder = Path::new(owner).parent().unwrap().to_owned();
        let workers = SLOTS.map(|(name, slots)| {
            let token = folder.join(name);
            std::fs::write(&token, format!("token-of-{name}")).unwrap();
            json!({"id": name, "pool": "coding", "token_file": token, "concurrency": slots})
        });
        config["workers"] = json!(workers);
    })
    .await
}

/// A connection that has asked once and is kept open.
async fn kept_alive(rig: &Rig) -> TcpStream {
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    stream
}

/// A client with a request of its own, over a connection of its own.
async fn served(rig: &Rig) -> String {
    let request = format!(
        "GET /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {OWNER}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer))
        .await
        .expect("another client is served")
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer
}

#[tokio::test]
async fn r60_a_thousand_idle_connections_and_every_slot_leave_others_served() {
    room_for(4096);
    let rig = many_slots().await;
    let (files, memory) = (descriptors(), resident());
    let mut slots: Vec<Peer> = Vec::new();
    for (name, count) in SLOTS {
        for slot in 0..count {
            let query = format!("worker_id={name}&slot={slot}");
            let token = format!("token-of-{name}");
            slots.push(rig.try_connect(&query, &token, &[]).await.unwrap());
        }
    }
    // No slot is left, whoever asks for one.
    let taken = rig
        .try_connect("worker_id=w-1&slot=0", "token-of-w-1", &[])
        .await;
    assert_eq!(taken.err(), Some(StatusCode::CONFLICT));
    let unknown = rig
        .try_connect("worker_id=w-1&slot=64", "token-of-w-1", &[])
        .await;
    assert_eq!(unknown.err(), Some(StatusCode::UNAUTHORIZED));
    let mut idle = Vec::new();
    for number in 0..IDLE {
        // Half of them have never said a word.
        idle.push(if number % 2 == 0 {
            kept_alive(&rig).await
        } else {
            TcpStream::connect(rig.address).await.unwrap()
        });
    }
    served(&rig).await;
    // One of the slots does its work among all of that.
    let job = rig.submit_text("work").await;
    rig.until(&job, "leased").await;
    let open = slots.len() + idle.len();
    let grown = resident().saturating_sub(memory);
    assert!(
        grown < open as u64 * MOST_BYTES,
        "{} KiB for {open} connections",
        grown >> 10
    );
    drop((slots, idle));
    let released = async {
        while descriptors() > files + 8 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, released)
        .await
        .expect("every descriptor is released");
    served(&rig).await;
}

async fn connected(rig: &Rig) -> TcpStream {
    TcpStream::connect(rig.address).await.unwrap()
}

/// Writes a byte every 100 ms until the Gate ends it; answers how long that took and what was said.
async fn drip(mut stream: TcpStream, head: String) -> (Duration, String) {
    let start = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        if stream.write_all(b"x").await.is_err() {
            break;
        }
        match timeout(Duration::from_millis(100), stream.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(count)) => answer.extend_from_slice(&buffer[..count]),
            Err(_) => {}
        }
        assert!(start.elapsed() < Duration::from_secs(90), "held for ever");
    }
    (
        start.elapsed(),
        String::from_utf8_lossy(&answer).into_owned(),
    )
}

/// A client that writes on may be reset before it has read the answer.
fn is_or_was_lost(answer: &str, expected: &str) -> bool {
    answer.is_empty() || answer.starts_with(expected)
}

/// In real time: 5 s for a head, 30 s for a body are the rules; more is left to a loaded machine.
#[tokio::test]
async fn r60_slow_heads_and_bodies_end_in_time_and_leave_others_served() {
    room_for(2048);
    let rig = Rig::start().await;
    let post =
        format!("POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {OWNER}\r\n");
    let mut heads = JoinSet::new();
    let mut bodies = JoinSet::new();
    let mut strangers = JoinSet::new();
    for number in 0..100 {
        // Three at a time, or else the kernel's queue before the Gate decides who is served.
        let three = [
            connected(&rig).await,
            connected(&rig).await,
            connected(&rig).await,
        ];
        sleep(Duration::from_millis(2)).await;
        let [head, body, stranger] = three;
        heads.spawn(drip(head, format!("{post}X-Slow: ")));
        let length = match number % 2 {
            0 => "Content-Length: 100000\r\n\r\n",
            // One chunk of 65 536 bytes.
            _ => "Transfer-Encoding: chunked\r\n\r\n10000\r\n",
        };
        bodies.spawn(drip(body, format!("{post}{length}")));
        let without = post.replace(OWNER, "wrong");
        strangers.spawn(drip(stranger, format!("{without}{length}")));
    }
    let memory = resident();
    while let Some(stranger) = strangers.join_next().await {
        let (took, answer) = stranger.unwrap();
        assert!(took < Duration::from_secs(15), "{took:?}");
        assert!(is_or_was_lost(&answer, "HTTP/1.1 401 "), "{answer}");
    }
    served(&rig).await;
    while let Some(head) = heads.join_next().await {
        let (took, answer) = head.unwrap();
        assert!(took < Duration::from_secs(15), "{took:?}");
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    // The bodies still drip.
    let jobs = served(&rig).await;
    assert!(jobs.ends_with("{\"items\":[]}\n"), "{jobs}");
    while let Some(body) = bodies.join_next().await {
        let (took, answer) = body.unwrap();
        assert!(took > Duration::from_secs(29), "{took:?} {answer}");
        assert!(took < Duration::from_secs(45), "{took:?}");
        assert!(is_or_was_lost(&answer, "HTTP/1.1 408 "), "{answer}");
    }
    let grown = resident().saturating_sub(memory);
    assert!(grown < 64 << 20, "{} KiB", grown >> 10);
    let jobs = served(&rig).await;
    assert!(jobs.ends_with("{\"items\":[]}\n"), "{jobs}");
}
