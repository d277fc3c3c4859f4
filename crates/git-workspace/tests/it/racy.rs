//! Edits that keep size and time stamps, in the tick in which git looked last.

use crate::support::Lab;

#[tokio::test]
async fn an_edit_of_the_same_size_right_after_the_checkout_is_seen() {
    let lab = Lab::new();
    let base = lab.base().await;
    for round in 0..200 {
        let mut workspace = lab
            .git
            .prepare(&base, &lab.worktrees, &lab.runtime)
            .await
            .unwrap();
        fs_err::write(workspace.path().join("README"), "READ ME\n").unwrap();
        assert!(
            workspace.snapshot().await.unwrap().changed(),
            "round {round}"
        );
        workspace.remove().await.unwrap();
    }
}

#[tokio::test]
async fn an_edit_of_the_same_size_right_after_a_snapshot_is_seen() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let file = workspace.path().join("src/lib.txt");
    let mut last = *workspace.base().tree();
    for round in 0..200 {
        fs_err::write(&file, format!("round{round:03}")).unwrap();
        let snapshot = workspace.snapshot().await.unwrap();
        assert_ne!(*snapshot.tree(), last, "round {round}");
        last = *snapshot.tree();
        fs_err::write(&file, format!("check{round:03}")).unwrap();
        workspace.verify_unchanged(&snapshot).await.unwrap_err();
    }
}

#[tokio::test]
async fn an_edit_that_puts_the_time_back_is_seen() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let path = workspace.path().join("README");
    for round in 0..50 {
        let times = std::fs::FileTimes::new()
            .set_modified(fs_err::metadata(&path).unwrap().modified().unwrap());
        let before = workspace.snapshot().await.unwrap();
        fs_err::write(&path, format!("time{round:04}")).unwrap();
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        file.into_file().set_times(times).unwrap();
        let after = workspace.snapshot().await.unwrap();
        assert_ne!(before.tree(), after.tree(), "round {round}");
    }
}

#[tokio::test]
async fn a_check_that_puts_the_time_back_is_seen() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let path = workspace.path().join("README");
    let long_ago = std::fs::FileTimes::new()
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000));
    let write_long_ago = |text: String| {
        fs_err::write(&path, text).unwrap();
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        file.into_file().set_times(long_ago).unwrap();
    };
    for round in 0..50 {
        write_long_ago(format!("plugin{round:04}"));
        let snapshot = workspace.snapshot().await.unwrap();
        workspace.verify_unchanged(&snapshot).await.unwrap();
        write_long_ago(format!("checks{round:04}"));
        let verified = workspace.verify_unchanged(&snapshot).await;
        assert!(verified.is_err(), "round {round}");
    }
}

/// Once git goes by times, an edit at that very moment still has another one.
#[tokio::test]
async fn an_edit_right_after_a_workspace_was_settled_is_seen() {
    let lab = Lab::new();
    let base = lab.base().await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let made = lab.git.prepare(&base, &lab.worktrees, &lab.runtime).await;
        waiting.push(made.unwrap());
    }
    // Some are used in the second in which they were made, others later.
    for (round, mut workspace) in waiting.into_iter().rev().enumerate() {
        if round == 10 {
            tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        }
        let path = workspace.path().join("README");
        let times = std::fs::FileTimes::new()
            .set_modified(fs_err::metadata(&path).unwrap().modified().unwrap());
        workspace.settle().await.unwrap();
        fs_err::write(&path, "READ ME\n").unwrap();
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        file.into_file().set_times(times).unwrap();
        let snapshot = workspace.snapshot().await.unwrap();
        assert!(snapshot.changed(), "round {round}");
        fs_err::write(&path, "read me\n").unwrap();
        let verified = workspace.verify_unchanged(&snapshot).await;
        assert!(verified.is_err(), "round {round}");
        workspace.remove().await.unwrap();
    }
}
