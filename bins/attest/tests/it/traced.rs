//! G1: `attest verify` under a trace of its system calls. It starts nothing, opens no socket and
//! changes no file, and it looks at nothing that a receipt names.
//!
//! `cargo xtask ci` installs strace where it is missing; without it these tests fail and say so.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::bed::{Bed, Ran, ran, snapshot, stamped};

/// Calls on paths that change nothing; whether one of them opens for writing is looked at apart.
const LOOKING: &[&str] = &[
    "access",
    "faccessat",
    "faccessat2",
    "getcwd",
    "getdents",
    "getdents64",
    "lstat",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "readlink",
    "readlinkat",
    "stat",
    "statfs",
    "statx",
];

/// Runs the program under strace and returns the trace beside what it did.
pub(crate) fn traced(bed: &Bed, args: &[&str]) -> (Ran, Vec<String>) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let program = bed.program(args);
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-v", "-s", "256", "-e", "signal=none", "-o"])
        .arg(log.path())
        .args(["-e", "trace=%process,%network,%file,%desc"])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(bed.folder())
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in program.get_envs() {
        strace.env(name, value.unwrap());
    }
    let there = Command::new("strace")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    assert!(
        there.is_ok_and(|status| status.success()),
        "strace is missing; `cargo xtask ci` installs it (package strace)"
    );
    let ran = ran(&mut strace);
    let trace = std::fs::read_to_string(log.path()).unwrap();
    (ran, trace.lines().map(call).collect())
}

/// A line of the trace without the process id in front.
fn call(line: &str) -> String {
    line.trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start()
        .to_owned()
}

/// The calls of a trace that a verification must not make.
pub(crate) fn forbidden(trace: &[String]) -> Vec<&String> {
    let mut started = false;
    let is_forbidden = |line: &&String| {
        // The second half of a call that another thread interrupted, or the end of a thread.
        if line.starts_with("<... ") || line.starts_with("+++ exited") {
            return false;
        }
        let Some((name, rest)) = line.split_once('(') else {
            return true;
        };
        match name {
            // The first is strace's own start of the program.
            "execve" => std::mem::replace(&mut started, true),
            // Threads hash where `--recompute` asks for it; a process is another thing.
            "clone" | "clone3" => !rest.contains("CLONE_THREAD"),
            "exit" | "exit_group" | "wait4" | "waitid" | "kill" => name == "kill",
            "write" | "writev" => !rest.starts_with("1,") && !rest.starts_with("2,"),
            "open" | "openat" | "openat2" => {
                ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"]
                    .iter()
                    .any(|flag| rest.contains(flag))
            }
            "mmap" => rest.contains("MAP_SHARED") && rest.contains("PROT_WRITE"),
            _ => !LOOKING.contains(&name) && !is_reading(name),
        }
    };
    trace.iter().filter(is_forbidden).collect()
}

/// Calls on descriptors that change no file.
fn is_reading(name: &str) -> bool {
    matches!(
        name,
        "close"
            | "close_range"
            | "dup"
            | "fadvise64"
            | "fcntl"
            | "fstat"
            | "fstatfs"
            | "ioctl"
            | "lseek"
            | "poll"
            | "ppoll"
            | "pread64"
            | "read"
            | "readv"
            | "_llseek"
    )
}

/// A signed receipt with a record of a plugin, whose annotation names a file.
fn plugin_receipt(bed: &Bed) {
    let record = "plugins:\n- name: policy\n  version: 1.0.0\n  protocol: 1\n  digest: blake3:00000000\
        00000000000000000000000000000000000000000000000000000000\n  decision: allow\n  deterministic: true\n  \
        annotation:\n    resource: bait.txt\n";
    bed.write("with.yaml", bed.read("r3_unsigned.yaml") + record);
    bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
    bed.attest(&["sign", "with.yaml"]).expect(0);
}

/// Declares the plugin, and lays programs where a search of `PATH` would find them.
fn bait(bed: &Bed) -> Vec<String> {
    bed.write("bait.txt", "bait");
    let mut names = Vec::new();
    for name in ["attest-policy", "attest-verify", "policy", "git"] {
        let path = bed.write(&format!("bin/{name}"), "#!/bin/sh\ntouch \"$0.ran\"\n");
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        names.push(format!("{name}.ran"));
    }
    bed.write(
        ".attest/plugins.toml",
        "schema_version = 1\n[[plugin]]\nname = \"policy\"\ncommand = \"attest-policy\"\nprotocol = \"1\"\n\
         digest = \"blake3:0000000000000000000000000000000000000000000000000000000000000000\"\n\
         hooks = [\"receipt.finalize\"]\ndeterministic = true\n",
    );
    names
}

/// Traces one verification, which ends with the code and makes no forbidden call.
fn judged_in_silence(bed: &Bed, code: i32, args: &[&str]) {
    let (ran, trace) = traced(bed, args);
    ran.expect(code);
    let opened = |name: &str| trace.iter().any(|line| line.contains(name));
    let receipt = args[args.len() - 1];
    assert!(opened(receipt), "the trace saw nothing: {trace:#?}");
    for file in args.iter().filter(|name| name.ends_with(".toml")) {
        assert!(opened(file), "{file} in {trace:#?}");
    }
    assert_eq!(forbidden(&trace), Vec::<&String>::new(), "{args:?}");
    for unseen in ["plugins.toml", "bait.txt", "/bin/git", "attest-policy"] {
        assert!(!opened(unseen), "{unseen} in {trace:#?}");
    }
}

#[test]
fn g1_verify_executes_nothing_opens_no_socket_and_writes_nothing() {
    let bed = Bed::with_vectors();
    plugin_receipt(&bed);
    bed.copy_in("stamped", &stamped());
    let changed = bed.read("with.yaml");
    bed.write(
        "changed.yaml",
        changed.replace("exit_code: 0", "exit_code: 1"),
    );
    bed.write("broken.yaml", changed.replace("steps:", "steps: &x"));
    bed.write(
        "policy.toml",
        "version = 1\nrequire = [\"plugin:policy\", \"success\"]\n",
    );
    bed.write("strict.toml", "version = 1\nrequire = [\"timestamp\"]\n");
    bait(&bed);
    let before = snapshot(bed.folder());
    let policy = |file| ["verify", "--policy", file, "with.yaml"];
    for (code, args) in [
        (1, &["verify", "changed.yaml"][..]),
        (2, &["verify", "broken.yaml"]),
        (0, &policy("policy.toml")),
        (1, &policy("strict.toml")),
        (1, &["verify", "--trust-store", "trust", "with.yaml"]),
    ] {
        judged_in_silence(&bed, code, args);
    }
    for args in [
        &["verify", "with.yaml"][..],
        &[
            "verify",
            "--require",
            "plugins",
            "--format",
            "json",
            "with.yaml",
        ],
        &[
            "verify",
            "--trust-store",
            "trust",
            "r1_pipeline_signed.yaml",
        ],
        &[
            "verify",
            "--require",
            "timestamp",
            "--trust-store",
            "stamped/trust",
            "stamped/receipt.yaml",
        ],
    ] {
        judged_in_silence(&bed, 0, args);
    }
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn g1_recomputing_reads_the_workspace_and_runs_nothing_of_it() {
    let bed = Bed::with_vectors();
    std::fs::create_dir(bed.path("workspace/out")).unwrap();
    let parts = ["a", "b"].map(|name| bed.read(&format!("workspace/src/{name}.txt")));
    bed.write("workspace/out/ab.txt", parts.concat());
    bait(&bed);
    let before = snapshot(bed.folder());
    let args = [
        "verify",
        "--trust-store",
        "trust",
        "--recompute",
        "--workspace",
        "workspace",
    ];
    let args = [&args[..], &["r1_pipeline_signed.yaml"]].concat();
    let (ran, trace) = traced(&bed, &args);
    let ran = ran.expect(0);
    assert!(ran.out.contains("recompute    pass"), "{}", ran.out);
    assert!(
        trace.iter().any(|line| line.contains("ab.txt")),
        "{trace:#?}"
    );
    assert_eq!(forbidden(&trace), Vec::<&String>::new());
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn g1_a_receipt_with_plugins_verifies_the_same_without_any() {
    let with = Bed::with_vectors();
    plugin_receipt(&with);
    let marks = bait(&with);
    let mut program = with.program(&["verify", "with.yaml"]);
    let found = format!("{}:/usr/bin:/bin", with.path("bin").display());
    let here = ran(program.env("PATH", found)).expect(0);
    for mark in marks {
        assert!(!with.path(&format!("bin/{mark}")).exists(), "{mark}");
    }
    // Elsewhere there are the receipt and the public key, and no plugin.
    let without = Bed::new();
    without.write("with.yaml", with.read("with.yaml"));
    for name in with.names(".attest/trust") {
        let name = format!(".attest/trust/{name}");
        without.write(&name, with.read(&name));
    }
    let there = without.attest(&["verify", "with.yaml"]).expect(0);
    assert_eq!(here.out, there.out);
    assert_eq!(here.err, there.err);
    assert!(
        here.out.contains("  plugin: policy 1.0.0 allow\n"),
        "{}",
        here.out
    );
}

#[test]
fn g1_nothing_that_is_added_turns_a_failure_into_a_pass() {
    let bed = Bed::with_vectors();
    plugin_receipt(&bed);
    let changed = bed
        .read("with.yaml")
        .replace("exit_code: 0", "exit_code: 1");
    bed.write("changed.yaml", changed);
    bed.write(
        "policy.toml",
        "version = 1\nrequire = [\"plugin:policy\"]\n",
    );
    bed.attest(&["verify", "--policy", "policy.toml", "with.yaml"])
        .expect(0);
    for more in [
        &["--policy", "policy.toml"][..],
        &["--require", "plugins"],
        &["--require", "plugin:policy"],
        &["--trust-receipt-timestamp"],
    ] {
        let args = [&["verify"], more, &["changed.yaml"]].concat();
        let ran = bed.attest(&args).expect(1);
        assert!(ran.out.starts_with("changed.yaml: fail\n"), "{}", ran.out);
    }
}

#[test]
fn the_trace_would_see_what_is_forbidden() {
    let lines = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| call(line)).collect() };
    let fine = lines(&[
        "12 execve(\"/x/attest\", [\"attest\"], [] /* 0 vars */) = 0",
        "12 openat(AT_FDCWD, \"r.yaml\", O_RDONLY|O_CLOEXEC) = 3",
        "12 write(1, \"r.yaml: pass\", 12) = 12",
        "12 exit_group(0) = ?",
        "12 +++ exited with 0 +++",
    ]);
    assert_eq!(forbidden(&fine), Vec::<&String>::new());
    for bad in [
        "12 execve(\"/bin/sh\", [\"sh\"], [] /* 0 vars */) = 0",
        "12 socket(AF_INET, SOCK_STREAM, 0) = 3",
        "12 clone3({flags=CLONE_VM|CLONE_VFORK}, 88) = 13",
        "12 clone(child_stack=NULL, flags=SIGCHLD) = 13",
        "12 vfork() = 13",
        "12 openat(AT_FDCWD, \"x\", O_WRONLY|O_CREAT, 0666) = 3",
        "12 write(3, \"x\", 1) = 1",
        "12 unlink(\"x\") = 0",
        "12 rename(\"a\", \"b\") = 0",
        "12 mkdir(\"a\", 0777) = 0",
        "12 fsync(3) = 0",
        "12 +++ killed by SIGSYS +++",
    ] {
        let mut trace = fine.clone();
        trace.insert(1, call(bad));
        assert_eq!(forbidden(&trace).len(), 1, "{bad}");
    }
}

#[test]
fn g1_what_travels_is_judged_without_a_process_a_socket_or_a_file() {
    let bed = Bed::with_vectors();
    bait(&bed);
    let before = snapshot(bed.folder());
    for (file, args) in [
        ("passed_signed.attest.tar.zst", &["verify", "--archive"][..]),
        (
            "passed_signed.intoto.json",
            &["import", "--format", "in-toto"],
        ),
    ] {
        let path = format!("v0.4.0/{file}");
        let args = [args, &[&path, "--trust-store", "v0.4.0/trust"]].concat();
        let (ran, trace) = traced(&bed, &args);
        ran.expect(0);
        assert!(trace.iter().any(|line| line.contains(file)), "{trace:#?}");
        assert_eq!(forbidden(&trace), Vec::<&String>::new());
    }
    assert_eq!(snapshot(bed.folder()), before);
}
