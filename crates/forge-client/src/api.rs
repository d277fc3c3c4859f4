//! What can be asked of a Gate, in types.

use forge_domain::{JobId, PoolId};
use reqwest::StatusCode;
use strict_json::Json;

use crate::error::ClientError;
use crate::http::{Answer, GateClient};
use crate::view::{self, Event, Job, JobResult, Pool, Worker};

/// An answer as it came, and what this client understands of it.
#[derive(Debug, Clone)]
pub struct Seen<T> {
    /// Everything the Gate said, in its order.
    pub json: Json,
    /// What is understood.
    pub view: T,
}

/// What a submission led to.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The job.
    pub job: Seen<Job>,
    /// Whether it is new; otherwise the key had made it before.
    pub is_new: bool,
}

/// What `list` may be narrowed to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) status: Option<String>,
    pub(crate) pool: Option<String>,
    pub(crate) repository: Option<String>,
    pub(crate) limit: u16,
    pub(crate) cursor: Option<String>,
}

impl GateClient {
    /// Submits a job under a key; see `GateClient::submit` for what happens on a bad network.
    ///
    /// # Errors
    /// The Gate refuses it, or it is not known whether the Gate accepted it.
    pub async fn submit_job(&self, body: &[u8], key: &str) -> Result<Submitted, ClientError> {
        let answer = self.submit(body, key).await?;
        Ok(Submitted {
            is_new: answer.status == StatusCode::CREATED,
            job: self.seen_job(&answer)?,
        })
    }

    /// Asks for a job.
    ///
    /// # Errors
    /// There is no such job, or the Gate cannot be asked.
    pub async fn job(&self, id: &JobId) -> Result<Seen<Job>, ClientError> {
        let path = ["v1", "jobs", id.as_ref()];
        let json = self
            .get_json(&path, &[], "show the job")
            .await
            .map_err(|error| no_job(error, id))?;
        self.seen(json, Job::decode)
    }

    /// Asks for everything that is kept of a job that has ended.
    ///
    /// # Errors
    /// There is no such job, it has not ended, or the Gate cannot be asked.
    pub async fn result(&self, id: &JobId) -> Result<Seen<JobResult>, ClientError> {
        let path = ["v1", "jobs", id.as_ref(), "result"];
        let json = self
            .get_json(&path, &[], "show the result")
            .await
            .map_err(|error| no_job(error, id))?;
        self.seen(json, JobResult::decode)
    }

    /// Asks for the text that a job made.
    ///
    /// # Errors
    /// There is no such job, it made none, or the Gate cannot be asked.
    pub async fn output(&self, id: &JobId) -> Result<Vec<u8>, ClientError> {
        let path = ["v1", "jobs", id.as_ref(), "output"];
        let answer = self.get(&path, &[], "give the output").await;
        Ok(answer.map_err(|error| no_job(error, id))?.body)
    }

    /// Asks for a job's journal, oldest entry first.
    pub(crate) async fn events(&self, id: &JobId) -> Result<Vec<Seen<Event>>, ClientError> {
        let path = ["v1", "jobs", id.as_ref(), "events"];
        let json = self
            .get_json(&path, &[], "show the events")
            .await
            .map_err(|error| no_job(error, id))?;
        Ok(self.seen_items(json, Event::decode)?.0)
    }

    /// Asks for a page of jobs, newest first, and the cursor of the next.
    pub(crate) async fn jobs(
        &self,
        filter: &Filter,
    ) -> Result<(Vec<Seen<Job>>, Option<String>), ClientError> {
        let limit = filter.limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        let narrowing = [
            ("status", &filter.status),
            ("pool", &filter.pool),
            ("repository_id", &filter.repository),
            ("cursor", &filter.cursor),
        ];
        for (name, value) in narrowing {
            query.extend(value.as_deref().map(|value| (name, value)));
        }
        let json = self.get_json(&["v1", "jobs"], &query, "list jobs").await?;
        self.seen_items(json, Job::decode)
    }

    /// Asks for all slots of all Workers.
    ///
    /// # Errors
    /// The Gate cannot be asked.
    pub async fn workers(&self) -> Result<Vec<Seen<Worker>>, ClientError> {
        let json = self
            .get_json(&["v1", "workers"], &[], "list Workers")
            .await?;
        Ok(self.seen_items(json, Worker::decode)?.0)
    }

    /// Asks for all pools.
    ///
    /// # Errors
    /// The Gate cannot be asked, or knows no such question.
    pub async fn pools(&self) -> Result<Vec<Seen<Pool>>, ClientError> {
        let json = self.get_json(&["v1", "pools"], &[], "list pools").await?;
        Ok(self.seen_items(json, Pool::decode)?.0)
    }

    /// Stops giving out jobs of a pool; a body is the reason.
    pub(crate) async fn pause(
        &self,
        pool: &PoolId,
        body: Option<&[u8]>,
    ) -> Result<Seen<Pool>, ClientError> {
        let path = ["v1", "pools", pool.as_str(), "pause"];
        let answer = self.post(&path, body, None, "pause the pool").await;
        self.seen_pool(answer, pool)
    }

    /// Gives out jobs of a pool again.
    pub(crate) async fn resume(&self, pool: &PoolId) -> Result<Seen<Pool>, ClientError> {
        let path = ["v1", "pools", pool.as_str(), "resume"];
        let answer = self.post(&path, None, None, "resume the pool").await;
        self.seen_pool(answer, pool)
    }

    fn seen_pool(
        &self,
        answer: Result<Answer, ClientError>,
        pool: &PoolId,
    ) -> Result<Seen<Pool>, ClientError> {
        let answer = answer.map_err(|error| match error {
            ClientError::Refused { code, .. } if code == "pool_not_found" => {
                ClientError::NotFound {
                    what: format!("pool `{pool}`"),
                }
            }
            other => other,
        })?;
        self.seen(self.json(&answer.body)?, Pool::decode)
    }

    /// Cancels a job.
    pub(crate) async fn cancel(&self, id: &JobId) -> Result<Seen<Job>, ClientError> {
        self.act(id, "cancel", "cancel the job").await
    }

    /// Tries a job again: at once where it waits for that, else as a new job.
    pub(crate) async fn retry(&self, id: &JobId) -> Result<Seen<Job>, ClientError> {
        self.act(id, "retry", "retry the job").await
    }

    async fn act(&self, id: &JobId, verb: &str, what: &str) -> Result<Seen<Job>, ClientError> {
        let path = ["v1", "jobs", id.as_ref(), verb];
        let answer = self.post(&path, None, None, what).await;
        self.seen_job(&answer.map_err(|error| no_job(error, id))?)
    }

    fn seen_job(&self, answer: &Answer) -> Result<Seen<Job>, ClientError> {
        self.seen(self.json(&answer.body)?, Job::decode)
    }

    fn seen<T>(
        &self,
        json: Json,
        decode: fn(&Json) -> Result<T, strict_json::FieldError>,
    ) -> Result<Seen<T>, ClientError> {
        match decode(&json) {
            Ok(view) => Ok(Seen { json, view }),
            Err(source) => Err(ClientError::Shape {
                url: self.url().to_owned(),
                source,
            }),
        }
    }

    fn seen_items<T>(
        &self,
        json: Json,
        decode: fn(&Json) -> Result<T, strict_json::FieldError>,
    ) -> Result<(Vec<Seen<T>>, Option<String>), ClientError> {
        let (items, cursor) = view::items(json).map_err(|source| ClientError::Shape {
            url: self.url().to_owned(),
            source,
        })?;
        let items = items.into_iter().map(|item| self.seen(item, decode));
        Ok((items.collect::<Result<_, _>>()?, cursor))
    }
}

fn no_job(error: ClientError, id: &JobId) -> ClientError {
    match error {
        // A job that exists may still lack what was asked for, and the Gate says so by a code.
        ClientError::Refused {
            status: 404, code, ..
        } if matches!(code.as_str(), "" | "job_not_found") => ClientError::NotFound {
            what: format!("job `{id}`"),
        },
        other => other,
    }
}
