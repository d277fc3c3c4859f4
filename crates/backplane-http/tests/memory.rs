//! Memory stays within the limit of an answer, whatever a server sends; alone in its process.
#![expect(clippy::unwrap_used, reason = "tests fail loudly")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use backplane_client::{Auth, Client, ClientError, Fault, Never};
use backplane_http::{HttpTransport, Options};

/// Twice the limit, for a buffer that grows, and what a small program takes beside it.
const MOST: u64 = 2 * 32 * 1024 * 1024 + 32 * 1024 * 1024;

/// Returns the greatest size that the process had in memory.
fn peak() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() * 1024
}

#[test]
fn m57_a_body_without_end_takes_no_more_memory_than_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        let mut sent =
            stream.write_all(b"HTTP/1.1 200 OK\r\netag: \"a\"\r\naccept-ranges: bytes\r\n\r\n");
        let mut bytes: u64 = 0;
        let piece = vec![0x1f; 64 * 1024];
        while sent.is_ok() {
            sent = stream.write_all(&piece);
            bytes += 64 * 1024;
        }
        bytes
    });
    let http = HttpTransport::new(Options::default()).unwrap();
    let client = Client::new(&url, Auth::None, Vec::new(), http).unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    match client.download(&digest, &Never) {
        Err(ClientError::Transport(error)) => assert_eq!(error.fault(), Fault::TooLong),
        other => panic!("expected an answer that is too long, got {other:?}"),
    }
    // More than the limit was on its way.
    assert!(serving.join().unwrap() >= 32 * 1024 * 1024);
    let peak = peak();
    assert!(peak <= MOST, "{peak} bytes");
}
