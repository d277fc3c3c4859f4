//! What a plugin, or a repository's configuration, would like git to run: a marker file tells.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use git_workspace::{GitError, Workspace, WorkspaceFault};

use crate::support::{Lab, candidate, raw_in, run, subject};

/// A script that leaves a marker when it runs, under every name that git might call.
struct Trap {
    script: PathBuf,
    marker: PathBuf,
}

impl Trap {
    fn new(lab: &Lab) -> Self {
        let (script, marker) = (lab.root.join("trap"), lab.root.join("marker"));
        let text = format!(
            "#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 0\n",
            marker.display()
        );
        fs_err::write(&script, text).unwrap();
        fs_err::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let trap = Self { script, marker };
        // It works: otherwise its silence would prove nothing.
        assert!(run(trap.script.to_str().unwrap(), &lab.root, &["armed"]).0);
        fs_err::remove_file(&trap.marker).unwrap();
        trap
    }

    fn config(&self) -> String {
        let trap = self.script.display();
        format!(
            "[core]\n\tfsmonitor = {trap}\n\thooksPath = hooks\n\tsshCommand = {trap}\n\
             \teditor = {trap}\n\tpager = {trap}\n\taskPass = {trap}\n\tgitProxy = {trap}\n\
             \talternateRefsCommand = {trap}\n\
             [filter \"evil\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n\trequired = true\n\
             [diff \"evil\"]\n\tcommand = {trap}\n\ttextconv = {trap}\n\
             [diff]\n\texternal = {trap}\n\
             [merge \"evil\"]\n\tdriver = {trap}\n\
             [gpg]\n\tprogram = {trap}\n\
             [commit]\n\tgpgSign = true\n\
             [pager]\n\tadd = {trap}\n\tfor-each-ref = {trap}\n\tdiff-tree = {trap}\n\
             [alias]\n\tadd = !{trap}\n\twrite-tree = !{trap}\n\tcommit-tree = !{trap}\n\
             [credential]\n\thelper = {trap}\n\
             [gc]\n\tauto = 1\n"
        )
    }

    fn set_in(&self, git_dir: &Path) {
        let mut config = fs_err::read_to_string(git_dir.join("config")).unwrap_or_default();
        config.push_str(&self.config());
        fs_err::write(git_dir.join("config"), config).unwrap();
        self.set_hooks(git_dir);
    }

    fn set_hooks(&self, git_dir: &Path) {
        fs_err::create_dir_all(git_dir.join("hooks")).unwrap();
        for hook in [
            "applypatch-msg",
            "commit-msg",
            "fsmonitor-watchman",
            "post-checkout",
            "post-commit",
            "post-index-change",
            "post-rewrite",
            "post-update",
            "pre-auto-gc",
            "pre-commit",
            "pre-push",
            "prepare-commit-msg",
            "reference-transaction",
            "update",
        ] {
            fs_err::copy(&self.script, git_dir.join("hooks").join(hook)).unwrap();
        }
    }

    fn assert_silent(&self) {
        let calls = fs_err::read_to_string(&self.marker).unwrap_or_default();
        assert_eq!(calls, "", "something of the tree was run");
    }
}

const ATTRIBUTES: &str = "* filter=evil diff=evil merge=evil text=auto\n";

/// Snapshot, verification and candidate of an edited workspace.
async fn finish(mut workspace: Workspace) {
    fs_err::write(workspace.path().join("README"), "edited by the plugin\n").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    assert!(snapshot.changed());
    workspace.verify_unchanged(&snapshot).await.unwrap();
    workspace
        .commit(&snapshot, &subject("fix: it"), None, &candidate(1))
        .await
        .unwrap();
    workspace.remove().await.unwrap();
}

#[tokio::test]
async fn r49_nothing_in_the_plugins_git_directory_runs() {
    let lab = Lab::new();
    let trap = Trap::new(&lab);
    let workspace = lab.workspace().await;
    let dot_git = workspace.path().join(".git");
    trap.set_in(&dot_git);
    fs_err::write(workspace.path().join(".gitattributes"), ATTRIBUTES).unwrap();
    fs_err::write(dot_git.join("info/attributes"), ATTRIBUTES).unwrap();
    fs_err::write(dot_git.join("objects/info/alternates"), "/nonexistent\n").unwrap();
    fs_err::write(dot_git.join("commondir"), "/nonexistent\n").unwrap();
    fs_err::write(dot_git.join("index"), "broken").unwrap();
    finish(workspace).await;
    trap.assert_silent();
}

/// Each way of its own, so that none hides behind another that already failed.
#[tokio::test]
async fn r49_each_setting_of_the_plugins_configuration_is_ignored() {
    let lab = Lab::new();
    let trap = Trap::new(&lab);
    let included = lab.root.join("included");
    fs_err::write(&included, trap.config()).unwrap();
    let (script, included) = (trap.script.display(), included.display());
    for setting in [
        format!("[core]\n\tfsmonitor = {script}\n"),
        "[core]\n\thooksPath = .git/hooks\n".to_owned(),
        format!("[core]\n\tsshCommand = {script}\n"),
        format!("[core]\n\tattributesFile = {included}\n\teditor = {script}\n"),
        "[core]\n\tworktree = /\n".to_owned(),
        format!("[filter \"evil\"]\n\tprocess = {script}\n\trequired = true\n"),
        format!("[filter \"evil\"]\n\tclean = {script}\n\tsmudge = {script}\n"),
        format!("[gpg]\n\tprogram = {script}\n[commit]\n\tgpgSign = true\n"),
        format!("[include]\n\tpath = {included}\n"),
        format!("[includeIf \"gitdir:/\"]\n\tpath = {included}\n"),
        "[extensions]\n\tworktreeConfig = true\n\tpartialClone = evil\n".to_owned(),
    ] {
        let workspace = lab.workspace().await;
        let dot_git = workspace.path().join(".git");
        trap.set_hooks(&dot_git);
        fs_err::write(workspace.path().join(".gitattributes"), ATTRIBUTES).unwrap();
        fs_err::write(dot_git.join("config"), &setting).unwrap();
        fs_err::write(dot_git.join("config.worktree"), trap.config()).unwrap();
        finish(workspace).await;
        trap.assert_silent();
        lab.raw(&["update-ref", "-d", &candidate(1).to_string()]);
    }
}

#[tokio::test]
async fn r49_objects_behind_alternates_of_the_plugin_are_not_taken() {
    let lab = Lab::new();
    let other = lab.root.join("other");
    fs_err::create_dir(&other).unwrap();
    raw_in(&other, &["init", "--quiet", "--initial-branch=main"]);
    raw_in(
        &other,
        &["commit", "--quiet", "--allow-empty", "-m", "foreign"],
    );
    let foreign = raw_in(&other, &["rev-parse", "HEAD"]);
    let mut workspace = lab.workspace().await;
    let dot_git = workspace.path().join(".git");
    let line = format!("{}\n", other.join(".git/objects").display());
    for name in ["alternates", "http-alternates"] {
        fs_err::write(dot_git.join("objects/info").join(name), &line).unwrap();
    }
    fs_err::write(workspace.path().join("new"), "new").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    workspace
        .commit(&snapshot, &subject("fix: it"), None, &candidate(1))
        .await
        .unwrap();
    // A HEAD at what only the other repository has is not at the base either.
    fs_err::write(dot_git.join("HEAD"), format!("{foreign}\n")).unwrap();
    let error = workspace.snapshot().await.unwrap_err();
    assert!(
        matches!(
            error,
            GitError::InvalidWorkspace(WorkspaceFault::HeadMoved { .. })
        ),
        "{error}"
    );
    let (known, ..) = run("git", &lab.repo, &["cat-file", "-e", &foreign]);
    assert!(!known, "an object of the other repository came over");
    assert!(!lab.repo.join(".git/objects/info/alternates").exists());
}

#[tokio::test]
async fn r49_nothing_that_the_base_itself_names_runs() {
    let lab = Lab::new();
    let trap = Trap::new(&lab);
    fs_err::write(lab.repo.join(".gitattributes"), ATTRIBUTES).unwrap();
    fs_err::write(lab.repo.join(".gitconfig"), trap.config()).unwrap();
    fs_err::write(lab.repo.join(".lfsconfig"), trap.config()).unwrap();
    let modules =
        "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% marker\n\tupdate = !false\n";
    fs_err::write(lab.repo.join(".gitmodules"), modules).unwrap();
    lab.commit_all("attributes");
    finish(lab.workspace().await).await;
    trap.assert_silent();
}

#[tokio::test]
async fn r49_nothing_that_the_configuration_of_the_repository_names_runs() {
    let lab = Lab::new();
    let trap = Trap::new(&lab);
    fs_err::write(lab.repo.join(".gitattributes"), ATTRIBUTES).unwrap();
    let base = lab.commit_all("attributes");
    trap.set_in(&lab.repo.join(".git"));
    finish(lab.workspace().await).await;
    let name = candidate(1).to_string();
    let tip = lab.git.resolve(&lab.repo, &name).await.unwrap();
    let patch = lab.git.diff(&lab.repo, &base, &tip).await.unwrap();
    assert!(
        String::from_utf8(patch)
            .unwrap()
            .contains("+edited by the plugin")
    );
    trap.assert_silent();
}

#[tokio::test]
async fn r49_a_repository_in_place_of_a_submodule_is_never_entered() {
    let lab = Lab::new();
    let trap = Trap::new(&lab);
    let commit = lab.head();
    lab.raw(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{commit},sub"),
    ]);
    lab.raw(&["commit", "--quiet", "-m", "a submodule"]);
    let mut workspace = lab.workspace().await;
    let sub = workspace.path().join("sub");
    // Exactly the recorded commit: git would ask for the state of its files.
    lab.raw(&[
        "clone",
        "--quiet",
        "--no-checkout",
        ".",
        sub.to_str().unwrap(),
    ]);
    raw_in(&sub, &["checkout", "--quiet", "--detach", commit.as_str()]);
    trap.set_in(&sub.join(".git"));
    fs_err::write(sub.join(".gitattributes"), ATTRIBUTES).unwrap();
    fs_err::write(sub.join("README"), "read you\n").unwrap();
    let error = workspace.snapshot().await.unwrap_err();
    assert!(
        matches!(
            error,
            GitError::InvalidWorkspace(WorkspaceFault::SubmoduleFilled { .. })
        ),
        "{error}"
    );
    trap.assert_silent();
}

#[tokio::test]
async fn r51_a_nested_repository_is_refused_unentered() {
    let lab = Lab::new();
    let trap = Trap::new(&lab);
    let mut workspace = lab.workspace().await;
    let nested = workspace.path().join("nested");
    // With a file that git would filter if it asked for the state of the nested repository.
    let origin = lab.repo.to_str().unwrap();
    raw_in(workspace.path(), &["clone", "--quiet", origin, "nested"]);
    fs_err::write(nested.join("README"), "read you\n").unwrap();
    trap.set_in(&nested.join(".git"));
    fs_err::write(nested.join(".gitattributes"), ATTRIBUTES).unwrap();
    for _ in 0..2 {
        let error = workspace.snapshot().await.unwrap_err();
        assert!(
            matches!(
                error,
                GitError::InvalidWorkspace(WorkspaceFault::NestedRepository { .. })
            ),
            "{error}"
        );
    }
    fs_err::remove_dir_all(&nested).unwrap();
    // Git has recorded it by now, so this workspace stays unusable.
    workspace.snapshot().await.unwrap_err();
    trap.assert_silent();
}

#[tokio::test]
async fn r51_a_git_directory_beside_files_of_the_base_is_left_out() {
    let lab = Lab::new();
    let trap = Trap::new(&lab);
    let mut workspace = lab.workspace().await;
    let src = workspace.path().join("src");
    raw_in(&src, &["init", "--quiet"]);
    trap.set_in(&src.join(".git"));
    fs_err::write(src.join(".gitattributes"), ATTRIBUTES).unwrap();
    fs_err::write(src.join("lib.txt"), "changed\n").unwrap();
    let snapshot = workspace.snapshot().await.unwrap();
    workspace.verify_unchanged(&snapshot).await.unwrap();
    let expected = [".gitignore", "README", "src/.gitattributes", "src/lib.txt"];
    assert_eq!(lab.files(snapshot.tree()), expected);
    trap.assert_silent();
}

#[tokio::test]
async fn r49_a_git_directory_removed_or_replaced_by_a_file_or_link_is_a_fault() {
    let lab = Lab::new();
    let trap = Trap::new(&lab);
    let elsewhere = lab.root.join("elsewhere");
    fs_err::create_dir(&elsewhere).unwrap();
    raw_in(&elsewhere, &["init", "--quiet"]);
    trap.set_in(&elsewhere.join(".git"));
    let replacements: [&dyn Fn(&Path); 4] = [
        &|_| {},
        &|dot_git| symlink(elsewhere.join(".git"), dot_git).unwrap(),
        &|dot_git| {
            fs_err::write(dot_git, format!("gitdir: {}/.git\n", elsewhere.display())).unwrap()
        },
        &|dot_git| fs_err::create_dir(dot_git).unwrap(),
    ];
    for replace in replacements {
        let mut workspace = lab.workspace().await;
        let dot_git = workspace.path().join(".git");
        fs_err::remove_dir_all(&dot_git).unwrap();
        replace(&dot_git);
        fs_err::write(workspace.path().join("new"), "new").unwrap();
        let error = workspace.snapshot().await.unwrap_err();
        assert!(
            matches!(
                error,
                GitError::InvalidWorkspace(WorkspaceFault::GitDirReplaced)
            ),
            "{error}"
        );
        workspace.remove().await.unwrap();
    }
    assert!(elsewhere.join(".git/config").exists());
    trap.assert_silent();
}

#[tokio::test]
async fn r49_a_replaced_workspace_folder_is_a_fault() {
    let lab = Lab::new();
    let outside = lab.root.join("outside");
    fs_err::create_dir(&outside).unwrap();
    fs_err::write(outside.join("secret"), "secret").unwrap();
    for replace in [0, 1, 2] {
        let mut workspace = lab.workspace().await;
        let path = workspace.path().to_owned();
        fs_err::rename(&path, lab.root.join(format!("moved{replace}"))).unwrap();
        match replace {
            0 => {}
            1 => symlink(&outside, &path).unwrap(),
            _ => fs_err::create_dir(&path).unwrap(),
        }
        let error = workspace.snapshot().await.unwrap_err();
        assert!(
            matches!(error, GitError::InvalidWorkspace(WorkspaceFault::Replaced)),
            "{error}"
        );
        workspace.remove().await.unwrap();
    }
    assert!(outside.join("secret").exists());
    assert_eq!(fs_err::read_dir(&lab.worktrees).unwrap().count(), 0);
}

#[tokio::test]
async fn a_plugin_that_commits_or_moves_head_is_refused() {
    let lab = Lab::new();
    let first = lab.head();
    lab.commit_all("second");
    let actions: [&[&[&str]]; 4] = [
        &[&["commit", "--quiet", "--allow-empty", "-m", "mine"]],
        &[&["checkout", "--quiet", "--detach", first.as_str()]],
        &[&["checkout", "--quiet", "--orphan", "new"]],
        &[
            &["checkout", "--quiet", "-b", "work"],
            &["commit", "--quiet", "--allow-empty", "-m", "mine"],
            &["pack-refs", "--all"],
        ],
    ];
    for action in actions {
        let mut workspace = lab.workspace().await;
        fs_err::write(workspace.path().join("new"), "new").unwrap();
        for arguments in action {
            raw_in(workspace.path(), arguments);
        }
        let error = workspace.snapshot().await.unwrap_err();
        assert!(
            matches!(
                error,
                GitError::InvalidWorkspace(WorkspaceFault::HeadMoved { .. })
            ),
            "{action:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_plugin_may_use_branches_and_its_index_at_the_base() {
    let lab = Lab::new();
    for pack in [false, true] {
        let mut workspace = lab.workspace().await;
        let path = workspace.path().to_owned();
        raw_in(&path, &["checkout", "--quiet", "-b", "work/on-it"]);
        if pack {
            raw_in(&path, &["pack-refs", "--all"]);
        }
        fs_err::write(path.join("new"), "new").unwrap();
        raw_in(&path, &["add", "new"]);
        raw_in(&path, &["stash", "--quiet"]);
        raw_in(&path, &["stash", "pop", "--quiet"]);
        let snapshot = workspace.snapshot().await.unwrap();
        assert!(lab.files(snapshot.tree()).contains(&"new".to_owned()));
    }
}

#[tokio::test]
async fn r49_a_head_of_strange_content_is_refused_in_visible_words() {
    let lab = Lab::new();
    let mut workspace = lab.workspace().await;
    let dot_git = workspace.path().join(".git");
    let secret = lab.root.join("secret");
    fs_err::write(&secret, lab.head().as_str()).unwrap();
    for content in [
        "",
        "ref: refs/heads/../../../../secret",
        "ref: ../../secret",
        "ref: refs/heads/loop",
        "\u{1b}[31mred",
    ] {
        fs_err::write(dot_git.join("refs/heads/loop"), "ref: refs/heads/loop\n").unwrap();
        fs_err::write(dot_git.join("HEAD"), content).unwrap();
        let error = workspace.snapshot().await.unwrap_err();
        assert!(
            matches!(
                error,
                GitError::InvalidWorkspace(WorkspaceFault::HeadMoved { .. })
            ),
            "{content:?}: {error}"
        );
        assert!(!error.to_string().contains('\u{1b}'));
    }
    fs_err::remove_file(dot_git.join("HEAD")).unwrap();
    symlink(&secret, dot_git.join("HEAD")).unwrap();
    let error = workspace.snapshot().await.unwrap_err();
    assert!(matches!(
        error,
        GitError::InvalidWorkspace(WorkspaceFault::GitDirReplaced)
    ));
}
