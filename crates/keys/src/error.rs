//! What can go wrong with keys on disk. No message has a byte of a private key in it.

use std::path::PathBuf;

use attest_receipt::time::Time;
use attest_timestamp::CertificateError;
use attest_verify::trust::{KeyError, KeyId, TrustError};
use safe_fs::{SafeFsError, shell_word};

/// Why something could not be done with keys or the trust store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A text or file is no key, id or name.
    #[error("`{what}` is refused")]
    Key {
        /// The text or file.
        what: String,
        /// What is wrong with it.
        #[source]
        source: KeyError,
    },
    /// The trust store does not hold together.
    #[error("cannot use the trust store `{folder}`")]
    Trust {
        /// The store.
        folder: PathBuf,
        /// What is wrong with it.
        #[source]
        source: TrustError,
    },
    /// No such key in the trust store.
    #[error("unknown key id: {0}")]
    UnknownKey(KeyId),
    /// No such private key.
    #[error("no private key for id {id} in `{folder}`")]
    NoPrivateKey {
        /// The id that was asked for.
        id: KeyId,
        /// Where it would have to be.
        folder: PathBuf,
    },
    /// There is nothing to sign with.
    #[error("no private key in `{folder}`; make one with `attest keys generate --name NAME`")]
    NoKeys {
        /// Where one was looked for.
        folder: PathBuf,
    },
    /// Which key to take is not for a program to guess.
    #[error("multiple private keys, use --key: {}", listed(.ids, *.more))]
    SeveralKeys {
        /// The first of those that the policy trusts.
        ids: Vec<KeyId>,
        /// How many others it trusts.
        more: usize,
    },
    /// There are several, and the policy takes the signatures of none.
    #[error("none of the {count} private keys in `{folder}` is trusted by `{policy}`")]
    NoneTrusted {
        /// How many there are.
        count: usize,
        /// Where they are.
        folder: PathBuf,
        /// The policy.
        policy: PathBuf,
    },
    /// Others could put keys into the folder, or take some away.
    #[error(
        "{who} can write into the folder of private keys `{folder}` (mode {mode:04o}); correct it with `chmod go-w {}`",
        shell_word(folder)
    )]
    LooseFolder {
        /// The folder.
        folder: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Who they are, as the start of a sentence.
        who: &'static str,
    },
    /// The folder is somebody else's, who can do with it what they like.
    #[error(
        "the folder of private keys `{folder}` is owned by user {owner}, not by user {expected} that this process runs as"
    )]
    OthersFolder {
        /// The folder.
        folder: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The effective user id.
        expected: u32,
    },
    /// The policy takes the key's signatures no longer.
    #[error(
        "key {id} is revoked{}; a revoked key cannot sign new evidence",
        since.map(|since| format!(" (since {since})")).unwrap_or_default()
    )]
    Revoked {
        /// The key.
        id: KeyId,
        /// Since when.
        since: Option<Time>,
    },
    /// The policy does not know the key.
    #[error(
        "key {id} has a private half but no entry in `{policy}`; a key that the policy does not trust cannot sign"
    )]
    Unlisted {
        /// The key.
        id: KeyId,
        /// The policy.
        policy: PathBuf,
    },
    /// A private key file is no private key, or another's.
    #[error("`{file}` {problem}")]
    PrivateKey {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A certificate says of itself that no token can rest on it.
    #[error("a certificate in `{what}` cannot be pinned as a timestamp authority: it {problem}")]
    Authority {
        /// The file.
        what: String,
        /// What is wrong with it: the end of that sentence.
        problem: CertificateError,
    },
    /// A name for an authority would make another path.
    #[error("a name of a timestamp authority has 1 to 64 letters, digits, `-` or `_`")]
    AuthorityName,
    /// Something stands there already.
    #[error("`{path}` exists already; remove it first or choose another name")]
    Exists {
        /// What is in the way.
        path: PathBuf,
    },
    /// Somebody else changes the store, and does not come to an end.
    #[error("another process is changing the trust store `{folder}`")]
    Busy {
        /// The store.
        folder: PathBuf,
    },
    /// A folder in the workspace is a link to somewhere else.
    #[error(
        "`{folder}` is a symbolic link, which is not followed to the {what} of a workspace; {advice}"
    )]
    LinkedFolder {
        /// The folder.
        folder: PathBuf,
        /// What would be in it.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A file is refused, or the operating system refused.
    #[error("cannot {action}")]
    Files {
        /// What was being done.
        action: &'static str,
        /// The answer.
        #[source]
        source: SafeFsError,
    },
    /// The operating system refused.
    #[error("cannot {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The answer, which names the path.
        #[source]
        source: std::io::Error,
    },
}

impl KeysError {
    pub(crate) fn io(action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, source }
    }

    pub(crate) fn files(action: &'static str) -> impl FnOnce(SafeFsError) -> Self {
        move |source| Self::Files { action, source }
    }
}

fn listed(ids: &[KeyId], more: usize) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    match more {
        0 => ids.join(", "),
        more => format!("{}, and {more} more", ids.join(", ")),
    }
}
