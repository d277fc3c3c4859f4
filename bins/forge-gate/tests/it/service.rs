//! Under a service manager: a socket that it passed, and what it is told.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;

use crate::running::{PATIENCE, Place, Running};

/// Starts the Gate as a service manager does: the descriptor is number 3, `LISTEN_PID` names the
/// process itself (`$$` outlives the exec) or, if `pid` is given, another.
#[expect(
    clippy::disallowed_methods,
    reason = "the test starts the program that it is about"
)]
fn service(place: &Place, descriptor: impl Into<OwnedFd>, pid: &str, count: &str) -> Command {
    let script = format!(
        "exec 3<&0 </dev/null; export LISTEN_PID={pid} LISTEN_FDS={count}; exec \"$0\" --config \"$1\""
    );
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_forge-gate")])
        .arg(place.config())
        .stdin(Stdio::from(descriptor.into()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn started(command: &mut Command) -> Child {
    command.spawn().unwrap()
}

fn refused(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let log = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("startup_failed"), "{log}");
    log
}

#[test]
fn it_serves_on_the_socket_that_was_passed_and_says_when() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let manager = UnixDatagram::bind(place.path().join("notify")).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let hear = || {
        let mut text = [0; 256];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap()
    };
    let mut command = service(&place, listener, "$$", "1");
    command.env("NOTIFY_SOCKET", place.path().join("notify"));
    let gate = Running::of(started(&mut command));
    assert_eq!(hear(), "READY=1\n");
    assert_eq!(gate.address(), address);
    assert_eq!(gate.request("GET", "/readyz", "")["status"], "ready");
    gate.signal(Signal::TERM);
    assert_eq!(hear(), "STOPPING=1\n");
    let (status, log) = gate.wait();
    assert!(status.success(), "{log}");
}

#[test]
fn a_socket_that_was_meant_for_another_process_is_left_alone() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let gate = Running::of(started(&mut service(&place, listener, "1", "1")));
    assert_ne!(gate.address(), address);
    assert_eq!(gate.request("GET", "/readyz", "")["status"], "ready");
}

#[test]
fn a_passed_socket_is_judged_by_where_it_is_bound() {
    let place = Place::new();
    let public = TcpListener::bind("0.0.0.0:0").unwrap();
    let address = public.local_addr().unwrap().to_string();
    let log = refused(&mut service(&place, public, "$$", "1"));
    assert!(
        log.contains(&address) && log.contains("allow_plain_listener"),
        "{log}"
    );
}

#[test]
fn what_is_no_single_listener_is_refused() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let log = refused(&mut service(&place, listener, "$$", "2"));
    assert!(log.contains("LISTEN_FDS"), "{log}");
    let (ours, _theirs) = UnixDatagram::pair().unwrap();
    let log = refused(&mut service(&place, ours, "$$", "1"));
    assert!(log.contains("no listening TCP socket"), "{log}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let log = refused(&mut service(&place, connected, "$$", "1"));
    assert!(log.contains("no listening TCP socket"), "{log}");
}
