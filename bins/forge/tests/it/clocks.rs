//! Wall clocks that are wrong or are set while jobs run. A small library that is loaded before all
//! others shifts the wall clock of one program by what a file says; the monotonic clock stays.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::appliance::{Appliance, Setup, wait_until};
use crate::faults::{mark, running, waiting};

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *at) {
    int done = syscall(SYS_clock_gettime, id, at);
    if (done == 0 && id == CLOCK_REALTIME) {
        char text[32] = {0};
        int file = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            if (read(file, text, sizeof text - 1) > 0) at->tv_sec += atol(text);
            close(file);
        }
    }
    return done;
}
"#;

/// A clock that a test sets, in seconds beside the right one.
struct Shifted {
    folder: tempfile::TempDir,
}

impl Shifted {
    fn by(seconds: i64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("clock.c");
        std::fs::write(&source, SOURCE).unwrap();
        let made = Self { folder };
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(made.library())
            .arg(&source)
            .status()
            .unwrap();
        assert!(built.success());
        made.set(seconds);
        made
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("clock.so")
    }

    fn set(&self, seconds: i64) {
        let file = self.folder.path().join("shift");
        let new = self.folder.path().join("new");
        std::fs::write(&new, seconds.to_string()).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        vec![
            ("LD_PRELOAD", text(&self.library())),
            ("CLOCK_SHIFT", text(&self.folder.path().join("shift"))),
        ]
    }
}

/// Seconds from now to a time of the Gate.
fn ahead(time: &Value) -> i64 {
    let time: &str = time.as_str().unwrap();
    let output = Command::new("date")
        .args(["-d", time, "+%s"])
        .output()
        .unwrap();
    let seen: i64 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    seen - i64::try_from(now.as_secs()).unwrap()
}

#[test]
fn r06_the_gates_clock_is_set_by_an_hour_and_no_lease_moves() {
    let mark = mark("set-clock");
    let clock = Shifted::by(7_200);
    let setup = Setup {
        lease_ttl: "4s",
        gate_variables: clock.variables(),
        ..waiting(&mark)
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let job = appliance.submit("an answer", &[]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    let first = appliance.job(&job);
    let off = ahead(&first["created_at"]);
    assert!((7_000..7_400).contains(&off), "the library works: {off}");

    for hours in [3, 1] {
        clock.set(hours * 3_600);
        // Longer than several heartbeats and sweeps.
        std::thread::sleep(Duration::from_secs(2));
        let seen = appliance.job(&job);
        assert_eq!(
            seen["status"],
            "leased",
            "at {hours} h: {}",
            appliance.logs()
        );
        assert_eq!(seen["attempt_id"], first["attempt_id"], "at {hours} h");
    }
    // An hour back, and nobody is left to prolong the lease: it ends as if nothing had been.
    appliance.kill_worker();
    appliance.wait_for_status(&job, &["retry_wait", "pending"]);
}

#[test]
fn r07_a_worker_whose_clock_is_ten_minutes_off_works_as_any_other() {
    for shift in [-600, 600] {
        let clock = Shifted::by(shift);
        let setup = Setup {
            worker_variables: clock.variables(),
            ..Setup::default()
        };
        let mut appliance = Appliance::start(&setup);
        appliance.start_worker();
        let job = appliance.submit("an answer", &[vec!["true"]]);
        let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
        assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
        let log = std::fs::read_to_string(appliance.path("worker.log")).unwrap();
        let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let off = ahead(&line["time"]);
        assert!((off - shift).abs() < 200, "the library works: {off}");

        let result = appliance.result(&job);
        let attempts = result["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1, "{result}");
        for time in [
            &result["job"]["created_at"],
            &attempts[0]["leased_at"],
            &attempts[0]["completed_at"],
        ] {
            let off = ahead(time);
            assert!((-200..=1).contains(&off), "the Gate stamps: {off} {result}");
        }
    }
}
