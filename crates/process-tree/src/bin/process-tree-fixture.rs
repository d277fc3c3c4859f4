//! The program that the tests of this crate start: it does what its arguments say, in order.
//!
//! Also their wrapper. It is built with the package, yet belongs to no product.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getpgrp, getpid, getsid, setsid};
use process_tree::{Capture, Spec, Wrapper, capture, run_wrapper_if_asked, spawn};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    if let Some(code) = run_wrapper_if_asked() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    match act(words.into_iter()) {
        Ok(code) => ExitCode::from(code),
        // 99 is used by no script, so that a test sees what happened.
        Err(_) => ExitCode::from(99),
    }
}

/// Does one word after another; the end of the words is exit code 0.
fn act(mut words: impl Iterator<Item = String>) -> io::Result<u8> {
    while let Some(word) = words.next() {
        match word.as_str() {
            // A session of its own.
            "setsid" => {
                setsid()?;
            }
            // Deaf to what asks it to end. Blocking does the same as ignoring here.
            "deaf" => {
                let mut mask = SigSet::empty();
                mask.add(Signal::SIGTERM);
                mask.add(Signal::SIGINT);
                mask.add(Signal::SIGHUP);
                mask.thread_block()?;
            }
            "say" => say(&next(&mut words)?)?,
            "complain" => io::stderr().write_all(next(&mut words)?.as_bytes())?,
            // Tells its process id in a file, which appears complete or not at all.
            "pidfile" => {
                let path = PathBuf::from(next(&mut words)?);
                let fresh = path.with_extension(getpid().to_string());
                std::fs::write(&fresh, getpid().to_string())?;
                std::fs::rename(fresh, path)?;
            }
            // Waits until a file exists.
            "await" => {
                let path = PathBuf::from(next(&mut words)?);
                while !path.exists() {
                    pause(1);
                }
            }
            "sleep" => pause(number(&mut words)?),
            // bg KEEP [ words ]: another of its kind in the background.
            "bg" => {
                let keep = next(&mut words)?;
                let inner = bracketed(&mut words)?;
                let _runs = start(&keep, &inner)?;
            }
            // run [ words ]: another of its kind, waited for, however it ends.
            "run" => {
                let inner = bracketed(&mut words)?;
                start("null", &inner)?.wait()?;
            }
            // Takes a variable out of this process.
            "forget" => process_tree::forget_variable(&next(&mut words)?)?,
            // The environment as others see it from outside.
            "environ" => io::stdout().write_all(&std::fs::read("/proc/self/environ")?)?,
            "cat" => {
                let mut bytes = Vec::new();
                io::stdin().read_to_end(&mut bytes)?;
                io::stdout().write_all(&bytes)?;
            }
            "fill" => fill(io::stdout(), number(&mut words)?)?,
            "fill-stderr" => fill(io::stderr(), number(&mut words)?)?,
            // Writes for ever.
            "flood" => loop {
                io::stdout().write_all(b"more\n")?;
                io::stdout().flush()?;
                pause(1);
            },
            // Touches a file for ever, as a program that edits a workspace would.
            "beat" => {
                let path = PathBuf::from(next(&mut words)?);
                for beat in 0_u64.. {
                    std::fs::write(&path, beat.to_string())?;
                    pause(2);
                }
            }
            // A new process every so many milliseconds, for ever.
            "storm" => {
                let every = number(&mut words)?;
                loop {
                    let _runs = start("null", &["setsid".into(), "sleep".into(), "60000".into()])?;
                    pause(every);
                }
            }
            // Flees: its successor starts, then it ends, for ever.
            "hop" => {
                let every = number(&mut words)?;
                pause(every);
                let _runs = start("null", &["setsid".into(), "hop".into(), every.to_string()])?;
                return Ok(0);
            }
            "env" =>
            {
                #[expect(clippy::disallowed_methods, reason = "shows what it was given")]
                for (name, value) in std::env::vars() {
                    say(&format!("{name}={value}"))?;
                }
            }
            "fds" => fds()?,
            "ids" => {
                let session = getsid(None)?;
                say(&format!("{} {} {session}", getpid(), getpgrp()))?;
            }
            "mask" => {
                let mask = SigSet::thread_get_mask()?;
                say(&mask.iter().count().to_string())?;
            }
            "ignored" => {
                let status = std::fs::read_to_string("/proc/self/status")?;
                for line in status.lines().filter(|line| line.starts_with("SigIgn")) {
                    say(line)?;
                }
            }
            "cwd" => say(&std::env::current_dir()?.to_string_lossy())?,
            "signal" => {
                let signal = i32::try_from(number(&mut words)?).map_err(io::Error::other)?;
                kill(getpid(), Signal::try_from(signal)?)?;
            }
            "kill-parent" => kill(Pid::parent(), Signal::SIGKILL)?,
            "stop-parent" => kill(Pid::parent(), Signal::SIGSTOP)?,
            "exit" => return u8::try_from(number(&mut words)?).map_err(io::Error::other),
            // Is the host of the rest, and waits for ever.
            "host" => host(words.by_ref().collect(), false)?,
            // Is the host of the rest, and passes its output on.
            "host-of" => host(words.by_ref().collect(), true)?,
            other => return Err(io::Error::other(format!("no such word `{other}`"))),
        }
    }
    Ok(0)
}

fn start(keep: &str, words: &[String]) -> io::Result<Child> {
    let pass = |wanted: &str| {
        if keep.split('+').any(|kept| kept == wanted) {
            Stdio::inherit()
        } else {
            Stdio::null()
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "it plays a program that starts others"
    )]
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(words)
        .stdin(pass("in"))
        .stdout(pass("out"))
        .stderr(pass("err"))
        .spawn()
}

fn host(words: Vec<String>, to_the_end: bool) -> io::Result<()> {
    let exe = std::env::current_exe()?;
    let argv = std::iter::once(exe.into_os_string()).chain(words.into_iter().map(OsString::from));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let wrapper = Wrapper::current_exe()?;
        if to_the_end {
            let limits = Capture::new(Duration::from_secs(60), 100_000);
            let none = CancellationToken::new();
            let done = capture(&wrapper, Spec::new(argv), limits, &none).await;
            let done = done.map_err(io::Error::other)?;
            return io::stdout().write_all(&done.stdout);
        }
        let _child = spawn(&wrapper, Spec::new(argv))
            .await
            .map_err(io::Error::other)?;
        say("started")?;
        std::future::pending().await
    })
}

fn fds() -> io::Result<()> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let Ok(target) = std::fs::read_link(entry.path()) else {
            continue;
        };
        // The directory being read is a descriptor too.
        if target.parent() != Some(Path::new(&format!("/proc/{}", getpid()))) {
            all.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    all.sort();
    say(&all.join(" "))
}

fn fill(mut to: impl Write, count: u64) -> io::Result<()> {
    let count = usize::try_from(count).map_err(io::Error::other)?;
    to.write_all(&vec![b'x'; count])?;
    to.flush()
}

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

fn bracketed(words: &mut impl Iterator<Item = String>) -> io::Result<Vec<String>> {
    let mut inner = Vec::new();
    if next(words)? != "[" {
        return Err(io::Error::other("expected `[`"));
    }
    let mut depth = 1;
    loop {
        let word = next(words)?;
        match word.as_str() {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(inner);
        }
        inner.push(word);
    }
}

fn number(words: &mut impl Iterator<Item = String>) -> io::Result<u64> {
    next(words)?.parse().map_err(io::Error::other)
}

fn next(words: &mut impl Iterator<Item = String>) -> io::Result<String> {
    words
        .next()
        .ok_or_else(|| io::Error::other("a word is missing"))
}
