//! A registry whose log goes nowhere: the reader of its standard error went away, or the disk is full.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::bed::Bed;

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_log_that_cannot_be_written_costs_no_answer() {
    let bed = Bed::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_backplane"));
    command
        .args(["serve", "--root", "root", "--listen", "127.0.0.1:0"])
        .current_dir(bed.folder())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut registry = Killed(command.spawn().unwrap());
    let log = BufReader::new(registry.0.stderr.take().unwrap());
    let address = log.lines().map_while(Result::ok).find_map(|line| {
        let event: Value = serde_json::from_str(&line).unwrap();
        event["address"].as_str().map(str::to_owned)
    });
    // Nobody reads on: from here each line fails.
    let address = address.unwrap();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
    }
}
