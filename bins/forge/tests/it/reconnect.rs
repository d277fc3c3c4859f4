//! R18: two hundred slots of real Workers lose their Gate in one instant and come back.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::appliance::{Appliance, FORGE, Setup, wait_until};
use crate::relay::Relay;

const WORKERS: usize = 4;
const SLOTS: usize = 50;
/// A connection that was open this long has proved itself to its Worker.
const PROVED: Duration = Duration::from_millis(5_500);

/// The Workers, ended with the test.
struct Crew(Vec<Child>);

impl Drop for Crew {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn write(path: &Path, value: &Value) {
    fs::write(path, value.to_string()).unwrap();
}

/// Gives the Gate four Workers, and starts them with the relay as their Gate.
fn crew(appliance: &mut Appliance, relay: &Relay) -> Crew {
    let mut gate = read(&appliance.path("gate.json"));
    let model = read(&appliance.path("worker.json"));
    let token = model["token_file"].as_str().unwrap();
    let token = fs::read_to_string(token).unwrap();
    let mut entries = Vec::new();
    let mut started = Vec::new();
    for number in 0..WORKERS {
        let id = format!("many-{number}");
        let folder = appliance.path(&id);
        for name in ["trees", "runtime"] {
            fs::create_dir_all(folder.join(name)).unwrap();
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            fs::set_permissions(folder.join(name), private).unwrap();
        }
        let secret = folder.join("token");
        fs::write(&secret, format!("{}-{id}", token.trim())).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&secret, private).unwrap();
        entries
            .push(json!({"id": id, "pool": "coding", "token_file": secret, "concurrency": SLOTS}));
        let mut worker = model.clone();
        worker["id"] = json!(id);
        worker["gate_url"] = json!(format!("ws://{}", relay.address()));
        worker["token_file"] = json!(secret);
        worker["concurrency"] = json!(SLOTS);
        worker["worktree_root"] = json!(folder.join("trees"));
        worker["runtime_root"] = json!(folder.join("runtime"));
        let config = folder.join("worker.json");
        write(&config, &worker);
        started.push((config, folder.join("log")));
    }
    gate["workers"] = json!(entries);
    write(&appliance.path("gate.json"), &gate);
    appliance.kill_gate();
    appliance.start_gate();
    let start = |(config, log): &(std::path::PathBuf, std::path::PathBuf)| {
        Command::new(FORGE)
            .arg("__worker")
            .arg("--config")
            .arg(config)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(
                fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(log)
                    .unwrap(),
            )
            .spawn()
            .unwrap()
    };
    Crew(started.iter().map(start).collect())
}

/// How many slots the Gate has.
fn connected(appliance: &Appliance) -> usize {
    let (_, out, _) = appliance.forge(&["workers", "--format", "json"]);
    out.matches("\"connected\":true").count()
}

fn logs(appliance: &Appliance) -> String {
    (0..WORKERS)
        .map(|number| fs::read_to_string(appliance.path(&format!("many-{number}/log"))).unwrap())
        .collect()
}

/// The fullest 100 ms against the mean of all, over a second at least: a crowd that comes at once
/// has ten times its mean.
fn peak_over_mean(mut times: Vec<Instant>) -> f64 {
    times.sort();
    let first = times[0];
    let mut buckets = vec![0_u32; 10];
    for time in &times {
        let index = usize::try_from((*time - first).as_millis() / 100).unwrap();
        if index >= buckets.len() {
            buckets.resize(index + 1, 0);
        }
        buckets[index] += 1;
    }
    let mean = times.len() as f64 / buckets.len() as f64;
    f64::from(*buckets.iter().max().unwrap()) / mean
}

#[test]
fn r18_200_slots_reconnect_without_a_storm() {
    let mut appliance = Appliance::start(&Setup::default());
    let relay = Relay::to(&appliance.address());
    let crew = crew(&mut appliance, &relay);
    let all = WORKERS * SLOTS;
    wait_until("every slot is connected", || connected(&appliance) == all);
    let mut ratios = Vec::new();
    // A machine that stands still for a moment makes a peak of its own, so there are three tries.
    for away in [300, 1_500, 3_000] {
        std::thread::sleep(PROVED);
        appliance.kill_gate();
        drop(relay.accepted());
        std::thread::sleep(Duration::from_millis(away));
        appliance.start_gate();
        wait_until("every slot has come back", || relay.count() >= all);
        wait_until("every slot is connected again", || {
            connected(&appliance) == all
        });
        ratios.push(peak_over_mean(relay.accepted()));
        if ratios.iter().any(|ratio| *ratio < 3.0) {
            break;
        }
    }
    let said = logs(&appliance);
    drop(crew);
    assert!(ratios.iter().any(|ratio| *ratio < 3.0), "{ratios:?}");
    assert!(
        !said.contains("no connection within"),
        "a handshake took too long"
    );
    println!("peak over mean: {ratios:?}");
}

#[test]
fn a_crowd_that_comes_at_once_is_a_storm() {
    let now = Instant::now();
    assert!(peak_over_mean(vec![now; 200]) > 9.0);
    let spread = (0..200)
        .map(|n| now + Duration::from_millis(n * 10))
        .collect();
    assert!(peak_over_mean(spread) < 1.1);
}
