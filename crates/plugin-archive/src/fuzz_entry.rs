//! The bodies of the fuzz targets, shared with the test that replays their corpora.

use std::num::NonZeroUsize;

use crate::header::{self, BLOCK};
use crate::pack::compress;
use crate::{Limits, pack, unpack_with_metadata};

/// What no message is longer than: the words of a rule and a name of 256 bytes, each as `\x..`.
const LONGEST_MESSAGE: usize = 2400;

/// Reads arbitrary bytes as the tar stream of an archive whose checksums are right, so that what
/// lies behind them is reached too.
pub fn stream(bytes: &[u8]) {
    let mut tar = bytes.to_vec();
    for block in tar.as_chunks_mut::<BLOCK>().0 {
        header::seal(block);
    }
    archive(&compress(&tar, NonZeroUsize::MIN));
}

/// Reads arbitrary bytes and checks what must hold for whatever was accepted or refused.
pub fn archive(bytes: &[u8]) {
    let limits = Limits {
        archive_bytes: 1 << 16,
        uncompressed_bytes: 1 << 18,
        total_bytes: 1 << 17,
        file_bytes: 1 << 16,
        files: 64,
        entries: 96,
        depth: 8,
    };
    match unpack_with_metadata(bytes, &limits) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() <= LONGEST_MESSAGE, "a message is bounded");
            assert!(
                !message.contains(char::is_control),
                "a message has no control character"
            );
        }
        Ok(snapshot) => {
            let total: usize = snapshot.files.values().map(Vec::len).sum();
            assert!(
                total <= 1 << 17 && snapshot.files.len() <= 64,
                "the limits hold"
            );
            assert!(
                snapshot.files.values().all(|file| file.len() <= 1 << 16),
                "the limit of a file holds"
            );
            assert!(
                snapshot
                    .modes
                    .values()
                    .all(|mode| *mode <= crate::MODE_MASK),
                "modes have nine bits"
            );
            assert!(
                snapshot.files.keys().eq(snapshot.modes.keys()),
                "every file has a mode"
            );
            let again = pack(&snapshot.files, &snapshot.modes, &Limits::default());
            let again =
                again.and_then(|archive| unpack_with_metadata(&archive, &Limits::default()));
            assert!(
                again.is_ok_and(|again| again == snapshot),
                "what was read is packed and read again"
            );
        }
    }
}
