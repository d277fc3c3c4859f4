//! Who is who: one token for the owner, one for each Worker. Only digests stay
//! in memory, and they are compared in constant time.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use cli_shell::Secret;
use forge_domain::WorkerId;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The digest of a token.
#[derive(Clone)]
pub(crate) struct TokenDigest([u8; 32]);

/// All tokens that the Gate accepts.
#[derive(Debug, Clone)]
pub struct Tokens {
    owner: TokenDigest,
    workers: BTreeMap<WorkerId, TokenDigest>,
}

/// Two tokens are the same.
#[derive(Debug, thiserror::Error)]
#[error("the token of Worker `{0}` is also the token of the owner or of another Worker")]
pub struct TokenReused(pub WorkerId);

impl Tokens {
    /// Takes the tokens; no two may be the same.
    pub fn new(
        owner: &Secret,
        workers: impl IntoIterator<Item = (WorkerId, Secret)>,
    ) -> Result<Self, TokenReused> {
        let mut tokens = Self {
            owner: TokenDigest::of(owner.expose()),
            workers: BTreeMap::new(),
        };
        for (id, secret) in workers {
            let digest = TokenDigest::of(secret.expose());
            if digest.same(&tokens.owner) || tokens.workers.values().any(|used| digest.same(used)) {
                return Err(TokenReused(id));
            }
            tokens.workers.insert(id, digest);
        }
        Ok(tokens)
    }

    /// Whether a request comes from the owner.
    pub(crate) fn is_owner(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|token| TokenDigest::of(token).same(&self.owner))
    }

    /// Whether a request comes from this Worker.
    pub(crate) fn is_worker(&self, id: &WorkerId, headers: &HeaderMap) -> bool {
        let known = self.workers.get(id);
        let presented = bearer(headers).map(TokenDigest::of);
        matches!((known, presented), (Some(known), Some(presented)) if presented.same(known))
    }

    /// SHA-256 of the owner's token: the key that proves who answers.
    pub(crate) const fn owner_key(&self) -> &[u8; 32] {
        &self.owner.0
    }
}

impl TokenDigest {
    fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    fn same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}

/// The token of the only `Authorization: Bearer` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
