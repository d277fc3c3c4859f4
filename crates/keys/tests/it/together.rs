//! Several changes of one store at once lose nothing, and readers see whole stores.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use attest_verify::trust::Trust;
use keys::{KeyDir, KeyId, KeyStatus, Revocation, TrustDir, load_trust};

use crate::support::{Workspace, name, time};

const WRITERS: usize = 4;
const KEYS: usize = 4;

#[test]
fn changes_at_once_lose_nothing() {
    let workspace = Workspace::new();
    let done = AtomicBool::new(false);
    let now = time("2026-11-30T12:00:00Z");
    let made: Vec<KeyId> = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut stores = 0_usize;
            while !done.load(Ordering::Relaxed) {
                match load_trust(workspace.trust.path(), None) {
                    Trust::Store(_) => stores += 1,
                    Trust::Absent { .. } => {}
                    Trust::Unreadable(text) => panic!("half a store: {text}"),
                }
            }
            stores
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    // Each writer opens for itself, as a process does.
                    let keys = KeyDir::open(&workspace.path, None);
                    let trust = TrustDir::of_workspace(&workspace.path);
                    let mut made = Vec::new();
                    for number in 0..KEYS {
                        let id = keys.generate(&trust, &name("a")).unwrap();
                        if number % 2 == 0 {
                            assert_eq!(trust.revoke(id.as_str(), now).unwrap(), Revocation::Done);
                        }
                        made.push(id);
                    }
                    made
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // First of all, so that a writer that failed does not keep the reader for ever.
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
        ended.into_iter().flat_map(|made| made.unwrap()).collect()
    });
    let store = workspace.trust.load().unwrap();
    let listed: BTreeSet<KeyId> = store
        .policy()
        .entries()
        .iter()
        .map(|entry| entry.id)
        .collect();
    assert_eq!(listed, made.iter().copied().collect());
    assert_eq!(listed.len(), WRITERS * KEYS);
    let revoked = store
        .policy()
        .entries()
        .iter()
        .filter(|entry| entry.status != KeyStatus::Trusted);
    assert_eq!(revoked.count(), WRITERS * KEYS / 2);
    assert!(made.iter().all(|id| workspace.keys.holds(id)));
    // One policy, and a pair of files for each key; no temporary file is left.
    assert_eq!(workspace.files().len(), 2 * WRITERS * KEYS + 3);
}

#[test]
fn a_store_that_somebody_holds_is_waited_for() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let folder = fs_err::File::open(workspace.trust.path()).unwrap();
    folder.lock().unwrap();
    let before = workspace.files();
    // Reading needs no lock.
    assert!(workspace.keys.signer(&workspace.trust, None).is_ok());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| workspace.generate());
        thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(
            workspace.files(),
            before,
            "nothing is written without the lock"
        );
        drop(folder);
        assert_ne!(waiting.join().unwrap(), id);
    });
    assert_eq!(workspace.trust.list(&workspace.keys).unwrap().len(), 2);
}
