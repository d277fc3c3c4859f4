//! A package that attest packed and signed for travels through a registry with its receipt.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::PROGRAM;

struct Registry(Child);

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn program(folder: &Path, role: &str, line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .arg(role)
        .args(line.split(' '))
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .stdin(Stdio::null());
    command
}

fn run(command: &mut Command, code: i32) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{output:?}");
    output
}

/// Starts a registry and tells its URL.
fn serve(folder: &Path) -> (Registry, String) {
    let line = "serve --root registry --listen 127.0.0.1:0 --log-format json";
    let mut child = program(folder, "__backplane", line)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let registry = Registry(child);
    let address = log
        .by_ref()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
        .find(|event| event["event"] == "listening")
        .and_then(|event| event["address"].as_str().map(str::to_owned))
        .unwrap();
    // The log is read to its end, whether or not anybody listens.
    std::thread::spawn(move || log.map_while(Result::ok).for_each(drop));
    (registry, format!("http://{address}"))
}

#[test]
fn a_signed_receipt_of_an_archive_is_published_beside_it_and_verifies_where_it_is_downloaded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let attest = |line: &str, code| run(&mut program(folder, "__attest", line), code);
    run(&mut program(folder, "__backplane", "init notes"), 0);
    std::fs::write(
        folder.join("attest.yaml"),
        format!(
            "version: '1'
name: notes
steps:
  pack:
    run: \"'{PROGRAM}' __backplane pack notes -o notes.tar.gz\"
    inputs: [notes]
    outputs: [notes.tar.gz]
"
        ),
    )
    .unwrap();
    attest("keys generate --name packer", 0);
    attest("run --sign -p attest.yaml --receipt notes.receipt.yaml", 0);

    let (_registry, url) = serve(folder);
    let backplane = |line: &str, code| {
        let mut command = program(folder, "__backplane", line);
        command
            .env("BACKPLANE_URL", &url)
            .env("BACKPLANE_TOKEN_FILE", "registry/admin.token");
        run(&mut command, code)
    };
    // The receipt of another archive is refused, and nothing is released with it.
    run(&mut program(folder, "__backplane", "init other"), 0);
    let refused = "publish ./other --channel stable --receipt notes.receipt.yaml";
    let refused = backplane(refused, 1);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("receipt_mismatch"), "{words}");
    backplane("resolve other", 1);

    let publish = "publish ./notes.tar.gz --channel stable --receipt notes.receipt.yaml";
    backplane(publish, 0);
    let release = backplane("resolve notes --format json", 0);
    let release: Value = serde_json::from_slice(&release.stdout).unwrap();
    assert_eq!(release["receipt"], true, "{release}");
    backplane("download notes -o got.tar.gz --receipt got.yaml", 0);
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!(read("got.tar.gz"), read("notes.tar.gz"));
    assert_eq!(read("got.yaml"), read("notes.receipt.yaml"));
    let verified = attest("verify --format json got.yaml", 0);
    assert!(String::from_utf8_lossy(&verified.stdout).contains("\"pass\""));
}
