//! Where what plugins say for people goes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bounded::text::{visible, visible_bytes};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most that is kept of one plugin, each line counted as `plugin NAME: LINE` and a line feed.
pub const LOG_BYTES: usize = 1024 * 1024;
/// A longer line of stderr is broken.
const LINE_BYTES: usize = 4_096;
/// The size of one read.
const CHUNK: usize = 16 * 1024;
/// What stands around the name of a plugin in a line.
const AROUND: usize = "plugin : \n".len();

/// The run log.
pub trait RunLog: Send + Sync {
    /// Takes one line about a plugin. Its control characters are visible already, it has no line
    /// end, and all lines of one plugin together are bounded. It is called from whatever thread
    /// has the line, and should not wait for anything slow.
    fn line(&self, plugin: &str, line: &str);

    /// What one plugin's stderr goes through before lines are made of it. A long line is broken,
    /// and what must not be read could stand on both sides of the break.
    fn veil(&self) -> Box<dyn Veil + Send + '_> {
        Box::new(Sheer)
    }
}

/// Takes out of a stream what must not be read, however the stream comes in pieces.
pub trait Veil {
    /// Takes the next bytes, and returns those that are decided.
    fn push(&mut self, bytes: &[u8]) -> Vec<u8>;

    /// Returns what was held back when the stream ends.
    fn finish(&mut self) -> Vec<u8>;
}

/// Hides nothing.
struct Sheer;

impl Veil for Sheer {
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }

    fn finish(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

/// One plugin's part of the run log.
pub(crate) struct PluginLog {
    plugin: String,
    log: Arc<dyn RunLog>,
    left: Mutex<Left>,
}

/// What may still be written.
enum Left {
    Bytes(usize),
    Nothing,
}

impl fmt::Debug for PluginLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginLog")
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}

impl PluginLog {
    pub(crate) fn new(plugin: &str, log: Arc<dyn RunLog>) -> Self {
        Self {
            plugin: plugin.to_owned(),
            log,
            left: Mutex::new(Left::Bytes(LOG_BYTES)),
        }
    }

    /// Writes what comes from the plugin, as long as there is room. False once there is none.
    pub(crate) fn foreign(&self, text: &str) -> bool {
        self.bounded(visible(text))
    }

    /// Writes what the host has to say; there is little of it, and it must not get lost.
    pub(crate) fn own(&self, text: &str) {
        let _left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        self.log.line(&self.plugin, &visible(text));
    }

    fn bytes(&self, line: &[u8]) -> bool {
        self.bounded(visible_bytes(line))
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "both callers have just made it"
    )]
    fn bounded(&self, shown: String) -> bool {
        // Held while the line is written, so that the last line is the last.
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let Left::Bytes(room) = *left else {
            return false;
        };
        let needed = shown.len() + self.plugin.len() + AROUND;
        if let Some(rest) = room.checked_sub(needed) {
            *left = Left::Bytes(rest);
            self.log.line(&self.plugin, &shown);
            return true;
        }
        *left = Left::Nothing;
        let limit = LOG_BYTES / (1024 * 1024);
        let last = format!("more than {limit} MiB of log; the rest is left out");
        self.log.line(&self.plugin, &last);
        false
    }
}

/// Reads stderr to its end, whatever becomes of the text: a plugin is never kept from writing.
pub(crate) async fn drain(mut stderr: impl AsyncRead + Unpin, log: Arc<PluginLog>) {
    let mut chunk = vec![0; CHUNK];
    let mut lines = Lines::default();
    let mut veil = log.log.veil();
    let mut room = true;
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        if room {
            let decided = veil.push(chunk.get(..count).unwrap_or_default());
            room = lines.push(&decided, &log);
        }
    }
    if room && lines.push(&veil.finish(), &log) {
        lines.end(&log);
    }
}

/// Makes lines of bytes. A character is looked at once all of it is there.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, mut bytes: &[u8], log: &PluginLog) -> bool {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            self.begun.extend_from_slice(line);
            if !self.break_up(log) {
                return false;
            }
            let line = std::mem::take(&mut self.begun);
            if !log.bytes(line.strip_suffix(b"\r").unwrap_or(&line)) {
                return false;
            }
        }
        self.begun.extend_from_slice(bytes);
        self.break_up(log)
    }

    /// Writes the beginnings of a line that is too long.
    fn break_up(&mut self, log: &PluginLog) -> bool {
        while self.begun.len() > LINE_BYTES {
            let end = boundary(&self.begun, LINE_BYTES);
            let piece: Vec<u8> = self.begun.drain(..end).collect();
            if !log.bytes(&piece) {
                return false;
            }
        }
        true
    }

    fn end(self, log: &PluginLog) {
        if !self.begun.is_empty() {
            log.bytes(&self.begun);
        }
    }
}

/// The last place up to `limit` that is not inside a character.
fn boundary(bytes: &[u8], limit: usize) -> usize {
    let inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let back = (0..4).find(|back| !inside(limit - back)).unwrap_or(0);
    limit - back
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    impl RunLog for Kept {
        fn line(&self, plugin: &str, line: &str) {
            let line = format!("plugin {plugin}: {line}");
            self.0.lock().unwrap().push(line);
        }
    }

    async fn drained(bytes: &[u8]) -> Vec<String> {
        let kept = Arc::new(Kept::default());
        let log = Arc::new(PluginLog::new("a", kept.clone()));
        drain(bytes, log).await;
        let lines = kept.0.lock().unwrap();
        lines.clone()
    }

    #[tokio::test]
    async fn control_characters_are_visible() {
        let lines = drained(b"\x1b[2J\xff\rnext\r\n\n\tlast \xe2\x80\xae").await;
        let shown = [
            r"plugin a: \u{1b}[2J\xff\u{d}next",
            "plugin a: ",
            r"plugin a: \u{9}last \u{202e}",
        ];
        assert_eq!(lines, shown);
    }

    #[tokio::test]
    async fn a_long_line_is_broken_between_characters() {
        let text = format!("{}é{}\n", "a".repeat(LINE_BYTES - 1), "b".repeat(3));
        let lines = drained(text.as_bytes()).await;
        let first = format!("plugin a: {}", "a".repeat(LINE_BYTES - 1));
        assert_eq!(lines, [first.as_str(), "plugin a: ébbb"]);
        let binary = vec![0x80; LINE_BYTES + 1];
        assert_eq!(drained(&binary).await.len(), 2);
        let exact = "a".repeat(LINE_BYTES);
        assert_eq!(drained(exact.as_bytes()).await.len(), 1);
    }

    #[tokio::test]
    async fn a_mebibyte_is_kept_and_one_line_says_that_there_was_more() {
        // "plugin a: " and the line feed make 11 bytes: 64 to a line.
        let line = format!("{}\n", "x".repeat(53));
        let fits = line.repeat(LOG_BYTES / 64);
        let lines = drained(fits.as_bytes()).await;
        assert_eq!(lines.len(), LOG_BYTES / 64);
        assert!(lines.iter().all(|line| line.ends_with("xxx")));
        let more = drained(format!("{fits}\n{fits}").as_bytes()).await;
        assert_eq!(more.len(), LOG_BYTES / 64 + 1);
        let last = "plugin a: more than 1 MiB of log; the rest is left out";
        assert_eq!(more.last().unwrap(), last);
    }

    #[test]
    fn what_the_host_says_is_never_left_out() {
        let kept = Arc::new(Kept::default());
        let log = PluginLog::new("a", kept.clone());
        while log.foreign(&"y".repeat(100_000)) {}
        log.own("failed: x\u{7}");
        assert!(!log.foreign("z"));
        let lines = kept.0.lock().unwrap();
        assert_eq!(lines.last().unwrap(), r"plugin a: failed: x\u{7}");
        let full = lines.iter().filter(|line| line.contains("more than"));
        assert_eq!(full.count(), 1);
    }
}
