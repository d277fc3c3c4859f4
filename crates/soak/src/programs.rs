//! The Gate and the Workers as processes. Every one that is started here is ended here, by its own
//! id, also when this tool itself fails.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::faults::Target;
use crate::place::Place;

/// The programs that run.
#[derive(Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    running: Vec<(Target, Child)>,
}

impl Programs {
    /// Will start programs from this folder.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            running: Vec::new(),
        }
    }

    /// Starts one.
    pub(crate) fn start(&mut self, place: &Place, target: Target) -> Result<()> {
        let program = match target {
            Target::Gate => "forge-gate",
            Target::Worker(_) => "forge-worker",
        };
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(place.path(&format!("{target}.log")))
            .context("cannot open a log")?;
        let child = Command::new(self.folder.join(program))
            .arg("--config")
            .arg(place.path(&format!("{target}.json")))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // A person's Ctrl-C is for this tool, which then ends them.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        self.running.push((target, child));
        Ok(())
    }

    /// Ends one as a power loss would.
    pub(crate) fn kill(&mut self, target: Target) -> Result<()> {
        let mut child = self.take(target)?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, target: Target, signal: Signal) -> Result<()> {
        let child = self
            .running
            .iter()
            .find_map(|(running, child)| (*running == target).then_some(child))
            .with_context(|| format!("{target} does not run"))?;
        send(child, signal)
    }

    /// Asks one to stop and waits for it.
    pub(crate) fn stop(&mut self, target: Target, patience: Duration) -> Result<ExitStatus> {
        let mut child = self.take(target)?;
        send(&child, Signal::SIGTERM)?;
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill()?;
        child.wait()?;
        bail!("{target} did not stop within {} s", patience.as_secs());
    }

    /// One that has ended without being asked to.
    pub(crate) fn ended(&mut self) -> Option<(Target, ExitStatus)> {
        self.running.iter_mut().find_map(|(target, child)| {
            let status = child.try_wait().ok().flatten()?;
            Some((*target, status))
        })
    }

    fn take(&mut self, target: Target) -> Result<Child> {
        let place = self
            .running
            .iter()
            .position(|(running, _)| *running == target)
            .with_context(|| format!("{target} does not run"))?;
        Ok(self.running.swap_remove(place).1)
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for (_, child) in &mut self.running {
            // Either fails only where it has ended already.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn send(child: &Child, signal: Signal) -> Result<()> {
    let id = i32::try_from(child.id()).context("a process id")?;
    Ok(kill(Pid::from_raw(id), signal)?)
}
