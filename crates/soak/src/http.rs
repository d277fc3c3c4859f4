//! One request per connection to the Gate; an answer that does not come whole is lost.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long a Gate may take; one that stands still longer has lost the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// No answer that is asked for here is larger.
const MAX_ANSWER: u64 = 1 << 20;

/// The Gate, seen by its owner.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    address: SocketAddr,
    token: String,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: String,
}

impl Answer {
    /// The body as JSON, null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

impl Gate {
    /// The Gate that listens on this port of the loopback.
    pub(crate) fn new(port: u16, token: String) -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            token,
        }
    }

    /// Reads something.
    pub(crate) fn get(&self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, None, "")
    }

    /// Changes something.
    pub(crate) fn post(&self, path: &str, key: Option<&str>, body: &str) -> io::Result<Answer> {
        self.ask("POST", path, key, body)
    }

    /// Sends a request and goes away without its answer.
    pub(crate) fn post_and_leave(&self, path: &str, key: &str, body: &str) -> io::Result<()> {
        self.send("POST", path, Some(key), body).map(drop)
    }

    fn ask(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> io::Result<Answer> {
        let stream = self.send(method, path, key, body)?;
        let mut bytes = Vec::new();
        stream.take(MAX_ANSWER).read_to_end(&mut bytes)?;
        whole(&String::from_utf8_lossy(&bytes))
            .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &str,
    ) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let key = key.map_or_else(String::new, |key| format!("Idempotency-Key: {key}\r\n"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{key}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }
}

/// Reads an answer whose body is as long as it says.
fn whole(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let length: usize = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    })?;
    (body.len() == length).then(|| Answer {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_counts() {
        let answer =
            whole("HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{\"id\":1}\n").unwrap();
        assert_eq!(
            (answer.status, answer.json()["id"].as_u64()),
            (201, Some(1))
        );
        for cut in [
            "",
            "HTTP/1.1 201 Created\r\n",
            "HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{\"id\"",
            "HTTP/1.1 201 Created\r\n\r\n{}",
        ] {
            assert!(whole(cut).is_none(), "{cut}");
        }
    }
}
