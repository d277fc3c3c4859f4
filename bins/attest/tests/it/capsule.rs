//! `attest capsule`, with a stand-in for the container client.

use std::os::unix::fs::PermissionsExt;

use crate::bed::{Bed, ran};

fn image() -> String {
    format!("busybox@sha256:{}", "0".repeat(64))
}

/// A client that runs the command beside itself, or says that its engine is gone.
fn client(bed: &Bed, script: &str) -> String {
    let path = bed.write("tools/docker", format!("#!/bin/sh\n{script}"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", bed.path("tools").display())
}

#[test]
fn a_capsule_is_made_hashed_and_run() {
    let bed = Bed::new();
    let image = image();
    let init = ["capsule", "init", "--image", &image, "--name", "demo"];
    let made = bed.attest(&init).expect(0);
    assert_eq!(
        made.out,
        "capsule 'demo' written to ./.attest/capsules/demo/capsule.yaml\n"
    );
    bed.attest(&init).expect(1).says("already exists");
    let hash = bed.attest(&["capsule", "hash", "demo"]).expect(0).out;
    assert_eq!(hash.trim_end().len(), 64);
    let path = client(
        &bed,
        "[ \"$1\" = run ] || exit 0\nwhile [ $# -gt 0 ]; do case $1 in *@sha256:*) shift; break ;; esac; shift; done\nexec \"$@\"\n",
    );
    let argv = [
        "capsule",
        "run",
        "demo",
        "--",
        "sh",
        "-c",
        "echo in; exit 7",
    ];
    let done = ran(bed.program(&argv).env("PATH", path)).expect(7);
    assert_eq!(done.out, "in\n");
}

#[test]
fn a32_tags_are_a_usage_error_and_other_faults_have_their_codes() {
    let bed = Bed::new();
    bed.attest(&["capsule", "init", "--image", "busybox:1", "--name", "d"])
        .expect(2)
        .says("not pinned by digest");
    assert_eq!(bed.names("."), Vec::<String>::new());
    bed.attest(&["capsule", "hash", "absent"])
        .expect(1)
        .says("capsule 'absent' not found");
    bed.attest(&["capsule", "run", "absent", "--", "true"])
        .expect(2);
    bed.attest(&["capsule", "run", "absent"]).expect(2);
}

#[test]
fn a_client_without_an_engine_is_named() {
    let bed = Bed::new();
    let image = image();
    bed.attest(&["capsule", "init", "--image", &image, "--name", "demo"])
        .expect(0);
    let script = "echo 'Cannot connect to the daemon' >&2\nexit 1\n";
    let tools = client(&bed, script);
    let tools = tools.split(':').next().unwrap();
    let argv = ["capsule", "run", "demo", "--", "true"];
    let done = ran(bed.program(&argv).env("PATH", tools)).expect(2);
    let done = done
        .says("tools/docker")
        .says("Cannot connect to the daemon");
    assert_eq!(done.out, "");
    ran(bed.program(&argv).env("PATH", "/nowhere"))
        .expect(2)
        .says("needs `docker` or `podman`");
}
