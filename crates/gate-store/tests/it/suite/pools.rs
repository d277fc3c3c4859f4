//! Pausing and resuming pools, and where a job stands in its queue.

use forge_domain::{AttemptStatus, Completion, FailureCode, Priority, WorkerFailure};
use gate_store::{Ahead, MAX_AHEAD, NewJob, Pause, PauseReason, PoolView, Store};

use super::cases;
use crate::fixture::{Lane, POOL, TTL, at, job_id, policy, submit, text_job, text_result};

cases! {
    a_paused_pool_gives_out_no_job_and_its_attempts_go_on
    a_paused_pool_is_not_ready_and_another_is
    a_job_that_becomes_due_waits_for_its_paused_pool
    pausing_and_resuming_again_changes_nothing
    pools_are_counted_by_what_waits
    a_place_in_the_queue_follows_the_order_of_claims
    a_long_queue_is_counted_to_a_limit
    a_job_that_does_not_wait_has_no_place
}

fn pool() -> forge_domain::PoolId {
    POOL.parse().unwrap()
}

fn reason(text: &str) -> Option<PauseReason> {
    Some(text.parse().unwrap())
}

fn urgent(priority: i64) -> NewJob {
    NewJob {
        priority: Priority::new(priority).unwrap(),
        ..text_job()
    }
}

fn elsewhere() -> NewJob {
    NewJob {
        policy: policy("other", false, 3),
        ..text_job()
    }
}

async fn a_paused_pool_gives_out_no_job_and_its_attempts_go_on(store: &dyn Store) {
    let lane = Lane::connect(store, "w", at(0)).await;
    submit(store, text_job(), at(0)).await;
    let running = lane.claim(store, at(1)).await.unwrap();
    submit(store, text_job(), at(1)).await;
    store.pause_pool(pool(), None, at(2)).await.unwrap();
    let idle = Lane::connect(store, "v", at(2)).await;
    assert!(idle.claim(store, at(3)).await.is_none());
    let beat = store.heartbeat(running.job, lane.holder(&running), at(4));
    assert_eq!(beat.await.unwrap(), at(4 + TTL));
    let (done, next) = store
        .complete_and_claim(
            running.job,
            lane.holder(&running),
            text_result("done"),
            lane.request(),
            at(5),
        )
        .await
        .unwrap();
    assert!(!done.repeated && next.is_none());
    assert!(store.resume_pool(pool()).await.unwrap());
    assert!(lane.claim(store, at(6)).await.is_some());
}

async fn a_paused_pool_is_not_ready_and_another_is(store: &dyn Store) {
    let other = Lane::connect_to(store, "o", "other", at(0)).await;
    Lane::connect(store, "w", at(0)).await;
    submit(store, text_job(), at(0)).await;
    submit(store, elsewhere(), at(0)).await;
    store.pause_pool(pool(), None, at(1)).await.unwrap();
    let ready = store.ready_pools(at(2)).await.unwrap();
    assert_eq!(ready, ["other".parse().unwrap()]);
    assert!(other.claim(store, at(2)).await.is_some());
    store.resume_pool(pool()).await.unwrap();
    assert_eq!(store.ready_pools(at(3)).await.unwrap(), [pool()]);
}

async fn a_job_that_becomes_due_waits_for_its_paused_pool(store: &dyn Store) {
    let lane = Lane::connect(store, "w", at(0)).await;
    submit(store, text_job(), at(0)).await;
    lane.claim(store, at(0)).await.unwrap();
    store.expire_due(at(TTL)).await.unwrap();
    store.pause_pool(pool(), None, at(TTL)).await.unwrap();
    assert!(store.ready_pools(at(TTL + 60)).await.unwrap().is_empty());
    assert!(lane.claim(store, at(TTL + 60)).await.is_none());
    store.resume_pool(pool()).await.unwrap();
    let lease = lane.claim(store, at(TTL + 60)).await.unwrap();
    assert_eq!(lease.ordinal, 2);
}

async fn pausing_and_resuming_again_changes_nothing(store: &dyn Store) {
    assert!(!store.resume_pool(pool()).await.unwrap());
    let first = store.pause_pool(pool(), reason("disk"), at(1));
    let first = first.await.unwrap();
    assert!(!first.repeated);
    let pause = Pause {
        since: at(1),
        reason: reason("disk"),
    };
    assert_eq!(first.pause, pause);
    let again = store.pause_pool(pool(), None, at(2)).await.unwrap();
    assert_eq!((again.repeated, again.pause), (true, pause));
    let reworded = store.pause_pool(pool(), reason("new disk"), at(3));
    let reworded = reworded.await.unwrap();
    assert_eq!((reworded.repeated, reworded.pause.since), (true, at(1)));
    let pools = store.pools().await.unwrap();
    assert_eq!(pools.len(), 1);
    assert_eq!(pools[0].pause, Some(reworded.pause));
    assert!(store.resume_pool(pool()).await.unwrap());
    assert!(!store.resume_pool(pool()).await.unwrap());
    assert!(store.pools().await.unwrap().is_empty());
}

async fn pools_are_counted_by_what_waits(store: &dyn Store) {
    let lane = Lane::connect(store, "w", at(0)).await;
    for second in 0..4 {
        submit(store, text_job(), at(second)).await;
    }
    submit(store, elsewhere(), at(9)).await;
    let failed = lane.claim(store, at(10)).await.unwrap();
    let failure = Completion::Failed(WorkerFailure::ExecutionFailed);
    store
        .complete(failed.job, lane.holder(&failed), failure, at(11))
        .await
        .unwrap();
    lane.claim(store, at(11)).await.unwrap();
    let coding = PoolView {
        ready: 2,
        oldest: Some(at(2)),
        retrying: 1,
        leased: 1,
        ..PoolView::empty(pool())
    };
    let other = PoolView {
        ready: 1,
        oldest: Some(at(9)),
        ..PoolView::empty("other".parse().unwrap())
    };
    assert_eq!(store.pools().await.unwrap(), [coding, other]);
}

async fn a_place_in_the_queue_follows_the_order_of_claims(store: &dyn Store) {
    let mut jobs = Vec::new();
    for (priority, second) in [(0, 1), (5, 2), (0, 3), (-5, 0), (0, 3)] {
        jobs.push(submit(store, urgent(priority), at(second)).await.id);
    }
    submit(store, elsewhere(), at(0)).await;
    let mut places = Vec::new();
    for job in &jobs {
        let place = store.queue_place(*job, at(9)).await.unwrap().unwrap();
        let ahead = place.ahead.unwrap();
        assert!(!ahead.more);
        places.push((ahead.jobs, *job));
    }
    places.sort_unstable();
    let lane = Lane::connect(store, "w", at(9)).await;
    for (ahead, (place, job)) in (0..).zip(places) {
        assert_eq!(place, ahead);
        let lease = lane.claim(store, at(9)).await.unwrap();
        assert_eq!(lease.job, job);
        let holder = lane.holder(&lease);
        store
            .complete(lease.job, holder, text_result("x"), at(9))
            .await
            .unwrap();
    }
}

async fn a_long_queue_is_counted_to_a_limit(store: &dyn Store) {
    let mut answers = Vec::new();
    for _ in 0..=MAX_AHEAD {
        answers.push(store.submit(text_job(), at(0)));
    }
    for answer in answers {
        answer.await.unwrap();
    }
    let ahead = |jobs, more| Some(Ahead { jobs, more });
    let last = submit(store, text_job(), at(1)).await;
    let place = store.queue_place(last.id, at(1)).await.unwrap().unwrap();
    assert_eq!(place.ahead, ahead(MAX_AHEAD, true));
    let lane = Lane::connect(store, "w", at(2)).await;
    lane.claim(store, at(2)).await.unwrap();
    let place = store.queue_place(last.id, at(2)).await.unwrap().unwrap();
    assert_eq!(place.ahead, ahead(MAX_AHEAD, false));
}

async fn a_job_that_does_not_wait_has_no_place(store: &dyn Store) {
    assert_eq!(store.queue_place(job_id(), at(0)).await.unwrap(), None);
    let job = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    Lane::connect(store, "v#1", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    assert_eq!(store.queue_place(job.id, at(1)).await.unwrap(), None);
    let failure = Completion::Failed(WorkerFailure::ExecutionFailed);
    store
        .complete(lease.job, lane.holder(&lease), failure, at(2))
        .await
        .unwrap();
    submit(store, text_job(), at(2)).await;
    lane.claim(store, at(2)).await.unwrap();
    let place = store.queue_place(job.id, at(2)).await.unwrap().unwrap();
    assert_eq!(place.ahead, None);
    let last = (
        AttemptStatus::RetryableFailed,
        Some(FailureCode::ExecutionFailed),
    );
    assert_eq!(place.last, Some(last));
    let slots: Vec<_> = place
        .slots
        .iter()
        .map(|slot| (slot.slot.to_string(), slot.working))
        .collect();
    assert_eq!(slots, [("v#1".into(), false), ("w".into(), true)]);
    let due = store.queue_place(job.id, at(3)).await.unwrap().unwrap();
    assert!(due.ahead.is_some());
    store.cancel(job.id, at(4)).await.unwrap();
    assert_eq!(store.queue_place(job.id, at(4)).await.unwrap(), None);
}
