//! Why a handler could not do what it was asked, for the host and for whoever reads the log.

use std::error::Error;
use std::fmt;

use forge_plugin_protocol::FailureCategory;

/// A handler's failure: the category goes to the host, the reason to standard error.
///
/// Every error becomes an `execution_failed` by `?`, with its causes as the reason. For that to
/// be possible this type is not an error itself.
#[derive(Clone, Debug)]
pub struct Failure {
    category: FailureCategory,
    reason: String,
}

impl Failure {
    /// Makes a failure of the operation itself.
    pub fn execution_failed(reason: impl Into<String>) -> Self {
        Self::new(FailureCategory::ExecutionFailed, reason)
    }

    /// Makes a refusal of a request that makes no sense to this plugin.
    pub fn invalid_request(reason: impl Into<String>) -> Self {
        Self::new(FailureCategory::InvalidRequest, reason)
    }

    /// Makes a refusal of a request that this plugin, or what it relies on, cannot serve.
    pub fn incompatible(reason: impl Into<String>) -> Self {
        Self::new(FailureCategory::Incompatible, reason)
    }

    /// Makes the answer to a cancellation.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(FailureCategory::Cancelled, "cancelled")
    }

    /// Makes a failure of the given category.
    pub fn new(category: FailureCategory, reason: impl Into<String>) -> Self {
        Self {
            category,
            reason: reason.into(),
        }
    }

    /// Returns the category.
    #[must_use]
    pub const fn category(&self) -> FailureCategory {
        self.category
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::execution_failed(chain(&error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

/// Writes an error and its causes on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_becomes_an_execution_failure_with_its_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot save")]
        struct Outer(#[source] std::io::Error);

        fn handler() -> Result<(), Failure> {
            Err(Outer(std::io::Error::other("disk on fire")))?;
            Ok(())
        }
        let failure = handler().unwrap_err();
        assert_eq!(failure.category(), FailureCategory::ExecutionFailed);
        assert_eq!(failure.reason(), "cannot save: disk on fire");
    }
}
