//! Busy machines, silent servers, jobs that kill, and clients that never read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::appliance::{Appliance, OWNER_TOKEN, Setup, signal, wait_until, words};
use crate::faults::{mark, running, waiting};

#[test]
fn r08_a_starved_worker_keeps_its_job_or_gives_it_up_once() {
    // Processors and disk are busy for two lease times, with more processes than processors.
    let script = "end=$(($(date +%s) + 6)); for n in 1 2 3 4; do \
         (while [ $(date +%s) -lt $end ]; do :; done) & done; \
         while [ $(date +%s) -lt $end ]; do \
         dd if=/dev/zero of='@FOLDER@/noise' bs=1M count=8 conv=fsync 2>/dev/null; done; \
         wait; cat > answer.txt";
    let setup = Setup {
        command: words(&["/bin/sh", "-c", script]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let job = appliance.submit("an answer", &[]);
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let result = appliance.result(&job);
    let attempts = result["attempts"].as_array().unwrap();
    // On a machine that starves it beyond its lease, the first attempt is lost, once and cleanly.
    assert!(attempts.len() <= 2, "{result}");
    if attempts.len() == 2 {
        assert_eq!(attempts[0]["status"], "expired", "{result}");
    }
    let refs = appliance.git(&["for-each-ref", "refs/agent-forge/candidates"]);
    assert_eq!(refs.lines().count(), 1, "{refs}");
}

#[test]
fn r09_a_gate_that_is_silent_for_less_than_a_lease_costs_nothing_and_for_longer_ends_the_plugin() {
    let mark = mark("silent-gate");
    let setup = Setup {
        lease_ttl: "6s",
        ..waiting(&mark)
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let job = appliance.submit("an answer", &[]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    let first = appliance.job(&job)["attempt_id"].clone();
    let gate = appliance.gate_id();

    signal("-STOP", gate);
    std::thread::sleep(Duration::from_secs(1));
    signal("-CONT", gate);
    std::thread::sleep(Duration::from_secs(1));
    assert!(running(&mark) >= 3, "{}", appliance.logs());
    assert_eq!(appliance.job(&job)["attempt_id"], first);

    // The Gate gives the job out again only once it runs again, so the plugin is gone before.
    signal("-STOP", gate);
    wait_until("the plugin and its children are gone", || {
        running(&mark) == 0
    });
    std::fs::write(appliance.path("go"), "").unwrap();
    signal("-CONT", gate);
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let result = appliance.result(&job);
    let attempts = result["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{result}");
    assert_eq!(attempts[0]["id"], first);
}

#[test]
fn r27_a_job_that_kills_its_worker_is_given_up_and_the_others_go_on() {
    let script = "read -r what; case $what in \
         poison*) kill -9 $(cat '@FOLDER@/worker.pid'); sleep 60;; esac; echo done > answer.txt";
    let setup = Setup {
        lease_ttl: "2s",
        command: words(&["/bin/sh", "-c", script]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    let poison = appliance.submit("poison", &[]);
    let good: Vec<String> = (0..2).map(|_| appliance.submit("good", &[])).collect();
    // What a service manager does: a Worker that is gone is started again.
    let mut starts = 0;
    let over = |appliance: &Appliance, job: &str| {
        let status = appliance.job(job)["status"].clone();
        status == "succeeded" || status == "failed"
    };
    let mut process = 0;
    wait_until("every job has ended", || {
        if starts == 0 || appliance.worker_has_ended() {
            process = appliance.start_worker();
            std::fs::write(appliance.path("worker.pid"), process.to_string()).unwrap();
            starts += 1;
        }
        over(&appliance, &poison) && good.iter().all(|job| over(&appliance, job))
    });
    let ended = appliance.job(&poison);
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["failure_code"], "max_attempts_exceeded", "{ended}");
    let result = appliance.result(&poison);
    assert_eq!(result["attempts"].as_array().unwrap().len(), 3, "{result}");
    for job in &good {
        assert_eq!(
            appliance.job(job)["status"],
            "succeeded",
            "{}",
            appliance.logs()
        );
    }
    assert!((3..=4).contains(&starts), "{starts}");
}

/// Memory of a process that is in use, in KiB.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Asks for lists for as long as the Gate takes requests, and reads nothing of the answers.
fn ask_and_never_read(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /v1/jobs?limit=100 HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {OWNER_TOKEN}\r\n\r\n"
    );
    stream
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let many = request.repeat(200);
    for _ in 0..1_000 {
        if stream.write_all(many.as_bytes()).is_err() {
            return stream;
        }
    }
    panic!("the Gate takes requests without end although nobody reads its answers");
}

#[test]
fn r20_clients_that_never_read_cost_a_bounded_amount_of_memory() {
    let appliance = Appliance::start(&Setup::default());
    for _ in 0..30 {
        appliance.submit("an answer", &[vec!["true"]]);
    }
    let address = appliance.address();
    let mut deaf = vec![ask_and_never_read(&address)];
    let one = memory(appliance.gate_id());
    for _ in 0..7 {
        deaf.push(ask_and_never_read(&address));
    }
    let eight = memory(appliance.gate_id());
    // An answer or two for each, not all that was asked for.
    assert!(eight < one + 16 * 1024, "{one} KiB became {eight} KiB");
    // The others are served, and nothing grows while the deaf ones wait.
    for _ in 0..5 {
        let (code, out, err) = appliance.forge(&["list"]);
        assert_eq!(code, 0, "{out}{err}");
    }
    std::thread::sleep(Duration::from_secs(2));
    let later = memory(appliance.gate_id());
    assert!(later < eight + 8 * 1024, "{eight} KiB became {later} KiB");
    // They are alive until their time to read is over, and what they asked for is there.
    let mut first = [0; 12];
    deaf[0].read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
}
