//! Every way a program fails to start has a text of its own; exit code 127 is none of them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use process_tree::{Capture, Spec, StartError, Status, Wrapper, capture, spawn, spawn_direct};
use tokio_util::sync::CancellationToken;

use crate::support::{Scratch, script, wrapper};

/// Both ways must refuse with the same words.
async fn refusal(spec: Spec) -> StartError {
    let wrapped = spawn(&wrapper(), spec.clone()).await.unwrap_err();
    let direct = spawn_direct(spec).await.unwrap_err();
    assert_eq!(wrapped.to_string(), direct.to_string());
    wrapped
}

fn executable(path: &Path, content: &[u8]) {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn h8_a_missing_program() {
    let error = refusal(Spec::new(["/no/such/program"])).await;
    assert_eq!(
        error.to_string(),
        "program `/no/such/program` does not exist"
    );
}

#[tokio::test]
async fn h8_a_name_that_path_does_not_hold() {
    let spec = Spec::new(["no-such-program"]).env([("PATH", "/bin:/usr/bin")]);
    let error = refusal(spec).await;
    assert_eq!(
        error.to_string(),
        "no executable `no-such-program` in the program's PATH `/bin:/usr/bin`"
    );
}

#[tokio::test]
async fn h8_a_script_without_its_interpreter() {
    let scratch = Scratch::new();
    let file = scratch.path("script");
    executable(&file, b"#!/no/such/interpreter -x\n");
    let error = refusal(Spec::new([&file])).await;
    assert!(matches!(error, StartError::MissingInterpreter { .. }));
    assert!(error.to_string().contains("`/no/such/interpreter`"));
}

#[tokio::test]
async fn h8_a_file_without_execute_permission() {
    let scratch = Scratch::new();
    let file = scratch.path("data");
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    let error = refusal(Spec::new([&file])).await;
    assert!(error.to_string().ends_with("it has no execute permission"));
    let spec = Spec::new(["data"]).env([("PATH", scratch.path(""))]);
    let error = refusal(spec).await;
    assert!(matches!(error, StartError::PermissionDenied { .. }));
}

#[tokio::test]
async fn a_directory() {
    let error = refusal(Spec::new(["/"])).await;
    assert!(error.to_string().ends_with("it is a directory"));
}

#[tokio::test]
async fn h8_a_file_of_no_known_format_or_of_another_machine() {
    let scratch = Scratch::new();
    for (content, why) in [
        (&b"just text\n"[..], "nor a script"),
        (b"", "empty"),
        (b"\x7fELF\x02\x01\x01nonsense", "another architecture"),
    ] {
        let file = scratch.path("file");
        executable(&file, content);
        let error = refusal(Spec::new([&file])).await;
        assert!(
            matches!(error, StartError::NotExecutable { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn h8_a_program_that_is_being_written() {
    let scratch = Scratch::new();
    let file = scratch.path("busy");
    std::fs::copy("/bin/true", &file).unwrap();
    let open = fs_err::OpenOptions::new().append(true).open(&file).unwrap();
    let error = refusal(Spec::new([&file])).await;
    drop(open);
    assert!(matches!(error, StartError::Busy { .. }), "{error:?}");
}

#[tokio::test]
async fn a_working_directory_that_is_none() {
    for directory in ["/no/such/directory", "/dev/null"] {
        let error = refusal(script("exit 0").cwd(directory)).await;
        assert!(error.to_string().contains(directory));
        assert!(matches!(error, StartError::WorkingDirectory { .. }));
    }
}

#[tokio::test]
async fn words_that_no_system_call_can_carry() {
    let none: [&str; 0] = [];
    assert!(matches!(
        refusal(Spec::new(none)).await,
        StartError::EmptyArgv
    ));
    assert!(matches!(
        refusal(Spec::new([""])).await,
        StartError::EmptyArgv
    ));
    let error = refusal(Spec::new(["/bin/true", "a\0b"])).await;
    assert!(matches!(error, StartError::NulInArgument { index: 1 }));
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "secret\0")] {
        let error = refusal(script("exit 0").env([(name, value)])).await;
        assert!(matches!(error, StartError::InvalidVariable { .. }));
        assert!(!error.to_string().contains("secret"));
    }
}

#[tokio::test]
async fn an_argument_longer_than_the_system_takes() {
    let error = spawn_direct(Spec::new(["/bin/true".to_owned(), "x".repeat(4 << 20)]))
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn exit_code_127_is_an_exit_code() {
    let none = CancellationToken::new();
    let limits = Capture::new(Duration::from_secs(60), 100);
    let done = capture(&wrapper(), script("exit 127"), limits, &none)
        .await
        .unwrap();
    assert_eq!(done.exit.status, Status::Code(127));
}

#[cfg(all(target_os = "linux", not(portable_process)))]
#[tokio::test]
async fn a_wrapper_that_is_missing_or_no_wrapper() {
    let error = spawn(&Wrapper::new("/no/such/wrapper"), script("exit 0"))
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::Wrapper { .. }));
    let error = spawn(&Wrapper::new("/bin/true"), script("exit 0"))
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::WrapperLost { .. }));
}

/// The clock is the test's: it jumps ahead while nothing happens.
#[cfg(all(target_os = "linux", not(portable_process)))]
#[tokio::test(start_paused = true)]
async fn h5_a_wrapper_that_says_nothing() {
    let scratch = Scratch::new();
    let silent = scratch.path("silent");
    executable(&silent, b"#!/bin/sh\nexec sleep 60\n");
    let error = spawn(&Wrapper::new(&silent), script("exit 0"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, StartError::WrapperSilent { .. }),
        "{error:?}"
    );
}

#[cfg(not(all(target_os = "linux", not(portable_process))))]
#[tokio::test]
async fn without_a_wrapper_none_is_needed() {
    let mut child = spawn(&Wrapper::new("/no/such/wrapper"), script("exit 3"))
        .await
        .unwrap();
    assert_eq!(child.wait().await.unwrap().status, Status::Code(3));
}
