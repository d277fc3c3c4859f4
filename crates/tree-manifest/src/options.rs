//! How many threads, and how much a manifest may hold.

/// What bounds the making of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Threads that read and hash; 0 takes one per processor. Never more than [`MAX_THREADS`].
    pub threads: usize,
    /// How much is walked before it is refused.
    pub limits: Limits,
}

/// The most threads that are used.
pub const MAX_THREADS: usize = 8;

/// How much is walked before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files, links and folders.
    pub entries: usize,
    /// Bytes of all their paths together.
    pub path_bytes: usize,
    /// Components of one path.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 1_000_000,
            path_bytes: 256 * 1024 * 1024,
            // Each level may hold a descriptor in each thread, of 1 024 that a process usually has.
            depth: 100,
        }
    }
}

impl Options {
    pub(crate) fn thread_count(self) -> usize {
        let wanted = match self.threads {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            threads => threads,
        };
        wanted.min(MAX_THREADS)
    }
}
