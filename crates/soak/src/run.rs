//! One run: start everything, make faults, let it settle, judge.
#![expect(
    clippy::indexing_slicing,
    reason = "reading a JSON value by name yields null where it is absent, never a panic"
)]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use nix::sys::signal::Signal;

use crate::args::Options;
use crate::faults::{Fault, Planned, Schedule, Target, WORKERS};
use crate::host::{Running, touching, working_in};
use crate::http::Gate;
use crate::judge::{database, repository};
use crate::owner::{self, Ledger, Owner, Phase};
use crate::place::{Place, SLOTS};
use crate::programs::Programs;
use crate::random::Random;
use crate::report::{Counts, Summary};
use crate::signals::Stop;

/// How often the faults are looked after.
const TICK: Duration = Duration::from_millis(20);
/// Everything that was begun has ended long before this, on a loaded machine too.
const SETTLE: Duration = Duration::from_secs(180);
/// A program that starts or stops takes less.
const PATIENCE: Duration = Duration::from_secs(60);
/// Findings that are printed; one fault may have many.
const SHOWN: usize = 50;

/// Runs, and tells whether all is well.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let stop = Stop::watch()?;
    let seed = match options.seed {
        Some(seed) => seed,
        None => getrandom::u64().context("no randomness")?,
    };
    let place = Place::make(&options.programs, &mut Random::branch(seed, 3))?;
    println!(
        "soak: seed {seed}, {} s, folder {}",
        options.time.as_secs(),
        place.path("").display()
    );
    let outcome = soak(options, seed, &place, &stop);
    let good = match &outcome {
        Ok((summary, findings)) => {
            for finding in findings.iter().take(SHOWN) {
                println!("soak: {finding}");
            }
            if findings.len() > SHOWN {
                println!("soak: and {} more", findings.len() - SHOWN);
            }
            println!("soak: {summary}");
            if findings.is_empty() {
                println!("soak: nothing lost, nothing ended twice, nothing left behind");
            }
            findings.is_empty()
        }
        Err(_) => false,
    };
    if !good || options.keep {
        let folder = place.keep();
        println!(
            "soak: seed {seed}; logs, database and repositories are kept in {}",
            folder.display()
        );
    }
    outcome.map(|_| good)
}

fn soak(
    options: &Options,
    seed: u64,
    place: &Place,
    stop: &Stop,
) -> Result<(Summary, Vec<String>)> {
    let mut stage = Stage {
        place,
        stop,
        programs: Programs::new(options.programs.clone()),
        away: Vec::new(),
        counts: Counts::default(),
        findings: Vec::new(),
    };
    let gate = Gate::new(place.port, place.token.clone());
    for target in Target::all() {
        stage.programs.start(place, target)?;
    }
    stage.wait_for("the Gate answers", || gate.get("/readyz").is_ok())?;
    let phase = Phase::default();
    let owner = Owner::new(gate.clone(), place.base.clone(), seed);
    let working = std::thread::Builder::new().name("owner".to_owned());
    let told = phase.clone();
    let working = working.spawn(move || owner.work(&told))?;
    let made = stage
        .make_faults(options.time, seed)
        .and_then(|()| stage.settle(|| working.is_finished(), &phase));
    phase.finish();
    let mut ledger = working
        .join()
        .map_err(|_| anyhow!("the owner of the jobs panicked"))?;
    made?;
    owner::confirm(&gate, &mut ledger);
    stage.restart_workers(&gate)?;
    stage.stop_all()?;
    let summary = stage.judge(&mut ledger)?;
    Ok((summary, stage.findings))
}

/// The programs, and what has been done to them.
struct Stage<'a> {
    place: &'a Place,
    stop: &'a Stop,
    programs: Programs,
    /// Who is away or stands still, what brings it back, and when.
    away: Vec<(Target, Fault, Instant)>,
    counts: Counts,
    findings: Vec<String>,
}

impl Stage<'_> {
    fn make_faults(&mut self, time: Duration, seed: u64) -> Result<()> {
        let end = Instant::now() + time;
        let mut due = Instant::now();
        for planned in Schedule::new(seed) {
            due += planned.after;
            while Instant::now() < due {
                if end <= Instant::now() {
                    return Ok(());
                }
                self.tick()?;
            }
            self.inflict(planned)?;
        }
        Ok(())
    }

    fn inflict(&mut self, planned: Planned) -> Result<()> {
        let Planned { target, fault, .. } = planned;
        if self.away.iter().any(|(away, ..)| *away == target) {
            return Ok(());
        }
        let back = match fault {
            Fault::Kill { away } => {
                self.programs.kill(target)?;
                match target {
                    Target::Gate => self.counts.gate_kills += 1,
                    Target::Worker(_) => self.counts.worker_kills += 1,
                }
                away
            }
            Fault::Freeze { still } => {
                self.programs.signal(target, Signal::SIGSTOP)?;
                self.counts.freezes += 1;
                still
            }
        };
        self.away.push((target, fault, Instant::now() + back));
        Ok(())
    }

    /// Brings back whose time has come, and notices who ended on its own.
    fn tick(&mut self) -> Result<()> {
        if self.stop.wanted() {
            bail!("ended early by a signal");
        }
        if let Some((target, status)) = self.programs.ended() {
            bail!("{target} ended on its own: {status}");
        }
        let now = Instant::now();
        let (back, away) = std::mem::take(&mut self.away)
            .into_iter()
            .partition(|(_, _, until)| *until <= now);
        self.away = away;
        for (target, fault, _) in back {
            self.bring_back(target, fault)?;
        }
        std::thread::sleep(TICK);
        Ok(())
    }

    fn bring_back(&mut self, target: Target, fault: Fault) -> Result<()> {
        if let Fault::Freeze { .. } = fault {
            return self.programs.signal(target, Signal::SIGCONT);
        }
        if let Target::Worker(index) = target {
            self.nothing_works_for(index)?;
        }
        self.counts.restarts += 1;
        self.programs.start(self.place, target)
    }

    /// While a Worker is away nothing runs for it; its wrappers see to that within a moment.
    fn nothing_works_for(&mut self, index: usize) -> Result<()> {
        let folder = self.place.of_worker(index, "trees");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = working_in(&folder);
            if left.is_empty() {
                return Ok(());
            }
            if self.stop.wanted() || deadline <= Instant::now() {
                self.still_running("after its Worker was killed", &left);
                return Ok(());
            }
            std::thread::sleep(TICK);
        }
    }

    fn still_running(&mut self, when: &str, left: &[Running]) {
        for process in left {
            self.findings.push(format!(
                "{when}, process {} still runs: {}",
                process.id, process.command
            ));
        }
    }

    /// Brings everybody back and waits for the end of all jobs.
    fn settle(&mut self, ended: impl Fn() -> bool, phase: &Phase) -> Result<()> {
        for (target, fault, _) in std::mem::take(&mut self.away) {
            self.bring_back(target, fault)?;
        }
        phase.settle();
        let deadline = Instant::now() + SETTLE;
        while !ended() && Instant::now() < deadline {
            self.tick()?;
        }
        Ok(())
    }

    /// Kills both Workers once more; those that follow leave no folder of the ones before.
    fn restart_workers(&mut self, gate: &Gate) -> Result<()> {
        for index in 0..WORKERS {
            self.programs.kill(Target::Worker(index))?;
            self.nothing_works_for(index)?;
        }
        for index in 0..WORKERS {
            self.programs.start(self.place, Target::Worker(index))?;
        }
        self.wait_for("every slot is connected and idle", || all_idle(gate))?;
        for index in 0..WORKERS {
            for name in ["trees", "runtime"] {
                self.left_behind(&self.place.of_worker(index, name), true)?;
            }
            // Every job has ended, so there is no result left to deliver.
            self.left_behind(&self.place.of_worker(index, "state/results"), false)?;
        }
        Ok(())
    }

    /// Nothing but files (locks), or nothing but folders, may be in a folder of a Worker.
    fn left_behind(&mut self, root: &std::path::Path, folders: bool) -> Result<()> {
        for entry in fs_err::read_dir(root)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() == folders {
                let path = entry.path();
                self.findings
                    .push(format!("`{}` was left behind", path.display()));
            }
        }
        Ok(())
    }

    fn stop_all(&mut self) -> Result<()> {
        for target in Target::all().collect::<Vec<_>>().into_iter().rev() {
            let status = self.programs.stop(target, PATIENCE)?;
            if !status.success() {
                self.findings
                    .push(format!("{target} stopped with {status}"));
            }
        }
        let folder = self.place.path("");
        let deadline = Instant::now() + PATIENCE;
        while !touching(&folder).is_empty() && Instant::now() < deadline {
            std::thread::sleep(TICK);
        }
        let left = touching(&folder);
        self.still_running("at the end", &left);
        Ok(())
    }

    fn judge(&mut self, ledger: &mut Ledger) -> Result<Summary> {
        self.findings.append(&mut ledger.findings);
        let rows = database::read(&self.place.path("gate/gate.db"), &mut self.findings)?;
        database::compare(&rows, &ledger.jobs, &mut self.findings);
        let lost = repository::compare(self.place, &rows, &ledger.jobs, &mut self.findings)?;
        self.counts.lost_refs = lost;
        self.counts.repeated = ledger.repeated;
        for target in Target::all() {
            let log = fs_err::read_to_string(self.place.path(&format!("{target}.log")))?;
            let panics = log.lines().filter(|line| line.contains("panicked at"));
            self.findings
                .extend(panics.map(|line| format!("{target}: {line}")));
        }
        Ok(Summary::of(&rows, std::mem::take(&mut self.counts)))
    }

    fn wait_for(&mut self, what: &str, ready: impl Fn() -> bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !ready() {
            if deadline <= Instant::now() {
                bail!("never: {what}");
            }
            self.tick()?;
        }
        Ok(())
    }
}

fn all_idle(gate: &Gate) -> bool {
    let Ok(answer) = gate.get("/v1/workers") else {
        return false;
    };
    let workers = answer.json();
    let slots = workers["items"].as_array().map_or(&[][..], Vec::as_slice);
    slots.len() == WORKERS * usize::from(SLOTS)
        && slots
            .iter()
            .all(|slot| slot["connected"] == true && slot["occupied"] == false)
}
