//! The git work of one attempt on a repository of 2 000 files, interleaved with
//! `git clone --shared` on the same file system: absolute times of a disk say little.
//!
//! `cargo bench -p git-workspace` prints medians in milliseconds and their ratios, and how long
//! eight attempts at once take. `cargo bench -p git-workspace -- large` takes one attempt that
//! leaves a file of 1 GiB, and one that leaves 200 000 files.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a bench measures real time, starts git for comparison, and may fail loudly"
)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use bounded::{GitSha, Hex32};
use git_workspace::{CandidateRef, Git, GitLimits};

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
    let commit = git.resolve(&repo, "HEAD").await.unwrap();

    let lab = Lab {
        git,
        repo,
        worktrees,
        runtime,
        commit,
    };
    if std::env::args().any(|argument| argument == "large") {
        return lab.large().await;
    }
    let mut times: [Vec<Duration>; 6] = Default::default();
    for round in 0..ROUNDS {
        let clone = root.join(format!("clone-{round}"));
        let to = clone.to_str().unwrap();
        times[0].push(timed(|| {
            raw(&root, &["clone", "--quiet", "--shared", "repo", to]);
        }));
        fs_err::remove_dir_all(&clone).unwrap();
        for (all, one) in times[1..].iter_mut().zip(lab.attempt(round, 0).await) {
            all.push(one);
        }
    }
    let mut at_once = Vec::new();
    for round in 0..ROUNDS / 3 {
        let start = Instant::now();
        let mut attempts = tokio::task::JoinSet::new();
        for number in 1..=8 {
            let lab = lab.clone();
            attempts.spawn(async move { lab.attempt(round, number).await });
        }
        attempts.join_all().await;
        at_once.push(start.elapsed());
    }

    let [clone, cold, lease, untouched, after, whole] = times.map(median);
    println!("{FILES} files, {ROUNDS} rounds, medians");
    println!("git clone --shared                {clone:8.1} ms");
    println!(
        "base check and workspace, cold    {cold:8.1} ms  ({:.2} x clone, bar 1.20)",
        cold / clone
    );
    println!("base check alone (made ahead)     {lease:8.1} ms  (bar 20 with the plugin's start)");
    println!("look whether it is untouched      {untouched:8.1} ms  (beside the base check)");
    println!("snapshot, proof, commit and ref   {after:8.1} ms  (bar 40)");
    println!("one attempt with removal          {whole:8.1} ms");
    let at_once = median(at_once);
    println!(
        "eight attempts at once            {at_once:8.1} ms  ({:.2} x one each)",
        at_once / whole / 8.0
    );
}

#[derive(Clone)]
struct Lab {
    git: Git,
    repo: PathBuf,
    worktrees: PathBuf,
    runtime: PathBuf,
    commit: GitSha,
}

impl Lab {
    /// From the base to the candidate: until the workspace stands, the base check alone, the look
    /// at a workspace that has waited, from the edit to the ref, and the whole.
    async fn attempt(&self, round: u8, number: u8) -> [Duration; 5] {
        let (branch, subject) = ("main".parse().unwrap(), "fix: one file".parse().unwrap());
        let start = Instant::now();
        let base = self.git.check_base(&self.repo, &self.commit, &branch);
        let base = base.await.unwrap();
        let checked = start.elapsed();
        let workspace = self.git.prepare(&base, &self.worktrees, &self.runtime);
        let mut workspace = workspace.await.unwrap();
        let cold = start.elapsed();

        if number == 0 {
            // One that was made ahead has waited longer than a second.
            tokio::time::sleep(Duration::from_millis(1100)).await;
        }
        let looked = Instant::now();
        assert!(workspace.is_as_made().await);
        workspace.settle().await.unwrap();
        let looked = looked.elapsed();

        let file = workspace.path().join("folder-7/file-7");
        fs_err::write(file, format!("edited {round} {number}")).unwrap();
        let edited = Instant::now();
        let snapshot = workspace.snapshot().await.unwrap();
        let (verified, draft) = tokio::join!(
            workspace.verify_unchanged(&snapshot),
            workspace.draft(&snapshot, &subject, None)
        );
        verified.unwrap();
        let attempt = Hex32::from_bytes([round * 16 + number; 16]);
        let name = CandidateRef::new(Hex32::from_bytes([0; 16]), attempt);
        workspace.publish(&draft.unwrap(), &name).await.unwrap();
        let after = edited.elapsed();
        workspace.remove().await.unwrap();
        [cold, checked, looked, after, cold + edited.elapsed()]
    }
}

impl Lab {
    async fn large(&self) {
        let one: fn(&Path) = |folder| {
            let mut file = fs_err::File::create(folder.join("large")).unwrap();
            // Bytes that do not compress, as those of an archive.
            let mut state = 1_u64;
            let mut block = vec![0; 1 << 20];
            for _ in 0..1024 {
                for chunk in block.chunks_mut(8) {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    chunk.copy_from_slice(&state.to_le_bytes());
                }
                std::io::Write::write_all(&mut file, &block).unwrap();
            }
        };
        let many: fn(&Path) = |folder| {
            for number in 0..200_000 {
                let folder = folder.join(format!("made/{}", number % 500));
                fs_err::create_dir_all(&folder).unwrap();
                fs_err::write(folder.join(number.to_string()), number.to_string()).unwrap();
            }
        };
        for (number, what, fill) in [(1, "a file of 1 GiB", one), (2, "200 000 files", many)] {
            let (branch, subject) = ("main".parse().unwrap(), "feat: large".parse().unwrap());
            let base = self.git.check_base(&self.repo, &self.commit, &branch);
            let base = base.await.unwrap();
            let limits = GitLimits {
                timeout: Duration::from_secs(3600),
                ..GitLimits::default()
            };
            let git = self.git.clone().with_limits(limits);
            let workspace = git.prepare(&base, &self.worktrees, &self.runtime);
            let mut workspace = workspace.await.unwrap();
            fill(workspace.path());
            let start = Instant::now();
            let snapshot = workspace.snapshot().await.unwrap();
            let recorded = start.elapsed();
            let (verified, draft) = tokio::join!(
                workspace.verify_unchanged(&snapshot),
                workspace.draft(&snapshot, &subject, None)
            );
            verified.unwrap();
            let name =
                CandidateRef::new(Hex32::from_bytes([1; 16]), Hex32::from_bytes([number; 16]));
            workspace.publish(&draft.unwrap(), &name).await.unwrap();
            println!(
                "{what}: snapshot {:.1} s, with proof, commit and ref {:.1} s",
                recorded.as_secs_f64(),
                start.elapsed().as_secs_f64()
            );
            workspace.remove().await.unwrap();
        }
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
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
