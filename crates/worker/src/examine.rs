//! What an operator gets wrong on a Worker's host, looked at without starting one.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cli_shell::{Finding, Secret};
use git_workspace::Git;
use rustix::process::{PidfdFlags, geteuid, getpid, pidfd_open};

use crate::config::{Host, TokenSource, WorkerConfig};

/// Looks at everything that a Worker with this configuration needs of its host. Changes nothing,
/// and asks no other machine.
pub async fn examine(file: &Path) -> Vec<Finding> {
    let config = match WorkerConfig::load(file) {
        Ok(config) => config,
        Err(error) => {
            let fix = format!(
                "correct it until `forge-worker --check-config {}` is content",
                file.display()
            );
            return vec![Finding::error("worker config", &error, fix)];
        }
    };
    let mut findings = vec![Finding::ok(
        "worker config",
        format!("`{}` is valid", file.display()),
    )];
    findings.extend(token(&config.token));
    findings.extend(folders(&config));
    findings.extend(plugins(&config));
    findings.push(git(&config).await);
    findings.push(processes());
    findings.push(whole(&config));
    findings
}

fn token(source: &TokenSource) -> Vec<Finding> {
    const CHECK: &str = "worker token";
    match source {
        TokenSource::Env(name) => {
            let name: &str = name.as_ref();
            vec![match Secret::from_env(name) {
                Ok(_) => Finding::ok(CHECK, format!("variable `{name}` holds one")),
                Err(error) => Finding::warn(
                    CHECK,
                    format!("{error}: `{name}`"),
                    "fine if only the Worker's service sets it; else set it",
                ),
            }]
        }
        TokenSource::File(path) => {
            let mut found = vec![Finding::of_secret_file(CHECK, path.as_path())];
            if let Err(error) = Secret::from_file(path.as_path()) {
                let fix = "put the Worker's token there, readable for the Worker's user";
                found.push(Finding::error(CHECK, &error, fix));
            }
            found
        }
    }
}

fn folders(config: &WorkerConfig) -> Vec<Finding> {
    let mut found = Vec::new();
    let roots = [
        ("worktree_root", config.worktree_root.as_path()),
        ("runtime_root", config.runtime_root.as_path()),
    ];
    for (field, path) in roots {
        let check = format!("worker {field}");
        found.push(folder(&check, path));
        let space = format!("worker space of {field}");
        found.push(Finding::of_free_space(&space, path, config.min_free_bytes));
    }
    let device = |path: &Path| fs_err::metadata(path).ok().map(|found| found.dev());
    let worktrees = device(config.worktree_root.as_path());
    for (id, path) in &config.repositories {
        let check = format!("worker repository {id}");
        found.push(match device(path.as_path()) {
            None => Finding::fail(
                check,
                format!("`{path}` cannot be looked at"),
                "clone the repository there, readable for the Worker's user",
            ),
            here if here != worktrees => Finding::warn(
                check,
                format!("`{path}` and `worktree_root` lie on different file systems"),
                "it works; on one file system candidates and workspaces are faster",
            ),
            _ => Finding::ok(check, format!("`{path}` is there")),
        });
    }
    found
}

/// A folder that must be the Worker's own.
fn folder(check: &str, path: &Path) -> Finding {
    let shown = path.display();
    let found = match fs_err::metadata(path) {
        Ok(found) if found.is_dir() => found,
        Ok(_) => {
            let message = format!("`{shown}` is not a folder");
            return Finding::fail(check, message, format!("install -d -m 0700 {shown}"));
        }
        Err(error) => {
            let fix = format!("install -d -m 0700 {shown}, owned by the Worker's user");
            return Finding::error(check, &error, fix);
        }
    };
    let mode = found.mode() & 0o7777;
    if mode & 0o022 != 0 {
        let message = format!("others can write to `{shown}` (mode {mode:04o})");
        return Finding::fail(check, message, format!("chmod 0700 {shown}"));
    }
    if mode & 0o055 != 0 {
        let message = format!("others can look into `{shown}` (mode {mode:04o})");
        return Finding::warn(check, message, format!("chmod 0700 {shown}"));
    }
    if found.uid() != geteuid().as_raw() {
        let message = format!(
            "`{shown}` belongs to user {}, and this is user {}",
            found.uid(),
            geteuid().as_raw()
        );
        return Finding::warn(check, message, "run this as the Worker's user");
    }
    Finding::ok(check, format!("`{shown}` is private"))
}

fn plugins(config: &WorkerConfig) -> Vec<Finding> {
    let plugins = config.plugins.iter();
    plugins
        .map(|(id, plugin)| {
            let check = format!("worker plugin {id}");
            let program = plugin.argv.first().map(String::as_str).unwrap_or_default();
            let shown = cli_shell::visible(program);
            let resolved = Path::new(program).canonicalize();
            let found = resolved.as_deref().map(fs_err::metadata);
            match found {
                Ok(Ok(found)) if found.is_file() && found.mode() & 0o111 != 0 => {
                    Finding::ok(check, format!("`{shown}` is an executable file"))
                }
                Ok(Ok(_)) => Finding::fail(
                    check,
                    format!("`{shown}` is no executable file"),
                    "name the program itself in `argv`, and make it executable",
                ),
                _ => Finding::fail(
                    check,
                    format!("`{shown}` is not there"),
                    "install it, or correct `argv` of the plugin",
                ),
            }
        })
        .collect()
}

async fn git(config: &WorkerConfig) -> Finding {
    const CHECK: &str = "worker git";
    const FIX: &str = "install git 2.32 or newer, or set `git_executable`";
    let path: OsString = cli_shell::env::var_os("PATH").unwrap_or_default();
    let git = match &config.git_executable {
        Some(program) => Ok(Git::new(program.as_path(), path)),
        None => Git::find(&path),
    };
    let git = match git {
        Ok(git) => git,
        Err(error) => return Finding::error(CHECK, &error, FIX),
    };
    match git.version().await {
        Ok(version) => {
            let program = git.program().display();
            Finding::ok(CHECK, format!("version {version} (`{program}`)"))
        }
        Err(error) => Finding::error(CHECK, &error, FIX),
    }
}

/// What `process-tree` needs of the kernel.
fn processes() -> Finding {
    const CHECK: &str = "worker processes";
    let me = getpid();
    if fs_err::read_to_string("/proc/self/stat").is_err() {
        let message = "`/proc` is not mounted, so processes that a plugin leaves cannot be found";
        return Finding::fail(CHECK, message, "mount proc at /proc");
    }
    if let Err(errno) = pidfd_open(me, PidfdFlags::empty()) {
        let message = format!("the kernel gives no pidfd: {errno}");
        return Finding::fail(
            CHECK,
            message,
            "use Linux 5.3 or newer, and allow pidfd_open",
        );
    }
    #[cfg(target_os = "linux")]
    if let Err(errno) = rustix::process::child_subreaper() {
        let message = format!("no process can be a child subreaper: {errno}");
        return Finding::fail(CHECK, message, "allow prctl in the sandbox of the service");
    }
    Finding::ok(CHECK, "`/proc`, pidfd and child subreapers are there")
}

/// What a start would say; the findings above are apart only to say more.
fn whole(config: &WorkerConfig) -> Finding {
    const CHECK: &str = "worker start";
    match Host::look_up(config) {
        Ok(_) => Finding::ok(CHECK, "everything that the configuration names is there"),
        Err(error) => Finding::error(CHECK, &error, "a Worker would not start; mend this first"),
    }
}
