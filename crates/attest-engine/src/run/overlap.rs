//! Which steps must not run side by side although neither needs the other: those of which one
//! writes what the other reads or writes. They run one after the other, in topological order.

use std::collections::BTreeMap;
use std::ops::Bound;

use attest_receipt::pipeline::Step;

/// The declared paths of steps that have not ended.
#[derive(Debug, Default)]
pub(super) struct Claims<'a> {
    /// Components of a path → whether somebody writes it.
    paths: BTreeMap<Vec<&'a str>, bool>,
}

impl<'a> Claims<'a> {
    /// Tells whether a step would read or write what somebody writes, or write what is read.
    pub(super) fn forbid(&self, step: &'a Step) -> bool {
        let reads = step.inputs.iter().map(|path| (path, false));
        let writes = step.outputs.iter().map(|path| (path, true));
        reads
            .chain(writes)
            .any(|(path, writes)| self.touch(&components(path), writes))
    }

    /// Adds the paths of a step that has not ended.
    pub(super) fn add(&mut self, step: &'a Step) {
        for path in &step.inputs {
            self.paths.entry(components(path)).or_insert(false);
        }
        for path in &step.outputs {
            self.paths.insert(components(path), true);
        }
    }

    fn touch(&self, path: &[&'a str], writes: bool) -> bool {
        let above = (0..path.len()).any(|length| {
            let folder = path.get(..length).unwrap_or_default();
            self.paths.get(folder).is_some_and(|other| *other || writes)
        });
        let from: (Bound<&[&str]>, Bound<&[&str]>) = (Bound::Included(path), Bound::Unbounded);
        above
            || self
                .paths
                .range::<[&str], _>(from)
                .take_while(|(other, _)| other.starts_with(path))
                .any(|(_, other)| *other || writes)
    }
}

fn components(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(inputs: &[&str], outputs: &[&str]) -> Step {
        let texts = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        Step {
            run: "true".into(),
            inputs: texts(inputs),
            outputs: texts(outputs),
            needs: None,
            env: None,
            working_dir: None,
            image: None,
            capsule: None,
            cache: true,
            timeout_secs: None,
            attestation: None,
        }
    }

    fn forbidden(running: &Step, next: &Step) -> bool {
        let mut claims = Claims::default();
        claims.add(running);
        claims.forbid(next)
    }

    #[test]
    fn readers_go_together_and_writers_alone() {
        let reads = step(&["src"], &[]);
        let writes = step(&[], &["src/gen"]);
        let beside = step(&[], &["src-gen", "out"]);
        assert!(!forbidden(&reads, &reads));
        assert!(forbidden(&reads, &writes));
        assert!(forbidden(&writes, &reads));
        assert!(forbidden(&writes, &writes));
        assert!(!forbidden(&reads, &beside));
        assert!(!forbidden(&writes, &beside));
        assert!(!forbidden(&step(&[], &[]), &step(&[], &[])));
    }

    #[test]
    fn folders_cover_what_is_below_them() {
        let folder = step(&[], &["out/"]);
        for path in ["out", "out/a", "out//a/b", "./out"] {
            assert!(forbidden(&folder, &step(&[path], &[])), "{path}");
            assert!(
                forbidden(&step(&[], &[path]), &step(&["out"], &[])),
                "{path}"
            );
        }
        for path in ["outer", "ou", "out.d/a", "a/out"] {
            assert!(!forbidden(&folder, &step(&[path], &[])), "{path}");
        }
        assert!(forbidden(&step(&["."], &[]), &folder));
    }

    #[test]
    fn a_path_that_is_read_and_written_counts_as_written() {
        let both = step(&["a"], &["a"]);
        assert!(forbidden(&both, &step(&["a/b"], &[])));
        let mut claims = Claims::default();
        let (writes, reads) = (step(&[], &["a"]), step(&["a"], &[]));
        claims.add(&writes);
        claims.add(&reads);
        assert!(claims.forbid(&reads));
    }
}
