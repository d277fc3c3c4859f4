//! One program makes every kind of document in a workspace, the other judges them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

const PIPELINE: &str = r#"version: 1.0
name: "odd: names & numbers"
env: {PORT: 8080, WORD: "yes"}
steps:
  "1st":
    run: |
      mkdir -p out
      cat src/a.txt "src/deep dir/é/y z.txt" > out/one.bin
      ln -sf one.bin out/alias
    inputs: [src, data/empty]
    outputs: [out]
  check it:
    run: "test -s out/one.bin && echo \"port $PORT\"; printf '\\001\\t\\\\ \\033[1m\\n' >&2"
    inputs: [out/one.bin]
    needs: ["1st"]
    timeout_secs: 30
    env: {MODE: fast, N: 0x10}
  uncached:
    run: "echo \"- ünï: 'x' #y\""
    cache: false
"#;

const FAILING: &str = r#"version: "1"
steps:
  fails: {run: "echo out; echo err >&2; exit 7"}
  stands alone: {run: "true"}
  follows: {run: "true", needs: [fails]}
"#;

/// Steps whose files the copies of the original have all of: it leaves links out of them.
const WITHOUT_LINKS: &str = r#"version: "1"
steps:
  first: {run: "cat in > first.txt", inputs: [in], outputs: [first.txt]}
  second: {run: "cat in first.txt > second.txt", inputs: [in, first.txt], outputs: [second.txt], needs: [first]}
"#;

/// Runs everything twice.
const TWICE: [&str; 3] = ["run", "--sign", "--check-reproducibility"];

/// The record of a plugin, which no release of the original knows.
const PLUGIN: &str = "plugins:
- name: policy
  version: 1.0.0
  protocol: 1
  digest: blake3:0000000000000000000000000000000000000000000000000000000000000000
  decision: allow
  deterministic: true
";

/// What one program makes and the other judges.
pub(super) struct Case<'a> {
    /// The program that makes the documents.
    pub(super) maker: &'a Path,
    /// The program that judges them.
    pub(super) judge: &'a Path,
    /// Where.
    pub(super) folder: PathBuf,
    /// Whether ours is the maker.
    pub(super) ours: bool,
}

impl Case<'_> {
    /// Makes and judges; returns how many comparisons there were and what was found.
    pub(super) fn run(&self) -> Result<(usize, Vec<String>)> {
        let workspace = self.folder.join("workspace");
        lay_out(&workspace)?;
        fs::write(workspace.join("attest.yaml"), PIPELINE)?;
        self.make(&workspace, &["init"])?;
        let key = self.make(&workspace, &["keys", "generate", "--name", "interop"])?;
        let mut findings = Vec::new();
        let mut count = 0;
        let mut judged = |what: &str, finding: Option<String>| {
            count += 1;
            findings.extend(finding.map(|text| format!("{what}: {text}")));
        };

        let signed = self.receipt(&workspace, &["run", "--sign"], 0)?;
        judged("pipeline", self.recomputes(&workspace, &signed)?);
        judged("archive", self.archive(&workspace, &signed)?);
        judged("statement", self.statement(&workspace, &signed)?);
        judged("tampered receipt", self.tampered(&workspace, &signed)?);
        let cached = self.receipt(&workspace, &["run", "--sign"], 0)?;
        judged("cached pipeline", self.recomputes(&workspace, &cached)?);
        let unsigned = self.receipt(&workspace, &["run"], 0)?;
        let signed_later = self.signed_by_the_other(&workspace, &unsigned, key.trim())?;
        judged(
            "signed by the other",
            self.recomputes(&workspace, &signed_later)?,
        );
        let double = self.receipt(&workspace, &TWICE, 0)?;
        if self.ours {
            judged("reproducibility", self.recomputes(&workspace, &double)?);
            judged("plugins", self.plugins(&workspace, &unsigned)?);
        } else {
            // The copies that the original compares lack the links, and so does its receipt.
            judged("reproducibility", self.verifies(&workspace, &double)?);
        }
        judged("reproducibility without links", self.without_links()?);

        fs::create_dir_all(workspace.join("made"))?;
        let before = newest(&workspace)?;
        let words = [
            "run",
            "--wrap",
            "--name",
            "wrap it",
            "--sign",
            "--input",
            "src",
            "--output",
            "made/w.txt",
            "--",
            "sh",
            "-c",
            "printf 'a  b' > made/w.txt; echo done; echo err >&2",
        ];
        self.make(&workspace, &words)?;
        let wrapped = newest(&workspace)?.filter(|path| before.as_ref() != Some(path));
        let wrapped = wrapped.context("wrapping left no receipt")?;
        judged("wrapped command", self.recomputes(&workspace, &wrapped)?);

        let image = format!("registry.example/base@sha256:{}", "ab".repeat(32));
        let words = ["capsule", "init", "--image", &image, "--name", "cap"];
        self.make(&workspace, &words)?;
        let words = ["capsule", "hash", "cap"];
        judged("capsule", self.same_words(&workspace, &words)?);
        let words = [
            "hash", "--run", "make all", "--input", "src", "--input", "data",
        ];
        judged("input manifest", self.same_words(&workspace, &words)?);
        let words = ["hash", "--output", "out", "--output", "made"];
        judged("output manifest", self.same_words(&workspace, &words)?);

        fs::write(workspace.join("attest.yaml"), FAILING)?;
        let failed = self.receipt(&workspace, &["run", "--sign"], 1)?;
        judged("failed pipeline", self.verifies(&workspace, &failed)?);
        Ok((count, findings))
    }

    /// Runs the maker and returns its stdout.
    fn make(&self, workspace: &Path, words: &[&str]) -> Result<String> {
        let output = start(self.maker, workspace, words)?;
        said(&output, words, 0)
    }

    /// Runs the maker and returns the receipt that it names on stdout.
    fn receipt(&self, workspace: &Path, words: &[&str], code: i32) -> Result<PathBuf> {
        let words: Vec<&str> = ["-q"].iter().chain(words).copied().collect();
        let output = start(self.maker, workspace, &words)?;
        let path = said(&output, &words, code)?;
        Ok(workspace.join(path.trim()))
    }

    fn verifies(&self, workspace: &Path, receipt: &Path) -> Result<Option<String>> {
        self.judged(workspace, &["verify".as_ref(), receipt.as_os_str()], 0)
    }

    fn recomputes(&self, workspace: &Path, receipt: &Path) -> Result<Option<String>> {
        let words = [
            "verify".as_ref(),
            "--recompute".as_ref(),
            "--require".as_ref(),
            "signature,recompute".as_ref(),
            receipt.as_os_str(),
        ];
        self.judged(workspace, &words, 0)
    }

    fn archive(&self, workspace: &Path, receipt: &Path) -> Result<Option<String>> {
        let archive = workspace.join("receipt.attest.tar.zst");
        let words: [&OsStr; 6] = [
            "causal".as_ref(),
            "export".as_ref(),
            "--receipt".as_ref(),
            receipt.as_os_str(),
            "-o".as_ref(),
            archive.as_os_str(),
        ];
        said(&start(self.maker, workspace, &words)?, &words, 0)?;
        let words = [
            "verify".as_ref(),
            "--require".as_ref(),
            "signature,linkage".as_ref(),
            "--archive".as_ref(),
            archive.as_os_str(),
        ];
        self.judged(workspace, &words, 0)
    }

    /// The judge recomputes what was run twice in a workspace without links.
    fn without_links(&self) -> Result<Option<String>> {
        let workspace = self.folder.join("without-links");
        fs::create_dir_all(&workspace)?;
        fs::write(workspace.join("in"), "x\n")?;
        fs::write(workspace.join("attest.yaml"), WITHOUT_LINKS)?;
        self.make(&workspace, &["init"])?;
        self.make(&workspace, &["keys", "generate", "--name", "interop"])?;
        // The two copies are gone afterwards; this leaves the same outputs here.
        self.receipt(&workspace, &["run"], 0)?;
        let double = self.receipt(&workspace, &TWICE, 0)?;
        self.recomputes(&workspace, &double)
    }

    /// The original refuses a receipt with the records of plugins, which ours reads, by its field.
    fn plugins(&self, workspace: &Path, unsigned: &Path) -> Result<Option<String>> {
        let path = workspace.join("plugins.yaml");
        fs::write(&path, fs::read_to_string(unsigned)? + PLUGIN)?;
        let words = ["show".as_ref(), path.as_os_str()];
        said(&start(self.maker, workspace, &words)?, &words, 0)?;
        let words = ["verify".as_ref(), path.as_os_str()];
        let output = start(self.judge, workspace, &words)?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let refused = output.status.code() == Some(1)
            && text.contains("unknown field")
            && text.contains("plugins");
        Ok((!refused).then(|| format!("{} and no unknown field:\n{text}", output.status)))
    }

    /// The judge accepts the statement of a receipt, and the files that it lists.
    fn statement(&self, workspace: &Path, receipt: &Path) -> Result<Option<String>> {
        let statement = workspace.join("receipt.intoto.json");
        let words: [&OsStr; 7] = [
            "export".as_ref(),
            "--format".as_ref(),
            "in-toto".as_ref(),
            "--receipt".as_ref(),
            receipt.as_os_str(),
            "--output".as_ref(),
            statement.as_os_str(),
        ];
        said(&start(self.maker, workspace, &words)?, &words, 0)?;
        let words = [
            "import".as_ref(),
            statement.as_os_str(),
            "--format".as_ref(),
            "in-toto".as_ref(),
            "--artifact-root".as_ref(),
            workspace.as_os_str(),
            "--require".as_ref(),
            "signature,artifacts".as_ref(),
        ];
        self.judged(workspace, &words, 0)
    }

    /// The judge refuses a receipt whose exit code was changed.
    fn tampered(&self, workspace: &Path, receipt: &Path) -> Result<Option<String>> {
        let text = fs::read_to_string(receipt)?;
        let changed = text.replacen("exit_code: 0", "exit_code: 1", 1);
        if changed == text {
            bail!("the receipt names no exit code");
        }
        let path = workspace.join("tampered.yaml");
        fs::write(&path, changed)?;
        self.judged(workspace, &["verify".as_ref(), path.as_os_str()], 1)
    }

    /// The judge signs what the maker left unsigned, with the maker's key.
    fn signed_by_the_other(&self, workspace: &Path, receipt: &Path, key: &str) -> Result<PathBuf> {
        let signed = workspace.join("signed-later.yaml");
        let words: [&OsStr; 6] = [
            "sign".as_ref(),
            receipt.as_os_str(),
            "--key".as_ref(),
            key.as_ref(),
            "--output".as_ref(),
            signed.as_os_str(),
        ];
        said(&start(self.judge, workspace, &words)?, &words, 0)?;
        Ok(signed)
    }

    fn judged(&self, workspace: &Path, words: &[&OsStr], code: i32) -> Result<Option<String>> {
        let output = start(self.judge, workspace, words)?;
        if output.status.code() == Some(code) {
            return Ok(None);
        }
        Ok(Some(format!(
            "{} instead of exit code {code}:\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )))
    }

    fn same_words(&self, workspace: &Path, words: &[&str]) -> Result<Option<String>> {
        let made = said(&start(self.maker, workspace, words)?, words, 0)?;
        let judged = said(&start(self.judge, workspace, words)?, words, 0)?;
        let differ = made.trim() != judged.trim();
        Ok(differ.then(|| format!("{} and {}", made.trim(), judged.trim())))
    }
}

/// Files, folders, links and names of every kind that a manifest can hold.
pub(super) fn lay_out(workspace: &Path) -> Result<()> {
    fs::create_dir_all(workspace.join("src/deep dir/é"))?;
    fs::create_dir_all(workspace.join("src/empty"))?;
    fs::create_dir_all(workspace.join("data"))?;
    fs::write(workspace.join("src/a.txt"), "a\n")?;
    fs::write(workspace.join("src/.hidden"), "")?;
    fs::write(workspace.join("src/deep dir/é/y z.txt"), "x")?;
    fs::write(workspace.join("data/empty"), "")?;
    symlink("a.txt", workspace.join("src/link"))?;
    Ok(())
}

/// The newest receipt of a workspace.
fn newest(workspace: &Path) -> Result<Option<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(workspace.join(".attest/receipts"))? {
        let entry = entry?;
        found.push((entry.metadata()?.modified()?, entry.path()));
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
}

/// Starts a program in a workspace, without anything of this one's CI in its environment.
pub(super) fn start<W: AsRef<OsStr>>(
    program: &Path,
    workspace: &Path,
    words: &[W],
) -> Result<Output> {
    Command::new(program)
        .args(words)
        .current_dir(workspace)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// The stdout of a program that ended as it should.
pub(super) fn said<W: AsRef<OsStr>>(output: &Output, words: &[W], code: i32) -> Result<String> {
    if output.status.code() != Some(code) {
        let words: Vec<_> = words
            .iter()
            .map(|word| word.as_ref().to_string_lossy())
            .collect();
        bail!(
            "`{}` ended with {} instead of exit code {code}:\n{}{}",
            words.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
