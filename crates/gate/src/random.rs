//! New ids, from the system's random source.

use forge_domain::{AttemptId, Generation, JobId};
use gate_link::AttachToken;

/// The random source gave nothing: no id may be guessed, so the Gate stops.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed")]
pub(crate) struct NoRandomness(#[source] getrandom::Error);

fn bytes() -> Result<[u8; 16], NoRandomness> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

/// A new job.
pub(crate) fn job() -> Result<JobId, NoRandomness> {
    bytes().map(JobId::from_bytes)
}

/// A new attempt.
pub(crate) fn attempt() -> Result<AttemptId, NoRandomness> {
    bytes().map(AttemptId::from_bytes)
}

/// What a later connection proves itself with.
pub(crate) fn token() -> Result<AttachToken, NoRandomness> {
    bytes().map(AttachToken::from_bytes)
}

/// A new session.
pub(crate) fn generation() -> Result<Generation, NoRandomness> {
    bytes().map(Generation::from_bytes)
}
