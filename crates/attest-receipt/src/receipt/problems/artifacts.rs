//! Whether the artifacts of a step are what its outputs and its hash say.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::Problems;
use crate::declared::{Declared, is_under};
use crate::manifest::{Entry, Manifest, check_path};
use crate::receipt::{Artifact, ArtifactKind, DeclaredStep, Provenance, StepResult};
use crate::text::{is_lower_hex_64, shown};

impl Problems {
    pub(super) fn artifacts(&mut self, provenance: &Provenance, results: &[StepResult]) {
        let results: BTreeMap<&str, &StepResult> = results
            .iter()
            .map(|step| (step.name.as_str(), step))
            .collect();
        let mut made: BTreeMap<&str, Vec<&Artifact>> = BTreeMap::new();
        for artifact in &provenance.artifacts {
            made.entry(&artifact.step).or_default().push(artifact);
        }
        for step in &provenance.steps {
            let made = made.remove(step.name.as_str()).unwrap_or_default();
            let result = results.get(step.name.as_str()).copied();
            self.artifacts_of(step, result, made);
        }
    }

    fn artifacts_of(
        &mut self,
        step: &DeclaredStep,
        result: Option<&StepResult>,
        mut made: Vec<&Artifact>,
    ) {
        let all = made.len();
        // A path that is none is told elsewhere.
        made.retain(|artifact| check_path(&artifact.path).is_ok());
        made.sort_by(|a, b| by_component(&a.path, &b.path));
        let roots = Roots::new(&step.outputs);
        for artifact in &made {
            if !roots.cover(&artifact.path) {
                let (path, step) = (shown(&artifact.path), shown(&step.name));
                self.add(format!(
                    "artifact '{path}' lies under no declared output of step '{step}'"
                ));
            }
        }
        let unique = self.neighbours(&made);
        let sound = made.iter().all(|made| is_lower_hex_64(&made.digest));
        if let Some(result) = result
            && unique
            && sound
            && made.len() == all
        {
            self.output_hash(step, result, &made);
        }
    }

    /// In this order everything below a path stands right behind it.
    fn neighbours(&mut self, sorted: &[&Artifact]) -> bool {
        let mut unique = true;
        for (one, next) in sorted.iter().zip(sorted.iter().skip(1)) {
            let path = shown(&next.path);
            if one.path == next.path {
                unique = false;
                let step = shown(&one.step);
                self.add(format!("artifact '{path}' of step '{step}' stands twice"));
            } else if one.kind == ArtifactKind::File && is_under(&next.path, &one.path) {
                let file = shown(&one.path);
                self.add(format!(
                    "artifact '{file}' is a file and the folder of '{path}'"
                ));
            }
        }
        unique
    }

    /// Compares the hash of the outputs with the files that are told. A result from the cache may
    /// tell none, as the original does; then there is nothing to compare.
    fn output_hash(&mut self, step: &DeclaredStep, result: &StepResult, made: &[&Artifact]) {
        let comparable =
            is_lower_hex_64(&result.output_hash) && (!made.is_empty() || step.outputs.is_empty());
        if comparable && manifest(made).hash() != result.output_hash {
            let name = shown(&step.name);
            self.add(if made.is_empty() {
                format!("step '{name}': output_hash is not the hash of no outputs")
            } else {
                format!("step '{name}': output_hash is not the hash of its artifacts")
            });
        }
    }
}

fn manifest(made: &[&Artifact]) -> Manifest {
    let mut manifest = Manifest::of_outputs();
    for artifact in made {
        let entry = Entry {
            kind: artifact.kind,
            digest: artifact.digest.clone(),
        };
        // The paths have been checked.
        let _in_order = manifest.add(artifact.path.as_str(), entry);
    }
    manifest
}

/// Orders paths so that a folder comes right before what is in it, which bytes do not: `a.b` stands
/// between `a` and `a/b` there.
fn by_component(one: &str, other: &str) -> Ordering {
    one.split('/').cmp(other.split('/'))
}

/// Declared paths, none of which lies under another.
struct Roots<'a>(Vec<&'a str>);

impl<'a> Roots<'a> {
    fn new(declared: &'a [String]) -> Self {
        let declared = declared
            .iter()
            .filter_map(|text| Declared::parse(text).ok());
        let mut roots: Vec<&str> = declared.map(|declared| declared.path).collect();
        // The workspace itself is the empty text, which is before all others.
        roots.sort_by(|a, b| by_component(a, b));
        roots.dedup_by(|next, kept| is_under(next, kept));
        Self(roots)
    }

    /// Asks the last root that is not behind the path: if any covers it, this one does.
    fn cover(&self, path: &str) -> bool {
        let before = self
            .0
            .partition_point(|root| by_component(root, path).is_le());
        let last = before.checked_sub(1).and_then(|index| self.0.get(index));
        last.is_some_and(|root| is_under(path, root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a26_a_root_covers_what_is_under_it_however_many_there_are() {
        let declared: Vec<String> = ["out", "out/a", "./out.d/", "a/b", "a/b/c/d", "é"]
            .map(String::from)
            .into();
        let roots = Roots::new(&declared);
        assert_eq!(roots.0, ["a/b", "out", "out.d", "é"]);
        for path in [
            "out", "out/a", "out/z/z", "out.d/x", "a/b", "a/b/c", "é", "é/é",
        ] {
            assert!(roots.cover(path), "{path}");
        }
        for path in ["a", "a/c", "a/bb", "out.", "out.dd", "ou", "z", "0"] {
            assert!(!roots.cover(path), "{path}");
        }
        assert!(Roots::new(&[".".into(), "a".into()]).cover("anything/at all"));
        assert!(!Roots::new(&[]).cover("a"));
    }
}
