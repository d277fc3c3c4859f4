//! Reads a trust store into memory. Takes no lock and writes nothing.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use attest_verify::trust::{AUTHORITIES, POLICY_FILE, Trust, TrustError, TrustFile, TrustStore};
use bounded::text::visible;

use crate::doubt::{self, Open};
use crate::error::KeysError;
use crate::key_dir::KeyDir;

/// The longest accepted certificate file.
pub(crate) const CERTIFICATE_BYTES: u64 = 1024 * 1024;

type Files = Vec<(String, Vec<u8>)>;

/// Reads the store in `folder`. Where there is none, the public half of the old layout's pair in
/// `fallback` is trusted; whoever names a store for one verification gives no fallback.
#[must_use]
pub fn load_trust(folder: &Path, fallback: Option<&KeyDir>) -> Trust {
    let loose = || match fallback.map(KeyDir::loose_public).transpose() {
        Ok(key) => Ok(key.flatten()),
        Err(error) => Err(error),
    };
    match read_store(folder) {
        Ok(Some(store)) => {
            let place = visible(&folder.to_string_lossy());
            // Whoever names a store may name a link; in a workspace it is worth a word.
            let places = fallback
                .into_iter()
                .flat_map(|_| [folder.parent(), Some(folder)]);
            let mut doubts = doubt::of_links(places.flatten());
            doubts.extend_from_slice(store.doubts());
            Trust::Store(store.at(place).doubted(doubts).into())
        }
        Ok(None) => match loose() {
            Ok(Some(key)) => {
                let mut open = Open::default();
                fallback.iter().for_each(|keys| open.look(keys.path()));
                fallback
                    .iter()
                    .for_each(|keys| open.look(&keys.loose_file()));
                let store = TrustStore::of_loose_key(&key, "public.key");
                Trust::Store(store.doubted(open.doubts()).into())
            }
            Ok(None) => Trust::Absent {
                looked_in: visible(&folder.to_string_lossy()),
            },
            Err(error) => Trust::Unreadable(chain(&error)),
        },
        Err(error) => Trust::Unreadable(chain(&error)),
    }
}

/// Reads the store; `None` if there is no such folder.
pub(crate) fn read_store(folder: &Path) -> Result<Option<TrustStore>, KeysError> {
    let mut files = Files::new();
    let mut open = Open::default();
    // The policy first: a key file is there before an entry names it, so a list made later has it.
    let policy = folder.join(POLICY_FILE);
    open.look(folder);
    open.look(&policy);
    match safe_fs::read_bounded(&policy, length(TrustFile::MAX_BYTES)) {
        Ok(bytes) => files.push((POLICY_FILE.to_owned(), bytes)),
        Err(error) if error.is_not_found() => {}
        Err(source) => return Err(KeysError::files("read the trust policy")(source)),
    }
    if !each_file(folder, |name, path, size| {
        if name == POLICY_FILE {
            return Ok(());
        }
        let public = Path::new(name).extension().is_some_and(|end| end == "pub");
        if !public && size > length(TrustStore::LOOSE_BYTES) {
            return Ok(());
        }
        let bytes = safe_fs::read_bounded(path, length(TrustStore::PUBLIC_BYTES))
            .map_err(KeysError::files("read the trust store"))?;
        // Whatever is written to the file of an id, it can hold no other key.
        if !public {
            open.look(path);
        }
        push(&mut files, name.to_owned(), bytes, folder)
    })? {
        return Ok(None);
    }
    open.look(&folder.join(AUTHORITIES.trim_end_matches('/')));
    each_file(&folder.join(AUTHORITIES), |name, path, _| {
        open.look(path);
        // One file that cannot be read must not stop every receipt from being verified.
        match safe_fs::read_bounded(path, CERTIFICATE_BYTES) {
            Ok(bytes) => push(&mut files, format!("{AUTHORITIES}{name}"), bytes, folder),
            Err(_) => Ok(()),
        }
    })?;
    match TrustStore::from_files(files) {
        Ok(store) => Ok(Some(store.doubted(open.doubts()))),
        Err(source) => Err(refused(folder, told_apart(source, folder))),
    }
}

/// What has the name of a key's file and is no file is not missing.
fn told_apart(error: TrustError, folder: &Path) -> TrustError {
    let TrustError::MissingPublicKey { id } = error else {
        return error;
    };
    let path = folder.join(format!("{id}.pub"));
    let found = match fs_err::metadata(&path) {
        Ok(found) if found.is_file() => return error,
        Ok(found) => safe_fs::kind(found.file_type()),
        Err(_) if path.is_symlink() => "a symbolic link that leads nowhere",
        Err(_) => return error,
    };
    TrustError::NotAFile { id, found }
}

/// Calls `take` with name, path and size of each regular file that is not hidden. Links to files
/// count as files. Tells whether the folder exists.
fn each_file(
    folder: &Path,
    mut take: impl FnMut(&str, &Path, u64) -> Result<(), KeysError>,
) -> Result<bool, KeysError> {
    let failed = || KeysError::io("read the trust store");
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed()(error)),
    };
    for entry in entries {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        let path = entry.path();
        // What a link leads to may be absent; then there is no file.
        if let Ok(found) = fs_err::metadata(&path)
            && found.is_file()
        {
            take(name, &path, found.len())?;
        }
    }
    Ok(true)
}

fn push(files: &mut Files, name: String, bytes: Vec<u8>, folder: &Path) -> Result<(), KeysError> {
    if files.len() >= TrustStore::MAX_FILES {
        let source = TrustError::TooMany {
            what: "files",
            limit: TrustStore::MAX_FILES,
        };
        return Err(refused(folder, source));
    }
    files.push((name, bytes));
    Ok(())
}

fn refused(folder: &Path, source: TrustError) -> KeysError {
    KeysError::Trust {
        folder: folder.to_owned(),
        source,
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The whole of an error in one line, for a place that keeps text only.
fn chain(error: &KeysError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    visible(&text)
}
