//! Finds the descendants of a process in `/proc` and kills them, never a stranger.
//!
//! A number read from `/proc` may belong to somebody else a moment later. So a signal goes
//! through a pidfd only, and only after the process behind the pidfd was seen to be the one
//! that was found: the same number with the same start time. The parent is not compared, as it
//! changes whenever a parent ends.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal};

/// A process at the moment it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(super) pid: i32,
    parent: i32,
    /// Clock ticks from boot to its start: with the pid, its identity.
    start: u64,
    zombie: bool,
}

/// How often a look for descendants to stop may find new ones.
const STOPS: usize = 8;

/// Kills all descendants of `root` that one look at `/proc` finds, each as soon as it is seen.
///
/// Killing while looking keeps the gap small in which a chain of forks could run away; what is
/// missed is a child of `root` at the next pass, since `root` is a subreaper.
pub(super) fn kill_pass(root: i32, killed: &mut BTreeSet<(i32, u64)>) {
    walk(&BTreeSet::from([root]), |process| {
        if kill(process) {
            killed.insert((process.pid, process.start));
        }
    });
}

/// Kills all descendants of a `root` that is stopped, none of which sees another one's end.
pub(super) fn end_below(root: i32) {
    let mut seen = BTreeSet::new();
    let mut stopped = Vec::new();
    for _ in 0..STOPS {
        let before = stopped.len();
        walk(&BTreeSet::from([root]), |process| {
            if seen.insert((process.pid, process.start)) {
                signal(process, Signal::STOP);
                stopped.push(process);
            }
        });
        if stopped.len() == before {
            break;
        }
    }
    // From the bottom: the system continues a stopped group that loses its last parent outside.
    for process in stopped.into_iter().rev() {
        kill(process);
    }
    for _ in 0..3 {
        kill_pass(root, &mut BTreeSet::new());
    }
}

/// Shows all living descendants of `roots` that one look at `/proc` finds, each as soon as it is
/// seen and parents before their children.
fn walk(roots: &BTreeSet<i32>, mut show: impl FnMut(Process)) {
    let mut family = roots.clone();
    let mut others = Vec::new();
    let mut meet = |process: Process, family: &mut BTreeSet<i32>| {
        family.insert(process.pid);
        if !process.zombie {
            show(process);
        }
    };
    for pid in pids() {
        let Some(process) = look(pid) else { continue };
        if !roots.contains(&pid) && family.contains(&process.parent) {
            meet(process, &mut family);
        } else {
            others.push(process);
        }
    }
    // A child may have a smaller number than its parent once the numbers have wrapped.
    loop {
        let (found, rest): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|process| !roots.contains(&process.pid) && family.contains(&process.parent));
        if found.is_empty() {
            return;
        }
        for process in found {
            meet(process, &mut family);
        }
        others = rest;
    }
}

/// Kills the children of this process for which `adopted` says so, with all below them, and reaps
/// those that are dead; false if there was none.
///
/// Two looks at `/proc`, however many children there are: a chain of forks leaves a dead child at
/// each link, and whoever took a look for each of them would never catch up with it.
pub(crate) fn end_children(adopted: impl Fn(i32) -> bool) -> bool {
    let host = rustix::process::getpid().as_raw_nonzero().get();
    let mut living = BTreeSet::new();
    let mut any = false;
    for process in pids().filter_map(look) {
        if process.parent != host || !adopted(process.pid) {
            continue;
        }
        any = true;
        if process.zombie {
            reap(process.pid);
        } else {
            // From the top, so that nobody below is missed by a parent that replaces it.
            kill(process);
            living.insert(process.pid);
        }
    }
    if !living.is_empty() {
        walk(&living, |process| {
            kill(process);
        });
    }
    for pid in living {
        reap(pid);
    }
    any
}

/// Takes note of the end of a child, if it has ended.
fn reap(pid: i32) {
    let _not_yet = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
}

/// All living descendants of `root`.
pub(super) fn below(root: i32) -> Vec<Process> {
    let mut others: Vec<_> = pids().filter_map(look).collect();
    let mut family = BTreeSet::from([root]);
    let mut all = Vec::new();
    loop {
        let (found, rest): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|process| process.pid != root && family.contains(&process.parent));
        if found.is_empty() {
            return all;
        }
        family.extend(found.iter().map(|process| process.pid));
        all.extend(found.into_iter().filter(|process| !process.zombie));
        others = rest;
    }
}

/// Tells whether a process has one of these files open, on whatever descriptor.
pub(super) fn holds(process: Process, files: &[PathBuf]) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{}/fd", process.pid)) else {
        return false;
    };
    descriptors
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|target| files.contains(&target))
}

/// The files behind our own descriptors 1 and 2, as `/proc` names them.
pub(super) fn own_outputs() -> Vec<PathBuf> {
    [1, 2]
        .iter()
        .filter_map(|n| std::fs::read_link(Path::new("/proc/self/fd").join(n.to_string())).ok())
        .collect()
}

/// Kills a process if it is still the one that was looked at.
fn kill(process: Process) -> bool {
    signal(process, Signal::KILL)
}

/// Sends a signal to a process if it is still the one that was looked at.
fn signal(process: Process, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return false;
    };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    // Looked at again with the pidfd in hand: if it is the same now, the pidfd is its own.
    let same = look(process.pid).is_some_and(|now| now.start == process.start && !now.zombie);
    same && pidfd_send_signal(&pidfd, signal).is_ok()
}

fn pids() -> impl Iterator<Item = i32> {
    #[cfg(test)]
    tests::LOOKS.set(tests::LOOKS.get() + 1);
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn look(pid: i32) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

/// Reads a line of `/proc/PID/stat`; the name in it may hold anything, also `)` and spaces.
fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let text = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // starttime is field 22 of the line, so the 18th after the parent.
    let start = fields.nth(17)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        start,
        zombie: matches!(state, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    thread_local! {
        /// How often this thread has listed `/proc`.
        pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    fn start(words: &[&str]) -> i32 {
        #[expect(
            clippy::disallowed_methods,
            reason = "children that the crate knows nothing of"
        )]
        let child = std::process::Command::new("/usr/bin/env")
            .args(words)
            .spawn();
        i32::try_from(child.unwrap().id()).unwrap()
    }

    /// Waits for something; false if it has not come after a minute.
    fn comes(mut there: impl FnMut() -> bool) -> bool {
        (0..60_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            there()
        })
    }

    /// Counted, not timed: each look costs as much as the machine has processes.
    #[test]
    fn r37_many_children_are_ended_in_two_looks() {
        let dead: Vec<_> = (0..20).map(|_| start(&["true"])).collect();
        assert!(comes(|| dead.iter().all(|pid| look(*pid).unwrap().zombie)));
        // Last, so that a failure until here leaves nobody behind.
        let living = (0..20).map(|_| start(&["sleep", "60000"]));
        let all: BTreeSet<_> = living.chain(dead.iter().copied()).collect();
        assert!(comes(|| {
            let before = LOOKS.get();
            let any = end_children(|pid| all.contains(&pid));
            let looks = LOOKS.get() - before;
            assert!(looks <= 2, "{looks} looks for {} children", all.len());
            !any
        }));
        let host = i32::try_from(std::process::id()).unwrap();
        let left = |pid: &&i32| look(**pid).is_some_and(|process| process.parent == host);
        assert_eq!(all.iter().filter(left).count(), 0);
    }

    #[test]
    fn stat_line_with_a_hostile_name() {
        let line = b"42 (a) Z 1 (b)) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 10 11";
        let process = parse(42, line).unwrap();
        assert_eq!(
            (process.parent, process.start, process.zombie),
            (7, 987_654, false)
        );
        assert_eq!(parse(42, b"42 (cut) S 7"), None);
    }

    #[test]
    fn own_parent_is_found() {
        let own = look(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert_eq!(own.parent, nix::unistd::getppid().as_raw());
    }

    #[test]
    fn r36_a_process_with_another_start_time_is_spared() {
        let own = look(i32::try_from(std::process::id()).unwrap()).unwrap();
        // Killing would end this very test.
        assert!(!kill(Process {
            start: own.start + 1,
            ..own
        }));
    }
}
