//! What the process of a plugin is given, and that it is given nothing else (seed 4.1, G2).

use attest_plugin_host::OnFailure;

use crate::support::{Bench, exists};

async fn environment(bench: &Bench) -> Vec<String> {
    let mut host = bench.host().await;
    host.shutdown().await;
    let bytes = std::fs::read(bench.path("environ")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let mut all: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
    all.sort();
    all
}

/// As the system shows it, before the shell adds its own.
const DUMP: &str = "cat /proc/$$/environ > environ\nhello\nget";

#[tokio::test]
async fn g2_the_environment_is_exactly_the_table_and_what_is_declared() {
    let mut bench = Bench::of(DUMP, OnFailure::FailClosed);
    bench.search = "/usr/bin::.:/bin:relative/bin".to_owned();
    let env = &mut bench.plugins.plugins[0].env;
    env.insert("POLICY_FILE".to_owned(), "p.toml".to_owned());
    env.insert("TZ".to_owned(), "Asia/Tokyo".to_owned());
    let workspace = bench.path("");
    let workspace = workspace.to_str().unwrap().trim_end_matches('/');
    let expected = [
        "ATTEST_PLUGIN_NAME=p".to_owned(),
        "ATTEST_PLUGIN_PROTOCOL=1".to_owned(),
        "ATTEST_VERSION=9.8.7".to_owned(),
        format!("ATTEST_WORKSPACE={workspace}"),
        "LANG=C.UTF-8".to_owned(),
        "LC_ALL=C.UTF-8".to_owned(),
        "PATH=/usr/bin:/bin".to_owned(),
        "POLICY_FILE=p.toml".to_owned(),
        "TZ=Asia/Tokyo".to_owned(),
    ];
    assert_eq!(environment(&bench).await, expected);
}

#[tokio::test]
async fn the_working_directory_is_the_workspace() {
    let bench = Bench::of("pwd -P > here\nhello\nget", OnFailure::FailClosed);
    let mut host = bench.host().await;
    host.shutdown().await;
    let here = std::fs::read_to_string(bench.path("here")).unwrap();
    let workspace = std::fs::canonicalize(bench.path("")).unwrap();
    assert_eq!(here.trim_end(), workspace.to_str().unwrap());
}

/// A script is held open by its own shell, on a descriptor that the shell chose; a program shows
/// what it was given. This process has its own descriptors open meanwhile, inheritable ones too.
#[tokio::test]
async fn g2_descriptors_are_0_1_2_and_there_is_no_argument() {
    let mut bench = Bench::new();
    let secret = fs_err::File::create(bench.path("secret")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let script = "tr '\\0' '\\n' < /proc/$$/cmdline > arguments\nhello\n(ls -l /proc/$$/fd) > fds\ntouch listed\nget";
    bench.add("p", script);
    let mut host = bench.host().await;
    exists(&bench.path("listed")).await;
    host.shutdown().await;
    let listed = std::fs::read_to_string(bench.path("fds")).unwrap();
    let mut pipes = 0;
    for line in listed.lines().filter(|line| line.contains(" -> ")) {
        let (left, target) = line.split_once(" -> ").unwrap();
        let number: u32 = left.rsplit(' ').next().unwrap().parse().unwrap();
        // Of the shell itself: the script, which it opened by its path.
        let is_script = number >= 3 && target.starts_with("/memfd:");
        let is_given = number <= 2 && (target.starts_with("pipe:") || target.ends_with("/fds"));
        assert!(
            is_script || is_given || target.contains("plugin-p"),
            "{line}"
        );
        pipes += u32::from(target.starts_with("pipe:"));
    }
    assert!((2..=3).contains(&pipes), "{listed}");
    assert!(!listed.contains("secret"), "{listed}");
    let arguments = std::fs::read_to_string(bench.path("arguments")).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    assert_eq!(arguments[0], "/bin/sh");
    assert_eq!(arguments.len(), 2, "{arguments:?}");
    assert!(arguments[1].starts_with("/proc/"), "{arguments:?}");
    drop(secret);
}

/// The message is what is sent: the versions, and nothing of keys.
#[tokio::test]
async fn g2_hello_is_as_the_document_has_it() {
    let bench = Bench::of(
        "get\necho \"$line\" > first\nhello_ok\nget",
        OnFailure::FailClosed,
    );
    let mut host = bench.host().await;
    host.shutdown().await;
    let first = std::fs::read_to_string(bench.path("first")).unwrap();
    let expected =
        "{\"v\":1,\"id\":1,\"kind\":\"hello\",\"attest_version\":\"9.8.7\",\"protocols\":[1]}\n";
    assert_eq!(first, expected);
}
