//! The body of the fuzz target, shared with the tests that replay and change its corpus.

use crate::declare::{Digest, MAX_PLUGINS, Plugins, Strictness};
use crate::pin::{PinError, pin};
use crate::resolve::is_bare;
use crate::{Command, Declared};

/// Reads declarations. Those that are accepted keep their rules, and each plugin of them can be
/// pinned, which changes its digest and nothing else. A refusal shows no hidden character.
///
/// # Panics
///
/// If that is not so.
pub fn declarations(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(run) = Plugins::parse(text, Strictness::Run) {
        assert!(run.plugins.iter().all(|plugin| plugin.digest.is_some()));
        let listed = Plugins::parse(text, Strictness::Listing);
        assert!(
            listed.is_ok_and(|listed| listed == run),
            "a listing reads more, not less"
        );
    }
    match Plugins::parse(text, Strictness::Listing) {
        Ok(plugins) => accepted(text, &plugins),
        Err(error) => {
            let shown = error.to_string();
            assert!(!bounded::text::has_control_or_format(&shown), "{shown:?}");
        }
    }
}

fn accepted(text: &str, plugins: &Plugins) {
    assert!(plugins.plugins.len() <= MAX_PLUGINS);
    for (index, plugin) in plugins.plugins.iter().enumerate() {
        judge(plugin);
        let digest = Digest::of(text);
        let pinned = match pin(text, &plugin.name, digest) {
            Ok(pinned) => pinned,
            // What cannot be put in without changing more is not forced in.
            Err(PinError::Place { .. }) => continue,
            Err(error) => unreachable!("{error}"),
        };
        let mut wanted = plugins.clone();
        if let Some(plugin) = wanted.plugins.get_mut(index) {
            plugin.digest = Some(digest);
        }
        let read = Plugins::parse(&pinned, Strictness::Listing);
        assert!(read.is_ok_and(|read| read == wanted), "{pinned}");
        only_there(text, &pinned, &digest.to_string());
    }
}

fn judge(plugin: &Declared) {
    assert!((1..=3600).contains(&plugin.timeout.as_secs()));
    assert!(!plugin.hooks.is_empty());
    assert!(!plugin.env.contains_key("PATH"));
    match &plugin.command {
        Command::Absolute(path) => assert!(path.is_absolute()),
        Command::Bare(name) => assert!(is_bare(name)),
    }
}

/// Around the new digest stands what stood around the old one or its place.
fn only_there(text: &str, pinned: &str, digest: &str) {
    let fits = pinned.match_indices(digest).any(|(at, _)| {
        let (before, after) = (&pinned[..at], &pinned[at + digest.len()..]);
        let before = before.strip_suffix('"').unwrap_or(before);
        let after = after.strip_prefix('"').unwrap_or(after);
        let put = before.trim_end_matches(|c| "digest =,\t\r\n".contains(c));
        let after = after.trim_start_matches(['\r', '\n']);
        text.starts_with(put) && text.ends_with(after)
    });
    assert!(fits, "{text:?}\n{pinned:?}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn corpus() -> Vec<Vec<u8>> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/declarations");
        let files = fs_err::read_dir(folder).unwrap();
        files
            .map(|entry| fs_err::read(entry.unwrap().path()).unwrap())
            .collect()
    }

    #[test]
    fn fuzz_corpus_of_declarations_replays() {
        let corpus = corpus();
        assert!(corpus.len() > 8, "{} files", corpus.len());
        for bytes in &corpus {
            declarations(bytes);
        }
    }

    proptest! {
        /// Pieces of the corpus put together and bytes exchanged: what the fuzzer would do.
        #[test]
        fn changed_corpus_of_declarations_replays(
            picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let corpus = corpus();
            let mut bytes = Vec::new();
            for (file, from, to) in picks {
                let file = file.get(&corpus);
                let (from, to) = (from.index(file.len() + 1), to.index(file.len() + 1));
                bytes.extend_from_slice(&file[from.min(to)..from.max(to)]);
            }
            for (at, byte) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            declarations(&bytes);
        }
    }
}
