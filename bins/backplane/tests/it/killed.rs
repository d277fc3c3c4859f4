//! `unpack`, killed at any moment, and what the next run finds.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use plugin_archive::{Files, Limits, Modes};

use crate::bed::Bed;

const FILES: usize = 4_000;
const STAGE: &str = ".backplane-unpack-0123456789abcdef";

fn stages(bed: &Bed) -> Vec<String> {
    let names = bed.names(".").into_iter();
    names
        .filter(|name| name.starts_with(".backplane-unpack-"))
        .collect()
}

/// An archive that takes a while.
fn many() -> Bed {
    let bed = Bed::new();
    let files: Files = (0..FILES)
        .map(|n| (format!("d{}/f{n}", n % 50), vec![b'x'; 100]))
        .collect();
    let archive = plugin_archive::pack(&files, &Modes::new(), &Limits::default()).unwrap();
    bed.write("p.tar.gz", archive);
    bed
}

#[test]
fn a_killed_run_leaves_the_target_absent_or_whole_and_the_next_one_tidies() {
    let bed = many();
    for round in 0..5_u32 {
        let target = format!("out{round}");
        let mut child = bed
            .program(&["unpack", "p.tar.gz", "-o", &target])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while stages(&bed).is_empty() && child.try_wait().unwrap().is_none() {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "nothing happens"
            );
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(u64::from(round) * 15));
        child.kill().unwrap();
        child.wait().unwrap();
        let whole = bed.path(&target).exists();
        if whole {
            bed.backplane(&["diff", "p.tar.gz", &target]).expect(0);
        }
        assert!(stages(&bed).len() <= 1, "{:?}", stages(&bed));
    }
    bed.line("unpack p.tar.gz -o last").expect(0);
    assert!(stages(&bed).is_empty(), "{:?}", stages(&bed));
    bed.line("diff p.tar.gz last").expect(0);
}

#[test]
fn only_what_a_dead_run_left_is_swept() {
    let bed = Bed::with_package();
    bed.line("pack notes -o p.tar.gz").expect(0);
    bed.write(&format!("{STAGE}/tree/x"), "left over");
    let alive = ".backplane-unpack-00000000000000aa";
    bed.write(&format!("{alive}/tree/x"), "in use");
    let lock =
        safe_fs::lock_exclusive(&bed.path(alive).canonicalize().unwrap().join("lock")).unwrap();
    let others = [
        ".backplane-unpack-",
        ".backplane-unpack-0123456789ABCDEF",
        ".backplane-unpack-01234567",
    ];
    for other in others {
        bed.write(&format!("{other}/mine"), "mine");
    }
    bed.write("elsewhere/mine", "mine");
    let link = ".backplane-unpack-00000000000000bb";
    std::os::unix::fs::symlink("elsewhere", bed.path(link)).unwrap();
    bed.line("unpack p.tar.gz -o out").expect(0);
    assert!(!bed.path(STAGE).exists());
    assert_eq!(bed.read(&format!("{alive}/tree/x")), b"in use");
    for other in others.into_iter().chain(["elsewhere"]) {
        assert_eq!(bed.read(&format!("{other}/mine")), b"mine");
    }
    assert!(bed.path(link).is_symlink());
    drop(lock);
    bed.line("unpack p.tar.gz -o two").expect(0);
    assert!(!bed.path(alive).exists());
}
