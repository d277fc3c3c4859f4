//! Disks without room: under the Gate's database, and under a Worker's workspaces.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::appliance::{Appliance, FORGE, OWNER_TOKEN, Setup, wait_for, wait_until, words};

/// Bytes of a job's input: some hundred jobs fill what these tests allow.
const INPUT: usize = 60_000;

/// A small file system over a folder, if this machine lets the test make one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn over(folder: &Path, size: &str) -> Option<Self> {
        let made = mount(
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=0700"),
                "tmpfs",
            ],
            folder,
        );
        if !made {
            // The whole check runs as root; there this must not pass untried.
            let owner = fs::metadata("/proc/self").unwrap();
            assert_ne!(
                std::os::unix::fs::MetadataExt::uid(&owner),
                0,
                "root can mount a file system"
            );
            println!("no file system can be mounted here; the limit of file sizes has to do");
        }
        made.then(|| Self(folder.to_owned()))
    }

    fn grow(&self, size: &str) {
        assert!(mount(&["-o", &format!("remount,size={size}")], &self.0));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).status());
    }
}

fn mount(words: &[&str], folder: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(words).arg(folder).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A process of the test's own, ended with it.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A Gate whose files cannot grow beyond `blocks` of 512 bytes; without a limit it is as always.
fn limited_gate(appliance: &Appliance, blocks: Option<u32>) -> Guarded {
    let limit = blocks.map_or_else(String::new, |blocks| {
        format!("trap '' XFSZ; ulimit -f {blocks};")
    });
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(appliance.path("full-gate.log"))
        .unwrap();
    let child = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{limit} exec \"$0\" __gate --config \"$1\""))
        .arg(FORGE)
        .arg(appliance.path("gate.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    Guarded(child)
}

fn said(appliance: &Appliance) -> String {
    fs::read_to_string(appliance.path("full-gate.log")).unwrap()
}

/// Submits a text job; nothing where no whole answer came.
fn submit(address: &str, number: usize) -> Option<(u16, Value)> {
    let body = json!({"input": format!("{number} {}", "x".repeat(INPUT))}).to_string();
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .ok()?;
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {OWNER_TOKEN}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((status, serde_json::from_str(body).ok()?))
}

/// Submits until the Gate takes no more, and returns the ids that it has answered for.
fn fill(appliance: &Appliance) -> Vec<String> {
    let address = appliance.address();
    let mut accepted = Vec::new();
    for number in 0..2_000 {
        match submit(&address, number) {
            Some((201, job)) => accepted.push(job["id"].as_str().unwrap().to_owned()),
            Some((status, answer)) => {
                assert!(status >= 500, "{status} {answer}");
                return accepted;
            }
            None => return accepted,
        }
    }
    panic!("the disk is never full");
}

/// What was answered is stored, what is stored beyond that is at most the one in doubt, and the
/// Gate works again.
fn nothing_is_lost(appliance: &mut Appliance, accepted: &[String]) {
    assert!(accepted.len() >= 5, "{} jobs", accepted.len());
    for id in accepted {
        assert_eq!(appliance.job(id)["status"], "pending", "{id}");
    }
    let copy = appliance.path("copy.db");
    let output = Command::new(FORGE)
        .arg("__gate")
        .arg("--config")
        .arg(appliance.path("gate.json"))
        .arg("--backup-to")
        .arg(&copy)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}{failed}");
    let stored = listed(appliance);
    assert!(
        (accepted.len()..=accepted.len() + 1).contains(&stored),
        "{stored} stored, {} answered for",
        accepted.len()
    );
    appliance.start_worker();
    let last = accepted.last().unwrap();
    appliance.wait_for_status(last, &["succeeded"]);
}

fn listed(appliance: &Appliance) -> usize {
    let (code, out, err) = appliance.forge(&["list", "--format", "json", "--limit", "100"]);
    assert_eq!(code, 0, "{err}");
    let count = out.matches("\"policy_version\"").count();
    assert!(count < 100, "more than one page");
    count
}

#[test]
fn enospc_under_the_database_ends_the_gate_and_loses_nothing_that_was_answered() {
    let mut appliance = Appliance::start(&Setup::default());
    appliance.kill_gate();
    let folder = appliance.path("gate");
    let Some(disk) = SmallDisk::over(&folder, "3m") else {
        return; // the next test has the same by other means
    };
    let mut gate = limited_gate(&appliance, None);
    wait_until("the Gate listens", || {
        TcpStream::connect(appliance.address()).is_ok()
    });
    let accepted = fill(&appliance);
    let status = wait_for("the Gate has ended", || gate.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(2), "{}", said(&appliance));
    assert!(said(&appliance).contains("full"), "{}", said(&appliance));

    // Without room it may start or say why not, and harms nothing.
    let mut again = limited_gate(&appliance, None);
    std::thread::sleep(Duration::from_secs(1));
    if let Some(status) = again.0.try_wait().unwrap() {
        assert_eq!(status.code(), Some(2), "{}", said(&appliance));
    }
    drop(again);
    disk.grow("64m");
    appliance.start_gate();
    nothing_is_lost(&mut appliance, &accepted);
    appliance.kill_gate();
    appliance.kill_worker();
    drop(disk);
}

#[test]
fn a_database_that_cannot_grow_ends_the_gate_and_loses_nothing_that_was_answered() {
    let mut appliance = Appliance::start(&Setup::default());
    appliance.kill_gate();
    let mut gate = limited_gate(&appliance, Some(4_000));
    wait_until("the Gate listens", || {
        TcpStream::connect(appliance.address()).is_ok()
    });
    let accepted = fill(&appliance);
    let status = wait_for("the Gate has ended", || gate.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(2), "{}", said(&appliance));
    appliance.start_gate();
    nothing_is_lost(&mut appliance, &accepted);
}

/// The Worker's guard is off, so that the full disk is met in the middle of the work.
fn unguarded(appliance: &Appliance) {
    let path = appliance.path("worker.json");
    let mut worker: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    worker["min_free_bytes"] = json!(0);
    fs::write(&path, worker.to_string()).unwrap();
}

#[test]
fn enospc_under_the_workspaces_fails_the_job_and_the_worker_goes_on() {
    let script = "read -r what; case $what in \
         much*) dd if=/dev/zero of=big bs=64k count=1000 2>/dev/null || exit 1;; esac; \
         echo done > answer.txt";
    let setup = Setup {
        command: words(&["/bin/sh", "-c", script]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    unguarded(&appliance);
    let trees = appliance.path("trees");
    let Some(disk) = SmallDisk::over(&trees, "4m") else {
        return;
    };
    appliance.start_worker();
    // A plugin that fills the disk.
    let much = appliance.submit("much", &[]);
    let failed = appliance.wait_for_status(&much, &["succeeded", "failed"]);
    assert_eq!(failed["failure_code"], "max_attempts_exceeded", "{failed}");
    let reasons = reasons(&appliance, &much);
    assert!(
        reasons.iter().all(|reason| reason == "execution_failed"),
        "{reasons:?}"
    );
    let little = appliance.submit("little", &[]);
    appliance.wait_for_status(&little, &["succeeded"]);

    // A disk that is full before the workspace is made.
    let filler = trees.join("filler");
    assert!(fs::write(&filler, vec![0; 8 << 20]).is_err(), "it is full");
    let no_room = appliance.submit("little", &[]);
    let failed = appliance.wait_for_status(&no_room, &["succeeded", "failed"]);
    assert_eq!(failed["failure_code"], "max_attempts_exceeded", "{failed}");
    let logs = appliance.logs();
    assert!(logs.contains("No space left on device"), "{logs}");
    fs::remove_file(&filler).unwrap();
    let (code, again, err) = appliance.forge(&["retry", &no_room]);
    assert_eq!(code, 0, "{err}");
    appliance.wait_for_status(again.trim(), &["succeeded"]);
    assert!(!appliance.worker_has_ended(), "{}", appliance.logs());
    appliance.kill_worker();
    drop(disk);
}

/// Why each attempt of a job failed.
fn reasons(appliance: &Appliance, job: &str) -> Vec<String> {
    let result = appliance.result(job);
    let attempts = result["attempts"].as_array().unwrap();
    attempts
        .iter()
        .map(|attempt| attempt["failure_code"].as_str().unwrap().to_owned())
        .collect()
}
