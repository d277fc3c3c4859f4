//! A registry that dies in the middle of a publish.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::service::Place;
use crate::bed::ran;

#[test]
fn nothing_is_half_visible_and_publishing_again_succeeds() {
    let mut place = Place::plain();
    // The artifact arrives, and the registry is gone before the release.
    place.bed.line("pack notes -o p.tar.gz").expect(0);
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let through = format!("http://{}", relay.local_addr().unwrap());
    let mut command = place
        .bed
        .program(&["publish", "./p.tar.gz", "--channel", "stable"]);
    command
        .env("BACKPLANE_URL", through)
        .env("BACKPLANE_TOKEN_FILE", "ci.token");
    let to = place.address().to_owned();
    let relaying = std::thread::spawn(move || relay_until_released(&relay, &to));
    let failed = ran(&mut command).expect(2);
    assert!(failed.err.contains("was not released"), "{}", failed.err);
    relaying.join().unwrap();
    place.kill();
    place.again();
    place.line("reader", "catalog").expect(1);
    place.line("reader", "resolve acme-notes").expect(1);
    place
        .line("ci", "publish ./p.tar.gz --channel stable")
        .expect(0);
    place.line("reader", "resolve acme-notes").expect(0);
}

/// Hands single requests on until one would make a release: that one is dropped, as by a crash.
fn relay_until_released(relay: &TcpListener, to: &str) {
    loop {
        let (mut near, _) = relay.accept().unwrap();
        let request = whole(&mut near);
        if request.starts_with(b"POST ") {
            return;
        }
        let head = request.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
        let mut once = request[..head].to_vec();
        once.extend_from_slice(b"\r\nconnection: close");
        once.extend_from_slice(&request[head..]);
        let mut far = std::net::TcpStream::connect(to).unwrap();
        far.write_all(&once).unwrap();
        let mut answer = Vec::new();
        far.read_to_end(&mut answer).unwrap();
        near.write_all(&answer).unwrap();
    }
}

/// Reads one request with its body.
fn whole(near: &mut std::net::TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let head = request.windows(4).position(|at| at == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if request.len() >= head + 4 + length {
                return request;
            }
        }
        let read = near.read(&mut piece).unwrap();
        assert_ne!(read, 0, "a request that ends early");
        request.extend_from_slice(&piece[..read]);
    }
}
