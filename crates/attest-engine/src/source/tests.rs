//! Checkouts made by the real git, hostile ones among them.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A folder with a repository made by git itself.
struct Fixture {
    folder: tempfile::TempDir,
}

const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";

fn search_path() -> OsString {
    cli_shell::env::var_os("PATH").unwrap_or_else(|| PATH.into())
}

async fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut argv = vec![
        "git",
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@example.com",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "commit.gpgSign=false",
    ];
    argv.extend_from_slice(arguments);
    let spec = Spec::new(argv)
        .env([("PATH", search_path()), ("HOME", "/dev/null".into())])
        .env([("GIT_CONFIG_NOSYSTEM", "1")])
        .cwd(folder);
    let capture = Capture::new(Duration::from_secs(60), 1 << 20);
    let done = capture_direct(spec, capture, &CancellationToken::new())
        .await
        .unwrap();
    assert!(
        done.exit.is_success(),
        "git {arguments:?}: {}",
        done.stderr.escape_ascii()
    );
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fixture = Self { folder };
        let path = fixture.path().to_owned();
        git(&path, &["init", "-q"]).await;
        fs_err::write(path.join("file"), "one\n").unwrap();
        git(&path, &["add", "file"]).await;
        git(&path, &["commit", "-q", "-m", "one"]).await;
        fixture
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn probe(&self) -> Option<Source> {
        probe_at(self.path()).await
    }
}

async fn probe_at(folder: &Path) -> Option<Source> {
    probe(folder, Some(&search_path()), &CancellationToken::new()).await
}

/// A known limit, which the reference of the receipt tells: git answers, and can be told to look
/// away. Should git change its mind, that text has to go.
#[tokio::test]
async fn what_git_was_told_to_look_away_from_is_not_dirty() {
    for look_away in ["--assume-unchanged", "--skip-worktree"] {
        let fixture = Fixture::new().await;
        fs_err::write(fixture.path().join("file"), "two!\n").unwrap();
        assert!(fixture.probe().await.unwrap().tracked_dirty);
        git(fixture.path(), &["update-index", look_away, "file"]).await;
        assert!(!fixture.probe().await.unwrap().tracked_dirty);
    }
}

#[tokio::test]
async fn a_checkout_is_told_by_commit_branch_address_and_state() {
    let fixture = Fixture::new().await;
    let commit = git(fixture.path(), &["rev-parse", "HEAD"]).await;
    let clean = fixture.probe().await.unwrap();
    assert_eq!(
        clean,
        Source {
            repository: None,
            commit: commit.clone(),
            branch: Some("main".into()),
            tracked_dirty: false,
        }
    );
    // A file that git does not know changes nothing; one that it knows does.
    fs_err::write(fixture.path().join("untracked"), "").unwrap();
    assert_eq!(fixture.probe().await.unwrap(), clean);
    fs_err::write(fixture.path().join("file"), "two\n").unwrap();
    assert!(fixture.probe().await.unwrap().tracked_dirty);
    git(fixture.path(), &["checkout", "-q", "--", "file"]).await;
    git(fixture.path(), &["mv", "file", "moved"]).await;
    assert!(fixture.probe().await.unwrap().tracked_dirty);
    git(fixture.path(), &["mv", "moved", "file"]).await;

    let canary = "https://user:canary-31@example.com/t/r.git?canary-31";
    git(fixture.path(), &["remote", "add", "origin", canary]).await;
    git(fixture.path(), &["checkout", "-q", "--detach"]).await;
    fs_err::create_dir_all(fixture.path().join("a/b")).unwrap();
    let detached = probe_at(&fixture.path().join("a/b")).await.unwrap();
    assert_eq!(
        detached.repository.as_deref(),
        Some("https://example.com/t/r.git")
    );
    assert_eq!((detached.commit, detached.branch), (commit, None));
}

#[tokio::test]
async fn nothing_is_told_where_there_is_no_commit_or_no_git() {
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(probe_at(empty.path()).await, None);
    fs_err::create_dir(empty.path().join(".git")).unwrap();
    assert_eq!(probe_at(empty.path()).await, None);
    git(empty.path(), &["init", "-q"]).await;
    assert_eq!(probe_at(empty.path()).await, None, "an unborn branch");
    assert_eq!(probe_at(&empty.path().join("absent")).await, None);

    let fixture = Fixture::new().await;
    let cancel = CancellationToken::new();
    let nowhere = OsStr::new("/nowhere:.:relative");
    assert_eq!(probe(fixture.path(), Some(nowhere), &cancel).await, None);
    assert_eq!(probe(fixture.path(), None, &cancel).await, None);
    cancel.cancel();
    assert_eq!(
        probe(fixture.path(), Some(&search_path()), &cancel).await,
        None
    );
}

/// Stands in for git and leaves a mark, so that a start is seen.
#[tokio::test]
async fn outside_a_checkout_no_process_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    fs_err::create_dir(&tools).unwrap();
    let mark = folder.path().join("mark");
    let script = format!("#!/bin/sh\n: > '{}'\nexit 1\n", mark.display());
    fs_err::write(tools.join("git"), script).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(tools.join("git"), mode).unwrap();
    let workspace = folder.path().join("w");
    fs_err::create_dir(&workspace).unwrap();
    let cancel = CancellationToken::new();
    probe(&workspace, Some(tools.as_os_str()), &cancel).await;
    assert!(!mark.exists());
    fs_err::write(workspace.join(".git"), "gitdir: /nowhere\n").unwrap();
    probe(&workspace, Some(tools.as_os_str()), &cancel).await;
    assert!(mark.exists(), "the stand-in would have been seen");
}

#[tokio::test]
async fn a_hostile_repository_runs_nothing() {
    let fixture = Fixture::new().await;
    let path = fixture.path();
    let mark = path.join("mark");
    let evil = path.join("evil");
    fs_err::write(&evil, format!("#!/bin/sh\n: > '{}'\ncat\n", mark.display())).unwrap();
    fs_err::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    let evil = evil.to_str().unwrap();
    for (name, value) in [
        ("core.fsmonitor", evil),
        ("core.pager", evil),
        ("pager.status", evil),
        ("core.sshCommand", evil),
        ("core.editor", evil),
        ("diff.external", evil),
        ("alias.status", evil),
        ("alias.config", evil),
        ("gpg.program", evil),
        ("credential.helper", evil),
        ("filter.evil.clean", evil),
        ("filter.evil.required", "true"),
        ("filter.Odd = name.process", evil),
        ("status.submoduleSummary", "true"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", evil),
        ("remote.origin.url", path.to_str().unwrap()),
    ] {
        git(path, &["config", "--local", name, value]).await;
    }
    for hook in ["post-index-change", "fsmonitor-watchman", "post-checkout"] {
        let file = path.join(".git/hooks").join(hook);
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::copy(evil, &file).unwrap();
    }
    fs_err::create_dir_all(path.join(".git/info")).unwrap();
    let attributes = "file filter=evil diff=evil\nother filter=\"Odd = name\"\n";
    fs_err::write(path.join(".git/info/attributes"), attributes).unwrap();
    fs_err::write(path.join(".gitattributes"), "* filter=evil\n").unwrap();
    // Another time than the index holds, so that the content has to be compared.
    fs_err::write(path.join("file"), "one\n").unwrap();
    let source = fixture.probe().await.unwrap();
    assert_eq!(source.branch.as_deref(), Some("main"));
    assert!(!mark.exists(), "something of the repository was run");

    // The same repository does run it when it is asked in the ordinary way.
    fs_err::write(path.join("file"), "two\n").unwrap();
    git(path, &["-c", "core.fsmonitor=false", "add", "file"]).await;
    assert!(mark.exists(), "the trap works");
}

/// The real git under a script that takes settings out of its environment, as a git before 2.31
/// that knows of none: the repository's filters would run there.
#[tokio::test]
async fn a_git_that_hears_no_settings_in_its_environment_is_not_asked_for_a_status() {
    let fixture = Fixture::new().await;
    let name = fixture.path().join("mark");
    let filter = format!(": > '{}'; cat", name.display());
    git(fixture.path(), &["config", "filter.f.clean", &filter]).await;
    fs_err::write(fixture.path().join(".gitattributes"), "* filter=f\n").unwrap();
    fs_err::write(fixture.path().join("file"), "two\n").unwrap();
    let real = git_safety::find(&search_path()).unwrap();
    let tools = tempfile::tempdir().unwrap();
    let stand_in = |words: &str| {
        let script = format!("#!/bin/sh\n{words} exec '{}' \"$@\"\n", real.display());
        fs_err::write(tools.path().join("git"), script).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(tools.path().join("git"), mode).unwrap();
    };
    let mut path = tools.path().as_os_str().to_owned();
    path.push(":");
    path.push(search_path());
    let cancel = CancellationToken::new();
    stand_in("unset GIT_CONFIG_COUNT;");
    assert_eq!(probe(fixture.path(), Some(&path), &cancel).await, None);
    assert!(!name.exists(), "a filter of the repository was run");
    stand_in("");
    let source = probe(fixture.path(), Some(&path), &cancel).await;
    assert!(source.unwrap().tracked_dirty, "the stand-in itself works");
    assert!(!name.exists());
}

#[tokio::test]
async fn linked_work_trees_and_submodules_are_checkouts_of_their_own() {
    let fixture = Fixture::new().await;
    let aside = tempfile::tempdir().unwrap();
    let linked = aside.path().join("linked");
    let name = linked.to_str().unwrap();
    git(
        fixture.path(),
        &["worktree", "add", "-q", "-b", "side", name],
    )
    .await;
    fs_err::write(linked.join("file"), "changed\n").unwrap();
    let source = probe_at(&linked).await.unwrap();
    assert_eq!(source.branch.as_deref(), Some("side"));
    assert!(source.tracked_dirty);
    assert!(!fixture.probe().await.unwrap().tracked_dirty);

    let outer = Fixture::new().await;
    let url = fixture.path().to_str().unwrap();
    git(outer.path(), &["submodule", "--quiet", "add", url, "sub"]).await;
    git(outer.path(), &["commit", "-q", "-m", "two"]).await;
    let inner = probe_at(&outer.path().join("sub")).await.unwrap();
    let expected = git(fixture.path(), &["rev-parse", "HEAD"]).await;
    assert_eq!(inner.commit, expected);
    assert!(!inner.tracked_dirty);
    assert_ne!(outer.probe().await.unwrap().commit, expected);
}

#[tokio::test]
async fn a_broken_index_leaves_the_commit_and_counts_as_changed() {
    let fixture = Fixture::new().await;
    fs_err::write(fixture.path().join(".git/index"), "no index").unwrap();
    let source = fixture.probe().await.unwrap();
    assert_eq!(source.branch.as_deref(), Some("main"));
    assert!(source.tracked_dirty);
}

#[tokio::test]
async fn many_changes_count_as_changed_and_keep_the_heads() {
    let fixture = Fixture::new().await;
    for number in 0..400 {
        let name = format!("file-with-a-rather-long-name-{number}");
        fs_err::write(fixture.path().join(name), "x").unwrap();
    }
    git(fixture.path(), &["add", "."]).await;
    let source = fixture.probe().await.unwrap();
    assert!(source.tracked_dirty);
    assert_eq!(source.branch.as_deref(), Some("main"));
}

/// Owners can be changed by root alone.
#[tokio::test]
async fn a_repository_that_a_stranger_put_above_the_workspace_is_not_told() {
    if !nix::unistd::geteuid().is_root() {
        println!("NOT RUN: only root can give a file to somebody else");
        return;
    }
    let fixture = Fixture::new().await;
    let workspace = fixture.path().join("mine");
    fs_err::create_dir(&workspace).unwrap();
    assert!(probe_at(&workspace).await.is_some());
    let owned_by = |path: &Path, id: u32| {
        let id = nix::unistd::Uid::from_raw(id);
        nix::unistd::chown(path, Some(id), None).unwrap();
    };
    owned_by(&fixture.path().join(".git"), 12_345);
    assert_eq!(probe_at(&workspace).await, None);
    // A whole checkout of another user, as in a container that runs as root, is that user's word.
    owned_by(&workspace, 12_345);
    assert!(probe_at(&workspace).await.is_some());
}
