//! Lists, workers and absent things.

use forge_domain::JobStatus;
use gate_store::{JobFilter, MAX_PAGE, NewJob, Page, Store, StoreError};

use super::cases;
use crate::fixture::{
    Lane, POOL, at, attempt_id, coding_job, job_id, policy, slot, submit, text_job,
};

cases! {
    r25_pages_cover_a_list_once_newest_first
    filters_choose_jobs
    a_cursor_of_another_list_is_refused
    what_is_not_there_is_not_there
    workers_are_listed_with_what_they_do
}

async fn r25_pages_cover_a_list_once_newest_first(store: &dyn Store) {
    let mut ids = Vec::new();
    for index in 0..25 {
        ids.push(submit(store, text_job(), at(index / 3)).await.id);
    }
    ids.reverse();
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = store
            .list_jobs(JobFilter::default(), Page { limit: 10, cursor })
            .await
            .unwrap();
        assert!(page.items.len() <= 10);
        seen.extend(page.items.iter().map(|job| job.id));
        // A job that comes while somebody pages does not move the rest.
        submit(store, text_job(), at(100)).await;
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ids);
    for limit in [0, 1, MAX_PAGE, MAX_PAGE + 1, u16::MAX] {
        let page = store
            .list_jobs(
                JobFilter::default(),
                Page {
                    limit,
                    cursor: None,
                },
            )
            .await
            .unwrap();
        assert_eq!(
            page.items.len(),
            usize::from(limit.clamp(1, MAX_PAGE)).min(28)
        );
    }
}

async fn filters_choose_jobs(store: &dyn Store) {
    let text = submit(store, text_job(), at(0)).await;
    let coding = submit(store, coding_job(), at(1)).await;
    let other = submit(
        store,
        NewJob {
            policy: policy("other", false, 1),
            ..text_job()
        },
        at(2),
    )
    .await;
    store.cancel(text.id, at(3)).await.unwrap();
    let list = async |filter: JobFilter| {
        let page = store
            .list_jobs(
                filter,
                Page {
                    limit: 10,
                    cursor: None,
                },
            )
            .await
            .unwrap();
        page.items.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let all = JobFilter::default();
    assert_eq!(list(all.clone()).await, [other.id, coding.id, text.id]);
    assert_eq!(
        list(JobFilter {
            status: Some(JobStatus::Cancelled),
            ..all.clone()
        })
        .await,
        [text.id]
    );
    assert_eq!(
        list(JobFilter {
            status: Some(JobStatus::Pending),
            ..all.clone()
        })
        .await,
        [other.id, coding.id]
    );
    assert_eq!(
        list(JobFilter {
            pool: Some(POOL.parse().unwrap()),
            ..all.clone()
        })
        .await,
        [coding.id, text.id]
    );
    let repository = Some("agent-forge".parse().unwrap());
    assert_eq!(
        list(JobFilter {
            repository,
            ..all.clone()
        })
        .await,
        [coding.id]
    );
    let both = JobFilter {
        status: Some(JobStatus::Pending),
        pool: Some("other".parse().unwrap()),
        repository: None,
    };
    assert_eq!(list(both).await, [other.id]);
    assert_eq!(
        list(JobFilter {
            pool: Some("none".parse().unwrap()),
            ..all
        })
        .await,
        []
    );
}

async fn a_cursor_of_another_list_is_refused(store: &dyn Store) {
    for index in 0..3 {
        submit(store, text_job(), at(index)).await;
    }
    let page = store
        .list_jobs(
            JobFilter::default(),
            Page {
                limit: 1,
                cursor: None,
            },
        )
        .await
        .unwrap();
    let filter = JobFilter {
        status: Some(JobStatus::Pending),
        ..JobFilter::default()
    };
    for cursor in [
        page.next_cursor.unwrap(),
        "nonsense".to_owned(),
        String::new(),
    ] {
        let refused = store
            .list_jobs(
                filter.clone(),
                Page {
                    limit: 1,
                    cursor: Some(cursor),
                },
            )
            .await
            .unwrap_err();
        assert!(refused.is_refusal() && matches!(refused, StoreError::InvalidCursor));
    }
}

async fn what_is_not_there_is_not_there(store: &dyn Store) {
    assert_eq!(store.job(job_id()).await.unwrap(), None);
    assert_eq!(store.attempts(job_id()).await.unwrap(), None);
    assert_eq!(store.result(job_id()).await.unwrap(), None);
    assert_eq!(store.output(job_id()).await.unwrap(), None);
    assert_eq!(store.events(job_id()).await.unwrap(), []);
    assert_eq!(store.evidence(job_id(), attempt_id()).await.unwrap(), None);
    assert_eq!(store.worker(slot("nobody")).await.unwrap(), None);
    assert_eq!(store.workers().await.unwrap(), []);
    let job = submit(store, text_job(), at(0)).await;
    assert_eq!(store.evidence(job.id, attempt_id()).await.unwrap(), None);
    assert_eq!(store.attempts(job.id).await.unwrap(), Some(Vec::new()));
}

async fn workers_are_listed_with_what_they_do(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let second = Lane::connect(store, "b#1", at(1)).await;
    let first = Lane::connect(store, "b", at(2)).await;
    let other = Lane::connect(store, "a", at(3)).await;
    second.claim(store, at(4)).await.unwrap();
    store
        .disconnect_slot(other.slot.clone(), other.generation, at(5))
        .await
        .unwrap();
    let workers = store.workers().await.unwrap();
    let names: Vec<String> = workers
        .iter()
        .map(|worker| worker.slot.to_string())
        .collect();
    assert_eq!(names, ["a", "b", "b#1"]);
    assert_eq!((workers[0].connected, workers[0].last_seen), (false, at(5)));
    assert_eq!((workers[1].connected, workers[1].active_job), (true, None));
    assert_eq!(workers[2].active_job, Some(job.id));
    assert_eq!(
        store.worker(first.slot).await.unwrap().as_ref(),
        Some(&workers[1])
    );
}
