//! What every accepted socket gets: no delay for small messages, and the means
//! to notice a peer that lost its power. Some may not be pinged while they
//! work, so the kernel has to find out.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;
use rustix::process::{Resource, getrlimit};

/// Unanswered silence after which the kernel starts to probe.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// Time between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Probes without an answer after which the connection is dead.
const KEEPALIVE_PROBES: u32 = 3;
/// Milliseconds after which unacknowledged data means that the connection is dead.
#[cfg(target_os = "linux")]
const USER_TIMEOUT_MS: u32 = 30_000;

/// Connections that may wait to be accepted, as far as the kernel allows. The library's 128 are
/// fewer than the slots of one Gate, and beyond them the kernel drops or resets who dials.
const QUEUE: i32 = 1024;

/// Lets a crowd of Workers wait at a listener.
pub(crate) fn widen(listener: &impl AsFd) -> io::Result<()> {
    // Listening again only changes the length of the queue.
    Ok(rustix::net::listen(listener, QUEUE)?)
}

/// Sets the options that the conversation relies on.
pub(crate) fn prepare(socket: &impl AsFd) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(socket, USER_TIMEOUT_MS)?;
    Ok(())
}

/// How many connections there may be with the descriptors of this process: half of them, so that
/// what is served can open its files while a crowd is connected.
pub(crate) fn affordable() -> usize {
    half(getrlimit(Resource::Nofile).current)
}

fn half(descriptors: Option<u64>) -> usize {
    descriptors.map_or(usize::MAX, |all| {
        usize::try_from(all / 2).unwrap_or(usize::MAX).max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r18_a_crowd_can_wait_to_be_accepted() {
        let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let crowd = limit.trim().parse().unwrap_or(128_usize).min(300);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        widen(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        // Nobody accepts: one too many would wait for ever.
        let waiting: Vec<_> = (0..crowd)
            .map(|_| std::net::TcpStream::connect_timeout(&address, Duration::from_secs(10)))
            .collect();
        assert!(waiting.iter().all(Result::is_ok));
    }

    #[test]
    fn connections_leave_descriptors_for_what_they_are_for() {
        for (descriptors, connections) in [
            (None, usize::MAX),
            (Some(16_384), 8_192),
            (Some(64), 32),
            (Some(0), 1),
        ] {
            assert_eq!(half(descriptors), connections);
        }
    }

    #[tokio::test]
    async fn options_are_set() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) =
            tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
        let (socket, _) = accepted.unwrap();
        prepare(&socket).unwrap();
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
        assert!(sockopt::socket_keepalive(&socket).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&socket).unwrap(), KEEPALIVE_IDLE);
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), USER_TIMEOUT_MS);
        drop(client);
    }
}
