//! Which children of this process are its own, so that those it only adopted can be told apart.
//!
//! A host that is a child subreaper adopts what a killed wrapper watched over, wherever in the
//! tree, and can end it.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::process::Child;

static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A child that this process started, for as long as it may need its place among them.
#[derive(Debug)]
pub(crate) struct Own(Option<u32>);

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            children().remove(&pid);
        }
    }
}

/// Starts a child that no look at the adopted takes for one of them.
pub(crate) fn started(start: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, Own)> {
    let mut own = children();
    let child = start()?;
    let pid = child.id();
    own.extend(pid);
    Ok((child, Own(pid)))
}

fn children() -> MutexGuard<'static, BTreeSet<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process adopt what its wrappers leave when they are killed, so that it can be ended
/// then; without that such processes stay. Orphans of the host's other children become its
/// children too, which a host that runs for long has to reap.
///
/// # Errors
/// The system knows no such thing.
pub fn adopt_orphans() -> io::Result<()> {
    #[cfg(all(target_os = "linux", not(portable_process)))]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Ends and reaps all that this process adopted, with everything below.
#[cfg(all(target_os = "linux", not(portable_process)))]
pub(crate) async fn end_the_adopted() -> crate::error::Rest {
    use std::time::Duration;

    use crate::error::Rest;
    use crate::linux::descendants;
    use tokio::time::{Instant, sleep};

    /// How long that may take.
    const BOUND: Duration = Duration::from_millis(400);
    /// The pause between two looks.
    const PASS: Duration = Duration::from_millis(5);

    if !matches!(rustix::process::child_subreaper(), Ok(Some(_))) {
        return Rest::MayRun;
    }
    let deadline = Instant::now() + BOUND;
    loop {
        let left = {
            let own = children();
            descendants::end_children(|pid| u32::try_from(pid).is_ok_and(|pid| !own.contains(&pid)))
        };
        if !left {
            return Rest::Ended;
        }
        if Instant::now() >= deadline {
            return Rest::MayRun;
        }
        sleep(PASS).await;
    }
}
