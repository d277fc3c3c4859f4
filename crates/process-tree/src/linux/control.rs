//! The words between host and wrapper: fixed frames over a socket pair.
//!
//! Both ends are the same executable, so the frames carry no version. The first message of
//! the host is a single byte that carries the program's stdin as a descriptor; the host's end
//! of file means that the host is gone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::spec::{Exit, Outlived, Status};

/// The size of every frame.
pub(super) const FRAME: usize = 20;

/// The byte that carries the program's stdin.
pub(super) const STDIN: u8 = b'S';

/// Host to wrapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// End the program.
    Cancel(Cancel),
    /// Send this signal to the program's group, and nothing else.
    Ask { signal: i32 },
}

/// How the program is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cancel {
    /// The number of the signal that asks first.
    pub(super) ask: Option<i32>,
    pub(super) grace: Duration,
}

impl Order {
    pub(super) fn encode(self) -> [u8; FRAME] {
        match self {
            Self::Cancel(Cancel { ask, grace }) => {
                let grace = i32::try_from(grace.as_millis()).unwrap_or(i32::MAX);
                frame([1, ask.unwrap_or(0), grace, 0, 0])
            }
            Self::Ask { signal } => frame([6, signal, 0, 0, 0]),
        }
    }

    pub(super) fn decode(bytes: &[u8; FRAME]) -> Option<Self> {
        match words(bytes) {
            [1, ask, grace, _, _] => Some(Self::Cancel(Cancel {
                ask: (ask != 0).then_some(ask),
                grace: Duration::from_millis(u64::try_from(grace).unwrap_or(0)),
            })),
            [6, signal, _, _, _] => Some(Self::Ask { signal }),
            _ => None,
        }
    }
}

/// Wrapper to host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// From here on the program may be running.
    Starting,
    /// The program runs; its pidfd comes along.
    Started { pid: i32 },
    /// The system refused to start it.
    Refused { errno: i32 },
    /// It ended, and all of it is reaped.
    Ended(Exit),
}

impl Report {
    pub(super) fn encode(self) -> [u8; FRAME] {
        match self {
            Self::Starting => frame([5, 0, 0, 0, 0]),
            Self::Started { pid } => frame([2, pid, 0, 0, 0]),
            Self::Refused { errno } => frame([3, errno, 0, 0, 0]),
            Self::Ended(Exit { status, leftovers }) => {
                let (kind, value) = match status {
                    Status::Code(code) => (0, code),
                    Status::Signal(signal) => (1, signal),
                    Status::Lost => (2, 0),
                };
                let (outcome, count) = match leftovers {
                    Outlived::None => (0, 0),
                    Outlived::Killed(n) => (1, n),
                    Outlived::HeldOutput(n) => (2, n),
                    Outlived::Survived(n) => (3, n),
                };
                let count = i32::try_from(count).unwrap_or(i32::MAX);
                frame([4, kind, value, outcome, count])
            }
        }
    }

    pub(super) fn decode(bytes: &[u8; FRAME]) -> Option<Self> {
        let [tag, a, b, outcome, count] = words(bytes);
        match tag {
            5 => Some(Self::Starting),
            2 => Some(Self::Started { pid: a }),
            3 => Some(Self::Refused { errno: a }),
            4 => {
                let status = match a {
                    0 => Status::Code(b),
                    1 => Status::Signal(b),
                    _ => Status::Lost,
                };
                let count = u32::try_from(count).unwrap_or(0);
                let leftovers = match outcome {
                    0 => Outlived::None,
                    1 => Outlived::Killed(count),
                    2 => Outlived::HeldOutput(count),
                    _ => Outlived::Survived(count),
                };
                Some(Self::Ended(Exit { status, leftovers }))
            }
            _ => None,
        }
    }
}

/// Sends bytes, with a descriptor if one is given.
pub(super) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    carry: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let carried;
    if let Some(descriptor) = carry {
        carried = [descriptor];
        if !control.push(SendAncillaryMessage::ScmRights(&carried)) {
            return Err(io::Error::from(rustix::io::Errno::NOBUFS));
        }
    }
    // Frames are far smaller than the socket's buffer, so none is ever sent in part.
    sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives bytes, and the descriptor that came along; 0 bytes mean the end of file.
pub(super) fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut carried = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            carried = descriptors.last();
        }
    }
    Ok((received.bytes, carried))
}

/// Takes one whole frame off the front of what was received.
pub(super) fn take_frame(inbox: &mut Vec<u8>) -> Option<[u8; FRAME]> {
    let frame = *inbox.first_chunk::<FRAME>()?;
    inbox.drain(..FRAME);
    Some(frame)
}

fn frame(words: [i32; 5]) -> [u8; FRAME] {
    let mut bytes = [0; FRAME];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn words(bytes: &[u8; FRAME]) -> [i32; 5] {
    let mut words = [0; 5];
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = place.try_into().map_or(0, i32::from_le_bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were_sent() {
        for report in [
            Report::Started { pid: 4711 },
            Report::Refused { errno: 13 },
            Report::Ended(Exit {
                status: Status::Code(255),
                leftovers: Outlived::HeldOutput(3),
            }),
            Report::Ended(Exit {
                status: Status::Signal(34),
                leftovers: Outlived::Survived(1),
            }),
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        let grace = Duration::from_millis(250);
        for order in [
            Order::Cancel(Cancel { ask: None, grace }),
            Order::Cancel(Cancel {
                ask: Some(15),
                grace,
            }),
            Order::Ask { signal: 15 },
        ] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        assert_eq!(Report::decode(&[0; FRAME]), None);
        assert_eq!(Order::decode(&[9; FRAME]), None);
    }

    #[test]
    fn a_frame_in_pieces_waits_for_its_rest() {
        let frame = Report::Started { pid: 1 }.encode();
        let mut inbox = frame[..7].to_vec();
        assert_eq!(take_frame(&mut inbox), None);
        inbox.extend_from_slice(&frame[7..]);
        inbox.push(9);
        assert_eq!(take_frame(&mut inbox), Some(frame));
        assert_eq!(inbox, [9]);
    }
}
