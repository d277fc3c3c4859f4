//! A thousand runs leave no zombie, no descriptor and no thread behind.

use crate::support::Run;

#[derive(Debug, PartialEq, Eq)]
struct Held {
    children: usize,
    descriptors: usize,
    threads: usize,
}

fn held() -> Held {
    let own = std::process::id().to_string();
    let children = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let fields = stat.rsplit(')').next().unwrap();
            fields.split_whitespace().nth(1) == Some(own.as_str())
        })
        .count();
    Held {
        children,
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        threads: std::fs::read_dir("/proc/self/task").unwrap().count(),
    }
}

#[tokio::test]
async fn r39_a_thousand_runs_leave_nothing_behind() {
    let ok = || Run::script("init text read result ok");
    assert_eq!(ok().output().await, "ok");
    let before = held();
    for round in 0..1_000 {
        match round % 10 {
            // Killed for its output, so without a window to wait for.
            0 => drop(
                Run::script("stderr 2000 sleep 60000")
                    .output_bytes(1_000)
                    .broken()
                    .await,
            ),
            1 => drop(Run::script("init text read exit 3").broken().await),
            _ => assert_eq!(ok().output().await, "ok"),
        }
    }
    assert_eq!(held(), before);
}
