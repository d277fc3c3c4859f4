//! What there is of a body, in memory and perhaps in a file: it stays when an attempt breaks off.

use backplane_client::{Fault, TransportError};

use crate::resume_file::ResumeFile;

/// What there is of a body; never more than the limit.
#[derive(Debug)]
pub(crate) struct Partial {
    url: String,
    limit: usize,
    bytes: Vec<u8>,
    /// The strong tag of the whole, without which the rest cannot be asked for.
    tag: Option<String>,
    file: Option<ResumeFile>,
}

impl Partial {
    /// Starts with what a file has of the same URL, or with nothing.
    pub(crate) fn new(url: &str, limit: usize, file: Option<ResumeFile>) -> Self {
        let mut partial = Self {
            url: url.to_owned(),
            limit,
            bytes: Vec::new(),
            tag: None,
            file,
        };
        let kept = partial.file.as_mut().and_then(|file| file.load(url, limit));
        if let Some((tag, bytes)) = kept {
            partial.tag = Some(tag);
            partial.bytes = bytes;
        }
        partial
    }

    /// Returns from where on the body is missing, and the tag of the whole.
    pub(crate) fn missing(&self) -> Option<(usize, &str)> {
        let tag = self.tag.as_deref()?;
        (!self.bytes.is_empty()).then_some((self.bytes.len(), tag))
    }

    /// Starts anew; with a tag, what comes is worth keeping.
    pub(crate) fn begin(&mut self, tag: Option<String>) {
        self.bytes = Vec::new();
        self.tag = tag;
        let Some(file) = &mut self.file else {
            return;
        };
        let begun = match &self.tag {
            Some(tag) => file.begin(&self.url, tag),
            None => file.clear(),
        };
        if begun.is_err() {
            self.lose_file();
        }
    }

    /// Takes more of the body.
    pub(crate) fn push(&mut self, more: &[u8]) -> Result<(), TransportError> {
        if more.len() > self.limit.saturating_sub(self.bytes.len()) {
            self.begin(None);
            return Err(too_long(self.limit));
        }
        self.bytes.extend_from_slice(more);
        if let (Some(file), Some(_)) = (&mut self.file, &self.tag)
            && file.append(more).is_err()
        {
            self.lose_file();
        }
        Ok(())
    }

    /// Refuses a body that says that it is too long.
    pub(crate) fn check_announced(&self, length: Option<u64>) -> Result<(), TransportError> {
        let fits = |length| usize::try_from(length).is_ok_and(|length| length <= self.limit);
        if length.is_none_or(fits) {
            return Ok(());
        }
        Err(too_long(self.limit))
    }

    /// Returns how long it is.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Keeps only what can be gone on with.
    pub(crate) fn broke(&mut self) {
        if self.tag.is_none() {
            self.bytes = Vec::new();
        }
    }

    /// Returns the body; the file stays as it is.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.tag = None;
        std::mem::take(&mut self.bytes)
    }

    /// Returns the file.
    pub(crate) fn into_file(self) -> Option<ResumeFile> {
        self.file
    }

    /// A full disk costs the resuming, not the download.
    fn lose_file(&mut self) {
        if let Some(file) = self.file.take() {
            file.remove();
        }
    }
}

fn too_long(limit: usize) -> TransportError {
    let message = format!("the answer has more than {limit} bytes");
    TransportError::new(Fault::TooLong, message)
}
