//! XXH32 with seed 0: the hash by which cargo-deny knows the text of a licence.

const PRIME: [u32; 5] = [
    2_654_435_761,
    2_246_822_519,
    3_266_489_917,
    668_265_263,
    374_761_393,
];

/// Hashes bytes.
pub(super) fn xxh32(bytes: &[u8]) -> u32 {
    let [prime1, prime2, prime3, prime4, prime5] = PRIME;
    let (stripes, rest) = bytes.as_chunks::<16>();
    let mut hash = if stripes.is_empty() {
        prime5
    } else {
        let mut lanes = [
            prime1.wrapping_add(prime2),
            prime2,
            0,
            0_u32.wrapping_sub(prime1),
        ];
        for stripe in stripes {
            let (words, _) = stripe.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                let mixed = u32::from_le_bytes(*word).wrapping_mul(prime2);
                *lane = lane
                    .wrapping_add(mixed)
                    .rotate_left(13)
                    .wrapping_mul(prime1);
            }
        }
        lanes
            .iter()
            .zip([1, 7, 12, 18])
            .fold(0_u32, |sum, (lane, turn)| {
                sum.wrapping_add(lane.rotate_left(turn))
            })
    };
    // The length counts modulo 2^32; no licence is that long.
    hash = hash.wrapping_add(u32::try_from(bytes.len()).unwrap_or_default());
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        hash = hash
            .wrapping_add(u32::from_le_bytes(*word).wrapping_mul(prime3))
            .rotate_left(17)
            .wrapping_mul(prime4);
    }
    for byte in rest {
        hash = hash
            .wrapping_add(u32::from(*byte).wrapping_mul(prime5))
            .rotate_left(11)
            .wrapping_mul(prime1);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(prime2);
    hash = (hash ^ (hash >> 13)).wrapping_mul(prime3);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::xxh32;

    #[test]
    fn known_values() {
        assert_eq!(xxh32(b""), 0x02cc_5d05);
        assert_eq!(xxh32(b"abc"), 0x32d1_53ff);
        // More than one stripe, then words, then bytes.
        let text = b"Nobody inspects the spammish repetition";
        assert_eq!(xxh32(text), 0xe229_3b2f);
    }
}
