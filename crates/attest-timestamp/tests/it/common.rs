//! One throwaway authority with a certificate that stamps, and the calls that judge a token.

use std::sync::LazyLock;

use attest_timestamp::{Authority, Stamp, Token, TokenError};
use stamp_authority::{Ca, Identity, Stamper, Wanted};

pub(crate) const SIGNATURE: [u8; 64] = [7; 64];
pub(crate) const TIME: &str = "20261130120000Z";

pub(crate) struct World {
    pub(crate) ca: Ca,
    pub(crate) signer: Identity,
}

impl World {
    pub(crate) fn new() -> Self {
        let ca = Ca::honest("Stamp CA");
        let signer = ca.issue(&Wanted::stamper("Stamp Signer"));
        Self { ca, signer }
    }

    pub(crate) fn stamper(&self) -> Stamper<'_> {
        Stamper::new(&self.signer, &SIGNATURE, TIME)
    }

    pub(crate) fn pinned(&self) -> [Authority; 1] {
        [pin("acme", &self.ca.identity)]
    }
}

pub(crate) static WORLD: LazyLock<World> = LazyLock::new(World::new);

pub(crate) fn pin(name: &str, identity: &Identity) -> Authority {
    Authority::new(name, &identity.der).unwrap()
}

/// Judges a token against the one authority that is pinned.
pub(crate) fn judge(token: &[u8]) -> Result<Stamp, TokenError> {
    judge_by(token, &WORLD.pinned())
}

pub(crate) fn judge_by(token: &[u8], authorities: &[Authority]) -> Result<Stamp, TokenError> {
    Token::from_der(token)?
        .examine(&SIGNATURE, None)?
        .issued_by(authorities)
}

/// Requires that a token is refused in these words.
#[track_caller]
pub(crate) fn refused(token: &[u8], says: &str) {
    let error = judge(token).unwrap_err().to_string();
    assert!(error.contains(says), "`{says}` in `{error}`");
}
