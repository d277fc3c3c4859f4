//! Cuts a stream of bytes into lines: at line feeds, and nowhere else.

/// Collects bytes and hands out complete lines, each as bytes and whole: whoever decodes one never
/// sees half a character.
///
/// Besides the chunk that was pushed last it never holds more than one line.
///
/// ```
/// let mut lines = bounded::Lines::new(3);
/// lines.push(b"one\ntw");
/// assert_eq!(lines.next_line(), Ok(Some(b"one".to_vec())));
/// assert_eq!(lines.next_line(), Ok(None));
/// lines.push(b"elve\n");
/// assert_eq!(lines.next_line(), Err(bounded::LineTooLong));
/// ```
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    buffer: Vec<u8>,
    /// Start of the line that is being collected.
    start: usize,
    /// Up to where no line feed was found, so that single bytes cost single steps.
    scanned: usize,
}

/// A line has more bytes than a line may have. It still stands at the start of [`Lines::rest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the line is too long")]
pub struct LineTooLong;

impl Lines {
    /// Makes a reader of lines of at most so many bytes, without their line feed.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
        }
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next complete line without its line feed; none if it is yet to come.
    ///
    /// # Errors
    /// There are more bytes than a line may have, with or without a line feed behind them.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, LineTooLong> {
        let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
        let line_feed = fresh.iter().position(|byte| *byte == b'\n');
        self.scanned = line_feed.map_or(self.buffer.len(), |at| self.scanned + at);
        let line = self.buffer.get(self.start..self.scanned);
        let line = line.unwrap_or_default();
        if line.len() > self.limit {
            return Err(LineTooLong);
        }
        if line_feed.is_none() {
            return Ok(None);
        }
        let line = line.to_vec();
        self.scanned += 1;
        self.start = self.scanned;
        Ok(Some(line))
    }

    /// Returns the bytes that were not handed out yet.
    pub fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_may_be_cut_anywhere() {
        let stream = b"one\n\ntw\xffo\r\nrest";
        for at in 0..=stream.len() {
            let mut lines = Lines::new(5);
            let mut read = Vec::new();
            let (first, second) = stream.split_at(at);
            for chunk in [first, second] {
                lines.push(chunk);
                while let Some(line) = lines.next_line().unwrap() {
                    read.push(line);
                }
            }
            assert_eq!(read, [&b"one"[..], b"", b"tw\xffo\r"], "{at}");
            assert_eq!(lines.rest(), b"rest", "{at}");
        }
    }

    #[test]
    fn a_line_of_the_limit_passes_and_one_byte_more_is_refused_also_before_its_end() {
        for (bytes, read) in [
            (&b"1234\n"[..], Ok(Some(b"1234".to_vec()))),
            (b"1234", Ok(None)),
            (b"12345\n", Err(LineTooLong)),
            (b"12345", Err(LineTooLong)),
        ] {
            let mut lines = Lines::new(4);
            lines.push(bytes);
            assert_eq!(lines.next_line(), read, "{bytes:?}");
        }
    }

    #[test]
    fn what_was_handed_out_is_not_held() {
        let mut lines = Lines::new(10);
        for _ in 0..1_000 {
            lines.push(b"0123456789\n");
            assert!(lines.next_line().unwrap().is_some());
        }
        assert!(lines.buffer.capacity() < 100, "{}", lines.buffer.capacity());
    }
}
