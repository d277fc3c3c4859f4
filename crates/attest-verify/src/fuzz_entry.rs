//! The bodies of the fuzz targets, shared with the test that replays their corpora.

use attest_receipt::time::Time;

use crate::policy::Policy;
use crate::trust::{Trust, TrustStore};
use crate::{Options, verify};

/// Reads a policy; one that is accepted asks for something, and refuses what is no receipt.
pub fn policy(bytes: &[u8]) {
    let Ok(policy) = Policy::parse(bytes) else {
        return;
    };
    assert!(!policy.requirements().is_empty(), "a policy has a rule");
    let options = Options {
        policy: Some(policy),
        ..Options::new(Time::hermetic())
    };
    let trust = Trust::Store(TrustStore::default().into());
    let outcome = verify(b"{}", &trust, &options, None);
    assert!(outcome.is_ok_and(|outcome| !outcome.passed() && !outcome.policy.unmet.is_empty()));
}

/// Judges arbitrary bytes without a key that is trusted: nothing passes, and nothing hidden shows.
pub fn receipt(bytes: &[u8]) {
    let trust = Trust::Store(TrustStore::default().into());
    let options = Options::new(Time::hermetic());
    let lines = match verify(bytes, &trust, &options, None) {
        Ok(outcome) => {
            assert!(!outcome.passed(), "nobody is trusted");
            [outcome.text_lines("r"), outcome.warning_lines()].concat()
        }
        Err(error) => vec![error.message("r")],
    };
    for line in lines {
        assert!(!bounded::text::has_control_or_format(&line), "{line:?}");
    }
}
