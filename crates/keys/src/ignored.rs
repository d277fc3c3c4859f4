//! Whether git would take a folder into a commit, read from the ignore files around it. What they
//! say is read on the safe side: a pattern that is not understood ignores nothing.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// The name of an ignore file.
pub(crate) const FILE: &str = ".gitignore";
/// A longer file is not read, and so ignores nothing.
const BYTES: u64 = 1024 * 1024;
/// What stands for the keys: no pattern means a certain one.
const KEY: &[u8] = b"00000000000000000000000000000000.key";

/// Returns the work tree that a folder (without links in its path) is in, unless it is ignored there.
pub(crate) fn exposed_in(folder: &Path) -> Option<PathBuf> {
    let is_git = |part: Component<'_>| part.as_os_str() == ".git";
    let top = folder.ancestors().find(|above| is_work_tree(above))?;
    let below = folder.strip_prefix(top).ok()?;
    if below.components().any(is_git) {
        return None;
    }
    let mut path: Vec<&[u8]> = below.components().map(|part| bytes(part)).collect();
    path.push(KEY);
    let rules = rules(top, &path);
    // What is in a folder that is ignored cannot be taken back in.
    let mut levels = (1..=path.len()).filter_map(|end| path.get(..end));
    let ignored = levels.any(|level| is_ignored(&rules, level, level.len() < path.len()));
    (!ignored).then(|| top.to_owned())
}

/// A work tree has its repository in a folder, or a file that says where that is.
fn is_work_tree(folder: &Path) -> bool {
    let git = folder.join(".git");
    fs_err::metadata(&git).is_ok_and(|found| found.is_file() || git.join("HEAD").exists())
}

fn bytes(part: Component<'_>) -> &[u8] {
    match part {
        Component::Normal(name) => name.as_bytes(),
        _ => b"",
    }
}

/// A line of an ignore file.
#[derive(Debug)]
struct Rule {
    /// How many levels below the top its file lies.
    depth: usize,
    parts: Vec<Vec<Token>>,
    takes_back: bool,
    folders_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Star,
    Any,
    Byte(u8),
}

/// All rules that could say something of the path; the later ones are stronger.
fn rules(top: &Path, path: &[&[u8]]) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut take = |file: PathBuf, depth| {
        let text = safe_fs::read_bounded(&file, BYTES).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        rules.extend(lines.filter_map(|line| rule(line, depth)));
    };
    take(top.join(".git/info/exclude"), 0);
    let mut folder = top.to_owned();
    for (depth, part) in path.iter().enumerate() {
        take(folder.join(FILE), depth);
        folder.push(std::ffi::OsStr::from_bytes(part));
    }
    rules
}

fn rule(line: &[u8], depth: usize) -> Option<Rule> {
    let mut text = line;
    while let Some(shorter) = text.strip_suffix(b" ").filter(|it| !it.ends_with(b"\\")) {
        text = shorter;
    }
    let (takes_back, text) = match text.strip_prefix(b"!") {
        Some(rest) => (true, rest),
        None if text.starts_with(b"#") => return None,
        None => (false, text),
    };
    let (folders_only, text) = match text.strip_suffix(b"/") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let anchored = text.contains(&b'/');
    let text = text.strip_prefix(b"/").unwrap_or(text);
    if text.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    if !anchored {
        parts.push(vec![Token::Star, Token::Star]);
    }
    for part in text.split(|byte| *byte == b'/') {
        match tokens(part) {
            Some(tokens) => parts.push(tokens),
            // What might take the keys back in is taken to do so.
            None if takes_back => {
                return Some(Rule {
                    depth,
                    parts: vec![vec![Token::Star; 2]],
                    takes_back,
                    folders_only,
                });
            }
            None => return None,
        }
    }
    Some(Rule {
        depth,
        parts,
        takes_back,
        folders_only,
    })
}

/// Takes a part between two `/` apart. Classes (`[a-z]`) are not understood.
fn tokens(part: &[u8]) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = part.iter().copied();
    while let Some(byte) = rest.next() {
        tokens.push(match byte {
            b'*' => Token::Star,
            b'?' => Token::Any,
            b'[' => return None,
            b'\\' => Token::Byte(rest.next()?),
            byte => Token::Byte(byte),
        });
    }
    Some(tokens)
}

fn is_ignored(rules: &[Rule], path: &[&[u8]], folder: bool) -> bool {
    let last = rules.iter().rev().find(|rule| {
        (folder || !rule.folders_only)
            && path.get(rule.depth..).is_some_and(|below| {
                !below.is_empty()
                    && matches(
                        &rule.parts,
                        below,
                        |part| is_any_depth(part),
                        |part, name| part_matches(part, name),
                    )
            })
    });
    last.is_some_and(|rule| !rule.takes_back)
}

fn is_any_depth(part: &[Token]) -> bool {
    part.len() > 1 && part.iter().all(|token| *token == Token::Star)
}

fn part_matches(part: &[Token], name: &&[u8]) -> bool {
    let one = |token: &Token, byte: &u8| match token {
        Token::Byte(wanted) => wanted == byte,
        Token::Any | Token::Star => true,
    };
    matches(part, name, |token| *token == Token::Star, one)
}

/// Matches a whole text by a pattern in which some things stand for any number of its items. Going
/// back to the last of those only is enough, and keeps the time short whatever the pattern.
fn matches<P, T>(
    pattern: &[P],
    text: &[T],
    is_many: impl Fn(&P) -> bool,
    one: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut here) = (0, 0);
    let mut last: Option<(usize, usize)> = None;
    while let Some(item) = text.get(here) {
        match pattern.get(at) {
            Some(many) if is_many(many) => {
                last = Some((at, here));
                at += 1;
            }
            Some(wanted) if one(wanted, item) => {
                at += 1;
                here += 1;
            }
            _ => match last {
                Some((many, from)) => {
                    last = Some((many, from + 1));
                    at = many + 1;
                    here = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(is_many)
}

#[cfg(test)]
mod tests;
