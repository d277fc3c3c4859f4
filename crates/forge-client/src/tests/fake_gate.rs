//! A Gate made of a listener and a script: what to answer to which request, in order.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

/// One answer; the last one for a request is given again and again.
#[derive(Clone)]
pub(super) enum Reply {
    /// A status and a JSON or text body.
    Body(u16, String),
    /// A redirect to an address.
    Redirect(String),
    /// The connection ends without an answer.
    HangUp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Such as `GET /v1/jobs?limit=1`.
    pub(super) line: String,
    /// Lower-case names.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

type Script = BTreeMap<String, VecDeque<Reply>>;

pub(super) struct FakeGate {
    address: String,
    script: Arc<Mutex<Script>>,
    requests: Arc<Mutex<Vec<Request>>>,
    dir: TempDir,
}

impl FakeGate {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let script = Arc::new(Mutex::new(Script::new()));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("token"), "canary-token\n").unwrap();
        let (answers, log) = (Arc::clone(&script), Arc::clone(&requests));
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serve(stream, &answers, &log);
            }
        });
        Self {
            address,
            script,
            requests,
            dir,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn token_file(&self) -> String {
        self.dir.path().join("token").display().to_string()
    }

    /// Adds an answer to `METHOD /path` (without query).
    pub(super) fn on(&self, request: &str, reply: Reply) -> &Self {
        let mut script = self.script.lock().unwrap();
        script
            .entry(request.to_owned())
            .or_default()
            .push_back(reply);
        self
    }

    pub(super) fn json(&self, request: &str, status: u16, body: impl Into<String>) -> &Self {
        self.on(request, Reply::Body(status, body.into()))
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.requests()
            .into_iter()
            .map(|request| request.line)
            .collect()
    }
}

fn serve(mut stream: TcpStream, script: &Mutex<Script>, log: &Mutex<Vec<Request>>) {
    let Some(request) = read(&stream) else { return };
    let path = request
        .line
        .split('?')
        .next()
        .unwrap_or_default()
        .to_owned();
    log.lock().unwrap().push(request);
    let reply = {
        let mut script = script.lock().unwrap();
        match script.get_mut(&path) {
            Some(replies) if replies.len() > 1 => replies.pop_front(),
            Some(replies) => replies.front().cloned(),
            None => None,
        }
    };
    let (head, body) = match reply {
        Some(Reply::Body(status, body)) => (format!("{status} X"), body),
        Some(Reply::Redirect(to)) => (format!("302 X\r\nlocation: {to}"), String::new()),
        Some(Reply::HangUp) => return,
        None => ("404 X".to_owned(), "{\"message\":\"not found\"}".to_owned()),
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    drop(stream.write_all(answer.as_bytes()));
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let line = first.trim_end().strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        match header.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
            None => break,
        };
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        line,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
