//! A server that answers as it was told, and cuts where it was told.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::bed::{Bed, Ran, ran};

/// Reads the head of a request that has no body.
fn head(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap().to_ascii_lowercase()
}

fn download(bed: &Bed, listener: &TcpListener, digest: &str) -> Ran {
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut command = bed.program(&["download", digest, "-o", "got.tar.gz"]);
    ran(command.env("BACKPLANE_URL", url))
}

#[test]
fn a_download_that_was_cut_goes_on_in_the_next_run() {
    let bed = Bed::with_package();
    bed.line("pack notes -o own.tar.gz").expect(0);
    let whole = bed.read("own.tar.gz");
    let digest = plugin_archive::digest(&whole).to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let answers = listener.try_clone().unwrap();
    let (bytes, tag) = (whole.clone(), format!("\"{digest}\""));
    let server = std::thread::spawn(move || {
        let half = bytes.len() / 2;
        let (mut first, _) = answers.accept().unwrap();
        let asked = head(&mut first);
        assert!(!asked.contains("\r\nrange:"), "{asked}");
        let text = format!(
            "HTTP/1.1 200 OK\r\netag: {tag}\r\naccept-ranges: bytes\r\ncontent-length: {}\r\n\r\n",
            bytes.len()
        );
        first.write_all(text.as_bytes()).unwrap();
        first.write_all(&bytes[..half]).unwrap();
        drop(first);
        // Two more attempts of the first run find nobody.
        for _ in 0..2 {
            drop(answers.accept().unwrap());
        }
        let (mut second, _) = answers.accept().unwrap();
        let asked = head(&mut second);
        let from = asked
            .lines()
            .find_map(|line| line.strip_prefix("range: bytes="))
            .unwrap_or_else(|| panic!("{asked}"));
        let from: usize = from.trim_end_matches('-').parse().unwrap();
        let text = format!(
            "HTTP/1.1 206 Partial Content\r\netag: {tag}\r\ncontent-range: bytes {from}-{}/{}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            bytes.len() - 1,
            bytes.len(),
            bytes.len() - from
        );
        second.write_all(text.as_bytes()).unwrap();
        second.write_all(&bytes[from..]).unwrap();
        from
    });
    download(&bed, &listener, &digest)
        .expect(2)
        .says("goes on from there");
    assert!(!bed.path("got.tar.gz").exists());
    assert_eq!(bed.mode_of("got.tar.gz.part"), 0o600);
    download(&bed, &listener, &digest).expect(0);
    assert!(server.join().unwrap() > 0, "the rest alone was asked for");
    assert_eq!(bed.read("got.tar.gz"), whole);
    assert!(!bed.path("got.tar.gz.part").exists());
}

#[test]
fn what_a_hostile_server_says_reaches_the_terminal_visible_and_without_the_token() {
    let bed = Bed::with_package();
    bed.write("t.token", "canary-token-31\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let say = move |message: &str| {
        format!(
            r#"{{"protocol_version":"1","error":{{"code":"forbidden","message":"{message}","retryable":false}}}}"#
        )
    };
    let server = std::thread::spawn(move || {
        for message in ["\\u001b[2J no", "you sent canary-token-31"] {
            let (mut list, _) = listener.accept().unwrap();
            head(&mut list);
            let none = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            list.write_all(none.as_bytes()).unwrap();
            drop(list);
            let (mut upload, _) = listener.accept().unwrap();
            let asked = head(&mut upload);
            let length = asked
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
            upload.read_exact(&mut body).unwrap();
            let body = say(message);
            let text = format!(
                "HTTP/1.1 403 Forbidden\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            upload.write_all(text.as_bytes()).unwrap();
        }
    });
    let publish = || {
        let mut command = bed.program(&["publish", "./notes", "--token-file", "t.token"]);
        ran(command.env("BACKPLANE_URL", &url)).expect(2)
    };
    let first = publish();
    assert!(
        first.err.contains("the registry says: \\u{1b}[2J no"),
        "{}",
        first.err
    );
    let second = publish();
    assert!(second.err.contains("`forbidden`"), "{}", second.err);
    assert!(!second.err.contains("canary-token-31"), "{}", second.err);
    server.join().unwrap();
}

#[test]
fn a_server_that_is_no_registry_is_no_answer() {
    let bed = Bed::with_package();
    bed.write("t.token", "canary-token-31\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let lines = ["catalog", "login --token-file t.token"];
    let server = std::thread::spawn(move || {
        for _ in lines {
            let (mut stream, _) = listener.accept().unwrap();
            head(&mut stream);
            let none = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(none.as_bytes()).unwrap();
        }
    });
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = bed.program(&words);
        command.env("BACKPLANE_URL", &url);
        command.env("HOME", bed.path("home"));
        let hint = format!("`curl {url}/healthz` tells");
        ran(&mut command).expect(2).says(&hint);
    }
    server.join().unwrap();
}
