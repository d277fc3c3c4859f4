//! Lines for people that fit 80 columns.

/// The widest line, in characters; only a ref that must stay in one piece may be longer.
pub const WIDTH: usize = 80;

/// Breaks text into lines of at most 80 characters behind an indent; words longer than a line are
/// cut, line feeds stay.
#[must_use]
pub fn wrap(text: &str, first: &str, rest: &str) -> String {
    broken(text, first, rest, 0)
}

/// Does the same but leaves words longer than a line in one piece, so that a path or a command can
/// be copied.
#[must_use]
pub fn wrap_words(text: &str, first: &str, rest: &str) -> String {
    broken(text, first, rest, usize::MAX)
}

/// Words of up to `kept` characters stay in one piece, also where they are longer than a line.
fn broken(text: &str, first: &str, rest: &str, kept: usize) -> String {
    let mut out = String::new();
    let mut indent = first;
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
            let whole = fits(word, kept);
            let mut word = word;
            loop {
                let room = WIDTH.saturating_sub(width(indent)).max(1);
                let gap = usize::from(!line.is_empty());
                // A foreign word may be megabytes long: never measured beyond the line.
                let left = room.saturating_sub(width(&line) + gap);
                if fits(word, left) || (line.is_empty() && whole) {
                    if gap == 1 {
                        line.push(' ');
                    }
                    line.push_str(word);
                    break;
                }
                if line.is_empty() {
                    let (head, tail) = split(word, room);
                    line.push_str(head);
                    word = tail;
                }
                push_line(&mut out, indent, &line);
                indent = rest;
                line.clear();
                if word.is_empty() {
                    break;
                }
            }
        }
        push_line(&mut out, indent, &line);
        indent = rest;
    }
    out
}

/// Lines of a label and its value, the values below each other; pairs without value are left out.
/// What could be a digest or an id stays in one piece, so that it can be copied.
#[must_use]
pub fn pairs(pairs: &[(&str, Option<String>)]) -> String {
    let label = pairs.iter().map(|(label, _)| width(label)).max();
    let column = label.unwrap_or_default() + 2;
    let mut out = String::new();
    for (label, value) in pairs {
        if let Some(value) = value {
            let first = pad(label, column);
            out.push_str(&broken(value, &first, &" ".repeat(column), WIDTH));
        }
    }
    out
}

/// Pads with spaces, or cuts and marks the cut.
#[must_use]
pub fn cell(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return pad(text, columns);
    }
    let (head, _) = split(text, columns.saturating_sub(1));
    format!("{head}…")
}

fn push_line(out: &mut String, indent: &str, line: &str) {
    let whole = format!("{indent}{line}");
    out.push_str(whole.trim_end());
    out.push('\n');
}

fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

fn split(text: &str, at: usize) -> (&str, &str) {
    let cut = text
        .char_indices()
        .nth(at)
        .map_or(text.len(), |(cut, _)| cut);
    text.split_at(cut)
}

fn fits(text: &str, columns: usize) -> bool {
    text.chars().nth(columns).is_none()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_indent() {
        let text = wrap(&"word ".repeat(40), "- ", "  ");
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(text.matches("word").count(), 40);
        assert_eq!(wrap("a\n\nb", "> ", "  "), "> a\n\n  b\n");
    }

    #[test]
    fn a_word_without_end_is_cut_and_nothing_is_lost() {
        let word = "ü".repeat(200);
        let text = wrap(&word, "", "");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(text.replace('\n', ""), word);
    }

    #[test]
    fn words_stay_whole_where_they_are_to_be_copied() {
        let path = "/x".repeat(60);
        let text = wrap_words(&format!("cannot read `{path}` now"), "error: ", "  ");
        assert_eq!(text, format!("error: cannot read\n  `{path}`\n  now\n"));
        let text = wrap_words(&"word ".repeat(40), "hint: ", "  ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(text.matches("word").count(), 40);
    }

    /// What grows with the square of the length does not end within the limit of the suite.
    #[test]
    fn a_word_of_megabytes_is_laid_out() {
        let word = "x".repeat(16 << 20);
        let text = wrap(&word, "  ", "  ");
        assert_eq!(text.lines().count(), word.len().div_ceil(WIDTH - 2));
        assert_eq!(text.matches('x').count(), word.len());
    }

    #[test]
    fn pairs_line_up_and_skip_what_is_absent() {
        let text = pairs(&[
            ("id", Some("1".into())),
            ("gone", None),
            ("status", Some("done".into())),
        ]);
        assert_eq!(text, "id      1\nstatus  done\n");
    }

    #[test]
    fn a_digest_beside_its_label_stays_in_one_piece_and_longer_words_do_not() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let text = pairs(&[("artifact_digest", Some(digest.clone()))]);
        assert_eq!(text, format!("artifact_digest  {digest}\n"));
        let text = pairs(&[("about", Some("x".repeat(WIDTH + 1)))]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn cells_are_padded_or_cut() {
        assert_eq!(cell("ab", 3), "ab ");
        assert_eq!(cell("abcd", 3), "ab…");
    }
}
