//! Several changes at once, anywhere: no panic, and nothing beyond the limits.

use attest_exchange::fuzz_entry;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::{Raw, vector};

fn changed(mut bytes: Vec<u8>, changes: &[(Index, u8)]) -> Vec<u8> {
    for (at, byte) in changes {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(Index, u8)>> {
    proptest::collection::vec(any::<(Index, u8)>(), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_changed_frame_is_read_or_refused(changes in changes()) {
        fuzz_entry::archive(&changed(vector("passed_signed.attest.tar.zst"), &changes));
    }

    #[test]
    fn a_changed_tar_is_read_or_refused(changes in changes()) {
        fuzz_entry::archive(&Raw(changed(Raw::whole().end().0, &changes)).zst());
    }

    #[test]
    fn any_frame_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_entry::archive(&[&[0x28, 0xb5, 0x2f, 0xfd][..], &bytes].concat());
    }

    #[test]
    fn a_changed_envelope_is_judged_or_refused(changes in changes()) {
        fuzz_entry::envelope(&changed(vector("passed_signed.intoto.json"), &changes));
    }
}
