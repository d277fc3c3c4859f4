//! How far steps were kept apart from the machine, in honest words.
//!
//! A control counts as enforced only if it held for every step that ran. The rows speak of steps
//! that ran as plain processes; steps in capsules are listed apart, under the controls of
//! [`crate::capsule`].

use attest_receipt::receipt::{Control, ControlStatus, Isolation, IsolationMode};

/// What one step of a pipeline ran as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran<'a> {
    /// Its name.
    pub step: &'a str,
    /// Whether its result came from the cache.
    pub cache_hit: bool,
    /// Whether it ran in a capsule.
    pub capsule: bool,
    /// Whether it would have been killed after a time.
    pub timeout: bool,
}

/// Describes the run of a pipeline.
#[must_use]
pub fn pipeline(hermetic: bool, ran: &[Ran<'_>]) -> Isolation {
    let mut isolation = plain_processes(environment(hermetic), timeout(ran));
    isolation.controls.push(inputs(ran));
    isolation.capsule_steps = ran
        .iter()
        .filter(|ran| ran.capsule)
        .map(|ran| ran.step.to_owned())
        .collect();
    isolation
}

/// Describes the run of a wrapped command.
#[must_use]
pub fn wrapped() -> Isolation {
    let mut isolation = plain_processes(environment(false), no_limit("timeout"));
    isolation.controls.push(not_enforced(
        "inputs",
        "declared inputs are hashed before and after the command; a change that is undone before \
         it ends is not seen",
    ));
    isolation
}

fn plain_processes(environment: Control, timeout: Control) -> Isolation {
    Isolation {
        mode: IsolationMode::None,
        platform: std::env::consts::OS.to_owned(),
        controls: vec![
            not_enforced("network", "steps run as ordinary processes"),
            not_enforced("filesystem", "steps see the whole filesystem"),
            not_enforced("capabilities", "steps keep the runner's privileges"),
            environment,
            no_limit("memory"),
            no_limit("open-files"),
            no_limit("cpu"),
            timeout,
        ],
        capsule_steps: Vec::new(),
    }
}

fn environment(hermetic: bool) -> Control {
    if hermetic {
        enforced(
            "environment",
            "only PATH is inherited; SOURCE_DATE_EPOCH, TZ, LC_ALL and LANG are fixed",
        )
    } else {
        not_enforced("environment", "the runner's environment is inherited")
    }
}

fn timeout(ran: &[Ran<'_>]) -> Control {
    let executed = ran.iter().filter(|ran| !ran.cache_hit);
    let (all, limited) = executed.fold((0_usize, 0_usize), |(all, limited), ran| {
        (all + 1, limited + usize::from(ran.timeout))
    });
    match limited {
        0 => no_limit("timeout"),
        _ if limited == all => enforced(
            "timeout",
            "a step is killed with everything that it started when its timeout_secs are over",
        ),
        _ => not_enforced(
            "timeout",
            format!(
                "{limited} of {all} steps declare timeout_secs and are killed with everything that \
                 they started when those are over; the others have no limit"
            ),
        ),
    }
}

fn inputs(ran: &[Ran<'_>]) -> Control {
    let executed = ran.iter().filter(|ran| !ran.cache_hit);
    let (all, kept) = executed.fold((0_usize, 0_usize), |(all, kept), ran| {
        (all + 1, kept + usize::from(ran.capsule))
    });
    if all == 0 {
        not_enforced("inputs", "no step executed (every step was a cache hit)")
    } else if kept == all {
        enforced(
            "inputs",
            "every step ran in a capsule that saw its declared inputs read-only, from a snapshot \
             with the recorded hash",
        )
    } else {
        not_enforced(
            "inputs",
            format!(
                "declared inputs are hashed before and after each step; a change that is undone \
                 before the step ends is not seen ({kept} of {all} steps ran in a capsule, which \
                 prevents it)"
            ),
        )
    }
}

fn no_limit(name: &str) -> Control {
    not_enforced(name, "no limit")
}

fn enforced(name: &str, detail: impl Into<String>) -> Control {
    control(name, ControlStatus::Enforced, detail)
}

fn not_enforced(name: &str, detail: impl Into<String>) -> Control {
    control(name, ControlStatus::NotEnforced, detail)
}

fn control(name: &str, status: ControlStatus, detail: impl Into<String>) -> Control {
    Control {
        name: name.to_owned(),
        status,
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Ran<'_> = Ran {
        step: "plain",
        cache_hit: false,
        capsule: false,
        timeout: false,
    };
    const LIMITED: Ran<'_> = Ran {
        step: "limited",
        timeout: true,
        ..PLAIN
    };
    const BOXED: Ran<'_> = Ran {
        step: "boxed",
        capsule: true,
        ..PLAIN
    };
    const CACHED: Ran<'_> = Ran {
        step: "cached",
        cache_hit: true,
        ..PLAIN
    };

    fn row(isolation: &Isolation, name: &str) -> (ControlStatus, String) {
        let found = isolation.controls.iter().find(|row| row.name == name);
        let row = found.unwrap();
        (row.status, row.detail.clone())
    }

    #[test]
    fn the_rows_stand_in_their_order() {
        let names = [
            "network",
            "filesystem",
            "capabilities",
            "environment",
            "memory",
            "open-files",
            "cpu",
            "timeout",
            "inputs",
        ];
        for isolation in [pipeline(false, &[PLAIN]), pipeline(true, &[]), wrapped()] {
            let found = isolation.controls.iter().map(|row| row.name.as_str());
            assert!(found.eq(names));
        }
    }

    #[test]
    fn a_limit_counts_only_where_every_step_had_it() {
        let status = |ran: &[Ran<'_>]| row(&pipeline(false, ran), "timeout").0;
        assert_eq!(status(&[PLAIN]), ControlStatus::NotEnforced);
        assert_eq!(status(&[LIMITED]), ControlStatus::Enforced);
        assert_eq!(status(&[LIMITED, CACHED]), ControlStatus::Enforced);
        let (mixed, detail) = row(&pipeline(false, &[PLAIN, LIMITED]), "timeout");
        assert_eq!(mixed, ControlStatus::NotEnforced);
        assert!(detail.starts_with("1 of 2 steps"), "{detail}");
        assert_eq!(row(&wrapped(), "timeout").1, "no limit");
    }

    #[test]
    fn inputs_are_enforced_in_capsules_alone() {
        let status = |ran: &[Ran<'_>]| row(&pipeline(false, ran), "inputs").0;
        assert_eq!(status(&[BOXED]), ControlStatus::Enforced);
        assert_eq!(status(&[BOXED, PLAIN]), ControlStatus::NotEnforced);
        assert_eq!(status(&[CACHED]), ControlStatus::NotEnforced);
        let isolation = pipeline(true, &[PLAIN, BOXED]);
        assert_eq!(isolation.capsule_steps, ["boxed"]);
        assert_eq!(row(&isolation, "environment").0, ControlStatus::Enforced);
        assert_eq!(
            row(&pipeline(false, &[]), "environment").0,
            ControlStatus::NotEnforced
        );
    }
}
