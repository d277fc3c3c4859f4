//! Random pipelines that both programs run: every hash in the two receipts is the same.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use super::case::{lay_out, said, start};

/// Pieces of names, values and commands that YAML writers and readers trip over.
const PIECES: [&str; 28] = [
    "a", "Z", "0", "42", "1e3", "0x1f", "1_0", "true", "null", "yes", "~", "-", "- ", ": ", " #",
    "'", "\"", "\\", "&x", "*y", "!t", "%", "@", "é", "\u{2028}", "😀", "  ", "\t",
];

/// A small generator (xorshift64*), so that a round can be repeated by its number.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let wide = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(wide).unwrap_or(0) % bound.max(1)
    }

    fn text(&mut self, pieces: usize) -> String {
        (0..=self.below(pieces))
            .filter_map(|_| PIECES.get(self.below(PIECES.len())))
            .copied()
            .collect()
    }
}

/// Runs one random pipeline with both programs; says in which hash they differ.
pub(super) fn round(
    theirs: &Path,
    ours: &Path,
    folder: &Path,
    seed: u64,
) -> Result<Option<String>> {
    let text = pipeline(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
    let their_hashes = hashes(theirs, &folder.join("theirs"), &text)?;
    let our_hashes = hashes(ours, &folder.join("ours"), &text)?;
    if their_hashes.is_empty() {
        bail!("a receipt without hashes");
    }
    let differ = their_hashes != our_hashes;
    Ok(differ.then(|| format!("{their_hashes:?} and {our_hashes:?} for\n{text}")))
}

/// A pipeline whose texts are JSON strings, which YAML reads alike.
fn pipeline(random: &mut Random) -> String {
    let quoted = |text: String| serde_json::Value::String(text).to_string();
    let mut text = format!("version: {}\n", quoted(format!("v{}", random.text(3))));
    if random.below(2) == 0 {
        text.push_str(&format!("name: {}\n", quoted(random.text(5))));
    }
    text.push_str("env:\n  PLAIN: 0x10\n");
    text.push_str(&format!("  TEXT: {}\nsteps:\n", quoted(random.text(6))));
    let steps = 1 + random.below(4);
    for step in 0..steps {
        // Ours takes no control character in a step's name, and YAML no break of a line in a key.
        let name = random.text(3).replace(['\t', '\u{2028}'], "_");
        text.push_str(&format!("  {}:\n", quoted(format!("s{step} {name}"))));
        // A here-document passes any piece through the shell as it is.
        let lines = format!("cat <<'END'\n{}\n{}\nEND\n", random.text(8), random.text(8));
        text.push_str(&format!("    run: {}\n", quoted(lines)));
        if random.below(2) == 0 {
            text.push_str("    inputs: [src, data]\n");
        }
        if random.below(2) == 0 {
            text.push_str("    cache: false\n    timeout_secs: 20\n");
        }
        if random.below(3) == 0 {
            text.push_str(&format!("    env: {{OWN: {}}}\n", quoted(random.text(4))));
        }
        if random.below(3) == 0 {
            text.push_str("    attestation: {type: lint, reproducible: true}\n");
        }
    }
    text
}

/// Every line of the receipt that a hash or a command decides.
fn hashes(program: &Path, workspace: &Path, pipeline: &str) -> Result<Vec<String>> {
    lay_out(workspace)?;
    fs::write(workspace.join("attest.yaml"), pipeline)?;
    said(&start(program, workspace, &["init"])?, &["init"], 0)?;
    let words = ["-q", "run"];
    let path = said(&start(program, workspace, &words)?, &words, 0)?;
    let receipt = fs::read_to_string(workspace.join(path.trim()))?;
    let decided = [
        "pipeline_hash:",
        "input_hash:",
        "output_hash:",
        "command_hash:",
        "name:",
        "stdout:",
    ];
    let lines = receipt
        .lines()
        .map(|line| line.trim_start_matches([' ', '-']).to_owned())
        .filter(|line| decided.iter().any(|start| line.starts_with(start)));
    // The other program runs steps that do not need each other in an order that changes.
    let mut named: Vec<Vec<String>> = vec![Vec::new()];
    for line in lines {
        if line.starts_with("name:") {
            named.push(Vec::new());
        }
        named
            .last_mut()
            .into_iter()
            .for_each(|last| last.push(line.clone()));
    }
    named.sort();
    Ok(named.concat())
}
