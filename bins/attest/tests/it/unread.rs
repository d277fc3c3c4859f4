//! Readers that do not read, or no longer; commands that turn on what watches over them; and what
//! is left of a program that was killed.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use test_case::test_case;

use crate::bed::{Bed, ran};

/// Far longer than anything here takes.
const PATIENCE: u32 = 6000;

/// Waits until something is there.
#[track_caller]
fn until<T>(what: &str, mut so: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE {
        if let Some(value) = so() {
            return value;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

#[track_caller]
fn end(child: &mut Child) -> ExitStatus {
    until("its end", || child.try_wait().unwrap())
}

/// The number of a process that a command wrote to a file.
#[track_caller]
fn number(file: &Path) -> Pid {
    until("a number", || {
        let text = std::fs::read_to_string(file).ok()?;
        text.strip_suffix('\n')?.parse().ok().map(Pid::from_raw)
    })
}

#[track_caller]
fn goes(process: Pid) {
    until("gone", || kill(process, None).err());
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

/// A bed with a pipeline of one step.
fn pipeline(step: &str) -> Bed {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write(
        "attest.yaml",
        format!("version: '1'\nsteps:\n  one:\n{step}"),
    );
    bed
}

fn piped(command: &mut Command) -> (Child, ChildStdout, ChildStderr) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    (child, out, err)
}

/// A pipe that nobody will ever read.
fn closed() -> OwnedFd {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A receipt that has its name.
fn written(bed: &Bed) -> Option<String> {
    let names = bed.names(".attest/receipts");
    names.into_iter().find(|name| name.ends_with(".yaml"))
}

fn receipt(bed: &Bed) -> String {
    let names = bed.names(".attest/receipts");
    assert_eq!(names.len(), 1, "{names:?}");
    bed.read(&format!(".attest/receipts/{}", names[0]))
}

#[test]
fn time_is_up_also_while_nobody_reads() {
    let bed = pipeline("    run: yes | head -c 3000000; sleep 600\n    timeout_secs: 1\n");
    let (mut child, _out, mut err) = piped(&mut bed.program(&["run"]));
    until("a receipt", || written(&bed));
    assert!(receipt(&bed).contains("exit_code: 124"));
    // The last words are there for whoever comes late.
    let mut said = String::new();
    err.read_to_string(&mut said).unwrap();
    assert!(
        said.contains("step 'one' failed with exit code 124"),
        "{said}"
    );
    assert_eq!(end(&mut child).code(), Some(1));
}

#[test_case(Signal::SIGINT; "interrupt")]
#[test_case(Signal::SIGTERM; "terminate")]
#[test_case(Signal::SIGQUIT; "quit")]
fn an_interrupt_is_heard_while_nobody_reads(asked: Signal) {
    let bed = pipeline("    run: echo $$ > pid; exec yes\n");
    let (mut child, _out, _err) = piped(&mut bed.program(&["run"]));
    let step = number(&bed.path("pid"));
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, asked);
    assert_eq!(end(&mut child).code(), Some(2));
    goes(step);
    assert_eq!(bed.names(".attest/receipts"), Vec::<String>::new());
}

#[test]
fn a_wrapped_command_that_nobody_reads_can_be_interrupted() {
    let bed = Bed::new();
    let argv = [
        "run",
        "--wrap",
        "--name",
        "one",
        "--",
        "sh",
        "-c",
        "echo $$ > pid; exec yes",
    ];
    let (mut child, _out, _err) = piped(&mut bed.program(&argv));
    let command = number(&bed.path("pid"));
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::SIGINT);
    assert_eq!(end(&mut child).code(), Some(130));
    goes(command);
}

#[test]
fn an_interrupt_ends_the_wait_for_a_reader_when_all_else_is_done() {
    let bed = pipeline("    run: yes | head -c 200000\n");
    let (mut child, _out, _err) = piped(&mut bed.program(&["run"]));
    until("a receipt", || written(&bed));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, Signal::SIGTERM);
    assert_eq!(end(&mut child).code(), Some(2));
}

#[test]
fn a_slow_reader_gets_everything_and_so_does_the_receipt() {
    let bed = pipeline("    run: seq 1 300000\n");
    let argv = ["run", "--record-output", "full"];
    let (mut child, _out, mut err) = piped(&mut bed.program(&argv));
    std::thread::sleep(Duration::from_millis(800));
    let mut said = String::new();
    err.read_to_string(&mut said).unwrap();
    assert_eq!(end(&mut child).code(), Some(0));
    let shown: Vec<_> = said
        .lines()
        .filter_map(|line| line.strip_prefix("[one] "))
        .collect();
    let all: Vec<_> = (1..=300_000).map(|number| number.to_string()).collect();
    assert!(shown == all, "{} lines", shown.len());
    let recorded = receipt(&bed);
    let recorded = recorded
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()));
    assert_eq!(recorded.count(), 300_000);
}

#[test]
fn a_slow_reader_of_a_wrapped_command_gets_both_streams_unchanged() {
    let bed = Bed::new();
    let script = "seq 1 200000; seq 1 100000 >&2";
    let argv = [
        "-q", "run", "--wrap", "--name", "one", "--", "sh", "-c", script,
    ];
    let (mut child, mut out, mut err) = piped(&mut bed.program(&argv));
    std::thread::sleep(Duration::from_millis(500));
    let all = |last: u32| (1..=last).map(|n| format!("{n}\n")).collect::<String>();
    let (text, said) = std::thread::scope(|scope| {
        let read = scope.spawn(|| std::io::read_to_string(&mut err).unwrap());
        let text = std::io::read_to_string(&mut out).unwrap();
        (text, read.join().unwrap())
    });
    assert_eq!(end(&mut child).code(), Some(0));
    assert!(text == all(200_000), "{}", text.len());
    // The warning that nothing is declared comes before all of it.
    let (warned, said) = said.split_once('\n').unwrap();
    assert!(
        warned.starts_with("warning: no inputs declared"),
        "{warned}"
    );
    assert!(said == all(100_000), "{}", said.len());
}

#[test_case("exec yes", true; "standard output")]
#[test_case("exec yes >&2", false; "standard error")]
fn a_reader_that_went_away_ends_a_wrapped_command_as_it_would_without(script: &str, out: bool) {
    let bed = Bed::new();
    let argv = ["run", "--wrap", "--name", "one", "--", "sh", "-c", script];
    let mut command = bed.program(&argv);
    if out {
        command.stdout(closed()).stderr(Stdio::null());
    } else {
        command.stderr(closed()).stdout(Stdio::null());
    }
    let mut child = command.spawn().unwrap();
    assert_eq!(end(&mut child).code(), Some(141));
    assert!(receipt(&bed).contains("exit_code: 141"));
}

#[test]
fn a_run_goes_on_where_nobody_sees_it() {
    let bed = pipeline("    run: seq 1 300000; echo done > out\n    outputs: [out]\n");
    let mut command = bed.program(&["run"]);
    let mut child = command
        .stderr(closed())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(end(&mut child).code(), Some(0));
    assert_eq!(bed.read("out"), "done\n");
}

#[test]
fn a_command_that_kills_its_watcher_has_no_known_end_and_leaves_nothing() {
    let bed = Bed::new();
    let script = "(setsid sh -c 'echo $$ > daemon; exec sleep 600' >/dev/null 2>&1 &)
        while [ ! -s daemon ]; do sleep 0.01; done
        sleep 0.1; kill -9 $PPID; exec sleep 600";
    let argv = ["run", "--wrap", "--name", "one", "--", "sh", "-c", script];
    bed.attest(&argv)
        .expect(2)
        .says("so the program's end is unknown; all that it had started was ended");
    let daemon = number(&bed.path("daemon"));
    assert!(kill(daemon, None).is_err(), "the daemon lives");
    assert_eq!(bed.names(".attest/receipts"), Vec::<String>::new());
}

#[test]
fn a_command_that_kills_its_watcher_at_once_was_started_all_the_same() {
    for _ in 0..10 {
        let bed = Bed::new();
        let script = "kill -9 $PPID; touch ran";
        let argv = ["run", "--wrap", "--name", "one", "--", "sh", "-c", script];
        let ran = bed.attest(&argv).expect(2).says("end is unknown");
        assert!(!ran.err.contains("main function"), "{}", ran.err);
    }
}

#[test]
fn the_copies_of_a_killed_check_go_with_the_next_one() {
    let bed = pipeline(
        "    run: |\n      echo $$ > \"$TMPDIR/pid\"\n      exec sleep 600\n    env: {TMPDIR: PLACE}\n",
    );
    let place = tempfile::tempdir().unwrap();
    let told = place.path().join("told");
    std::fs::create_dir(&told).unwrap();
    let temporary = place.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let yaml = bed
        .read("attest.yaml")
        .replace("PLACE", told.to_str().unwrap());
    bed.write("attest.yaml", yaml);
    let check = || {
        let mut command = bed.program(&["run", "--check-reproducibility"]);
        command.env("TMPDIR", &temporary);
        command
    };
    let left = || std::fs::read_dir(&temporary).unwrap().count();
    for (asked, stay) in [(Signal::SIGUSR1, 1), (Signal::SIGQUIT, 0)] {
        let (mut child, _out, _err) = piped(&mut check());
        let step = number(&told.join("pid"));
        signal(&child, asked);
        end(&mut child);
        goes(step);
        std::fs::remove_file(told.join("pid")).unwrap();
        assert_eq!(left(), stay, "{asked}");
    }
}

#[test]
fn what_a_killed_run_was_writing_goes_with_the_next_one() {
    let bed = pipeline("    run: 'true'\n");
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    bed.attest(&["run"]).expect(0);
    let (dead, own) = (dead.id(), std::process::id());
    let part = |folder: &str, pid: u32| format!(".attest/{folder}/x.json.{pid}-0.new");
    let folders = ["receipts", "cache", "causal_ledger", "causal_ledger/events"];
    for folder in folders {
        bed.write(&part(folder, dead), "part");
        bed.write(&part(folder, own), "part");
    }
    ran(&mut bed.program(&["run"])).expect(0);
    for folder in folders {
        assert!(!bed.path(&part(folder, dead)).exists(), "{folder}");
        assert!(bed.path(&part(folder, own)).exists(), "{folder}");
    }
}
