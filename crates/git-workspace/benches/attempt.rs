//! The git work of one attempt on a repository of 2 000 files, interleaved with
//! `git clone --shared` on the same file system: absolute times of a disk say little.
//!
//! `cargo bench -p git-workspace` prints medians in milliseconds and their ratios.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a bench measures real time, starts git for comparison, and may fail loudly"
)]

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use bounded::Hex32;
use git_workspace::{CandidateRef, Git};

const FILES: usize = 2_000;
const ROUNDS: u8 = 15;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs_err::canonicalize(dir.path()).unwrap();
    let repo = root.join("repo");
    for folder in ["repo", "worktrees", "runtime"] {
        fs_err::create_dir(root.join(folder)).unwrap();
    }
    fill(&repo);
    let (worktrees, runtime) = (root.join("worktrees"), root.join("runtime"));
    let git = Git::find(&std::env::var_os("PATH").unwrap()).unwrap();
    let (branch, subject) = ("main".parse().unwrap(), "fix: one file".parse().unwrap());
    let commit = git.resolve(&repo, "HEAD").await.unwrap();

    let mut times: [Vec<Duration>; 5] = Default::default();
    for round in 0..ROUNDS {
        let clone = root.join(format!("clone-{round}"));
        times[0].push(timed(|| {
            raw(
                &root,
                &[
                    "clone",
                    "--quiet",
                    "--shared",
                    "repo",
                    clone.to_str().unwrap(),
                ],
            )
        }));
        fs_err::remove_dir_all(&clone).unwrap();

        let start = Instant::now();
        let base = git.check_base(&repo, &commit, &branch).await.unwrap();
        times[2].push(start.elapsed());
        let mut workspace = git.prepare(&base, &worktrees, &runtime).await.unwrap();
        times[1].push(start.elapsed());

        fs_err::write(
            workspace.path().join("folder-7/file-7"),
            format!("edited {round}"),
        )
        .unwrap();
        let name = CandidateRef::new(Hex32::from_bytes([0; 16]), Hex32::from_bytes([round; 16]));
        let start = Instant::now();
        let snapshot = workspace.snapshot().await.unwrap();
        workspace
            .commit(&snapshot, &subject, None, &name)
            .await
            .unwrap();
        times[3].push(start.elapsed());
        let start = Instant::now();
        workspace.verify_unchanged(&snapshot).await.unwrap();
        times[4].push(start.elapsed());
        workspace.remove().await.unwrap();
    }

    let medians = times.map(|mut times| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    });
    let [clone, cold, lease, after, verify] = medians;
    println!("{FILES} files, {ROUNDS} rounds, medians");
    println!("git clone --shared                {clone:8.1} ms");
    println!(
        "base check and workspace, cold    {cold:8.1} ms  ({:.2} x clone, bar 1.20)",
        cold / clone
    );
    println!("base check alone (made ahead)     {lease:8.1} ms  (bar 20 with the plugin's start)");
    println!("snapshot, commit and ref          {after:8.1} ms  (bar 40)");
    println!("verification after checks         {verify:8.1} ms");
}

fn fill(repo: &Path) {
    for number in 0..FILES {
        let folder = repo.join(format!("folder-{}", number % 50));
        fs_err::create_dir_all(&folder).unwrap();
        let text = format!("line of file {number}\n").repeat(40);
        fs_err::write(folder.join(format!("file-{number}")), text).unwrap();
    }
    raw(repo, &["init", "--quiet", "--initial-branch=main", "."]);
    raw(repo, &["add", "--all"]);
    raw(repo, &["commit", "--quiet", "-m", "base"]);
    raw(repo, &["gc", "--quiet"]);
}

fn raw(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args([
            "-c",
            "user.name=Bench",
            "-c",
            "user.email=bench@example.invalid",
        ])
        .args(arguments)
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(status.success());
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
