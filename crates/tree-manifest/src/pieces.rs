//! One large file as pieces that several threads hash, joined as BLAKE3's tree asks.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use blake3::{
    Hash,
    hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root},
};

/// The length of a piece, unless the file is so large that there would be too many.
pub(crate) const PIECE: u64 = 1024 * 1024;
/// The most pieces, each of which leaves 32 bytes until all are done.
const MOST_PIECES: u64 = 65_536;

/// Which pieces of a file are taken and done.
#[derive(Debug)]
pub(crate) struct Pieces {
    length: u64,
    piece: u64,
    count: u64,
    next: AtomicU64,
    left: AtomicU64,
    values: Mutex<Vec<ChainingValue>>,
}

/// Part of a file: a whole subtree, which ends early only at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Pieces {
    /// Divides a file of that length, which must be more than one piece.
    pub(crate) fn new(length: u64) -> Self {
        let piece = length.div_ceil(MOST_PIECES).next_power_of_two().max(PIECE);
        let count = length.div_ceil(piece);
        let slots = usize::try_from(count).unwrap_or(0);
        Self {
            length,
            piece,
            count,
            next: AtomicU64::new(0),
            left: AtomicU64::new(count),
            values: Mutex::new(vec![[0; 32]; slots]),
        }
    }

    /// Takes a piece that nobody took.
    pub(crate) fn take(&self) -> Option<Piece> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if index >= self.count {
            return None;
        }
        let offset = index * self.piece;
        Some(Piece {
            offset,
            length: self.piece.min(self.length - offset),
        })
    }

    /// Keeps what a piece came to; the last one of all yields the hash of the file.
    pub(crate) fn put(&self, piece: Piece, value: ChainingValue) -> Option<Hash> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let index = usize::try_from(piece.offset / self.piece).ok()?;
        *values.get_mut(index)? = value;
        (self.left.fetch_sub(1, Ordering::Relaxed) == 1).then(|| root(&values))
    }
}

impl Piece {
    /// Starts the hash of this piece.
    pub(crate) fn hasher(self) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(self.offset);
        hasher
    }
}

/// Ends the hash of a piece.
pub(crate) fn value(hasher: &blake3::Hasher) -> ChainingValue {
    hasher.finalize_non_root()
}

fn root(values: &[ChainingValue]) -> Hash {
    let (left, right) = values.split_at(left_count(values.len()));
    merge_subtrees_root(&join(left), &join(right), Mode::Hash)
}

fn join(values: &[ChainingValue]) -> ChainingValue {
    match values {
        [] => [0; 32],
        [value] => *value,
        _ => {
            let (left, right) = values.split_at(left_count(values.len()));
            merge_subtrees_non_root(&join(left), &join(right), Mode::Hash)
        }
    }
}

/// The left side of a node is the largest full tree that leaves something for the right.
fn left_count(count: usize) -> usize {
    count.div_ceil(2).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_left_side_is_the_largest_power_of_two_below() {
        for (count, left) in [
            (2, 1),
            (3, 2),
            (4, 2),
            (5, 4),
            (7, 4),
            (8, 4),
            (9, 8),
            (65_536, 32_768),
        ] {
            assert_eq!(left_count(count), left, "{count}");
        }
    }

    #[test]
    fn a_huge_file_has_longer_pieces_instead_of_more() {
        for length in [PIECE + 1, 1 << 36, (1 << 36) + 1, 1 << 42, u64::MAX >> 2] {
            let pieces = Pieces::new(length);
            assert!((2..=MOST_PIECES).contains(&pieces.count), "{length}");
            assert!(pieces.piece.is_power_of_two() && pieces.piece >= PIECE);
        }
        assert_eq!(Pieces::new(1 << 36).piece, PIECE);
    }

    #[test]
    fn pieces_in_any_order_join_to_the_hash_of_the_whole() {
        let piece = usize::try_from(PIECE).unwrap();
        let bytes: Vec<u8> = (0..7 * piece + 1)
            .map(|i| u8::try_from(i % 251).unwrap())
            .collect();
        for length in [
            piece + 1,
            2 * piece,
            3 * piece - 1,
            5 * piece,
            7 * piece + 1,
        ] {
            let whole = &bytes[..length];
            let pieces = Pieces::new(length as u64);
            let mut taken: Vec<Piece> = std::iter::from_fn(|| pieces.take()).collect();
            taken.reverse();
            let mut hash = None;
            for piece in taken {
                let start = usize::try_from(piece.offset).unwrap();
                let end = start + usize::try_from(piece.length).unwrap();
                let mut hasher = piece.hasher();
                hasher.update(&whole[start..end]);
                assert_eq!(hash, None);
                hash = pieces.put(piece, value(&hasher));
            }
            assert_eq!(hash, Some(blake3::hash(whole)), "{length}");
        }
    }
}
