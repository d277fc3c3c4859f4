//! How much of an output is kept for the receipt.

use std::collections::VecDeque;

/// Most bytes of a stream that are kept by default.
const TAIL: usize = 64 * 1024;
/// Most bytes of a stream that are kept on request.
const FULL: usize = 4 * 1024 * 1024;
/// Most bytes that the outputs of all steps may take in a receipt, as they are stored there.
pub const RECEIPT: usize = 12 * 1024 * 1024;

/// What stands between the number of bytes that are gone and those that are left.
const MARKER: &str = " bytes cut by attest]\n";

/// How much of each stream is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Record {
    /// Nothing
    None,
    /// The last 64 KiB
    #[default]
    Tail,
    /// The last 4 MiB
    Full,
}

impl Record {
    /// Returns the most bytes that are kept.
    #[must_use]
    pub const fn limit(self) -> usize {
        match self {
            Self::None => 0,
            Self::Tail => TAIL,
            Self::Full => FULL,
        }
    }
}

/// The kept end of a stream, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// How many bytes before it are gone.
    cut: u64,
    text: String,
}

impl Recorded {
    /// Takes text that was kept before, perhaps with a line in front that says how much is gone.
    #[must_use]
    pub fn bounded(text: &str, record: Record) -> Self {
        if record == Record::None {
            return Self::default();
        }
        let (cut, text) = unmarked(text);
        let (gone, text) = tail(text, record.limit());
        Self {
            cut: cut.saturating_add(gone as u64),
            text: text.to_owned(),
        }
    }

    /// Returns the end of the text, and whether anything before it is gone.
    #[must_use]
    pub fn tail(&self, limit: usize) -> (&str, bool) {
        let (gone, text) = tail(&self.text, limit);
        (text, gone > 0 || self.cut > 0)
    }

    /// Returns the text for the receipt, with a line in front that says how much is gone.
    #[must_use]
    pub fn into_text(self) -> String {
        match self.cut {
            0 => self.text,
            cut => format!("[{cut}{MARKER}{}", self.text),
        }
    }

    /// Returns how many bytes the text takes in a receipt, or a little less.
    #[must_use]
    pub fn stored_size(&self) -> usize {
        self.text.chars().map(stored_size).sum()
    }

    /// Cuts the front off until the rest takes at most so many bytes in a receipt.
    pub fn shrink(&mut self, stored: usize) {
        let mut left = stored;
        let mut keep_from = self.text.len();
        for (at, character) in self.text.char_indices().rev() {
            let Some(rest) = left.checked_sub(stored_size(character)) else {
                break;
            };
            left = rest;
            keep_from = at;
        }
        self.cut += keep_from as u64;
        self.text.drain(..keep_from);
    }
}

/// Returns the end of text that a receipt holds. Where it does not fit, the line in front that says
/// how much is gone goes as a whole.
#[must_use]
pub fn recorded_tail(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    tail(unmarked(text).1, limit).1
}

/// Tells how much is gone by the line in front of a text, and the text without that line.
fn unmarked(text: &str) -> (u64, &str) {
    let marked = text.strip_prefix('[').and_then(|text| {
        let (count, text) = text.split_once(MARKER)?;
        // Nothing but what `into_text` writes is taken for it.
        let cut: u64 = count.parse().ok()?;
        (cut > 0 && cut.to_string() == count).then_some((cut, text))
    });
    marked.unwrap_or((0, text))
}

/// Keeps the last whole characters that fit; tells how many bytes did not.
fn tail(text: &str, limit: usize) -> (usize, &str) {
    let end = bounded::text::tail(text, limit);
    (text.len() - end.len(), end)
}

/// Cuts outputs until all of them together take at most so many bytes in a receipt; the first ones
/// keep theirs. May be done again when more come in between: what one may keep only gets less, and
/// its end stays its end.
pub fn fit<'a>(outputs: impl Iterator<Item = &'a mut Recorded>, stored: usize) {
    let outputs: Vec<_> = outputs.collect();
    let bytes: usize = outputs.iter().map(|recorded| recorded.text.len()).sum();
    if bytes.saturating_mul(LARGEST) <= stored {
        return;
    }
    let mut left = stored;
    for recorded in outputs {
        let mut size = recorded.stored_size();
        if size > left {
            recorded.shrink(left);
            size = recorded.stored_size();
        }
        left = left.saturating_sub(size);
    }
}

/// Most bytes that a byte of text takes in a receipt.
const LARGEST: usize = 10;

/// YAML escapes what does not print and indents every line.
fn stored_size(character: char) -> usize {
    match character {
        '\n' => 8,
        ' '..='~' => 1,
        '\u{a0}'..='\u{d7ff}' if !matches!(character, '\u{2028}' | '\u{2029}') => {
            character.len_utf8()
        }
        _ => LARGEST,
    }
}

/// Keeps the end of a stream while it comes.
#[derive(Debug)]
pub struct Keeper {
    limit: usize,
    seen: u64,
    kept: VecDeque<u8>,
}

impl Keeper {
    /// Starts at the beginning of a stream.
    #[must_use]
    pub fn new(record: Record) -> Self {
        Self {
            limit: record.limit(),
            seen: 0,
            kept: VecDeque::new(),
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        let bytes = last(bytes, self.limit);
        let over = (self.kept.len() + bytes.len()).saturating_sub(self.limit);
        self.kept.drain(..over.min(self.kept.len()));
        self.kept.extend(bytes);
    }

    /// Returns what was kept, as text that starts and ends with whole characters.
    #[must_use]
    pub fn finish(mut self) -> Recorded {
        if self.limit == 0 {
            return Recorded::default();
        }
        let bytes = self.kept.make_contiguous();
        let mut cut = self.seen - bytes.len() as u64;
        let mut bytes = &*bytes;
        if cut > 0 {
            let inside = bytes
                .iter()
                .take(3)
                .take_while(|byte| **byte & 0xc0 == 0x80);
            let inside = inside.count();
            cut += inside as u64;
            bytes = bytes.get(inside..).unwrap_or_default();
        }
        let (gone, text) = lossy_tail(bytes, self.limit);
        Recorded {
            cut: cut + gone as u64,
            text,
        }
    }
}

fn last(bytes: &[u8], count: usize) -> &[u8] {
    bytes
        .get(bytes.len().saturating_sub(count)..)
        .unwrap_or_default()
}

/// Decodes bytes and keeps the last characters that fit; says how many bytes did not. What is no
/// text takes three bytes as `U+FFFD`, so that a stream may grow when it is decoded.
fn lossy_tail(bytes: &[u8], limit: usize) -> (usize, String) {
    let whole = String::from_utf8_lossy(bytes);
    let mut excess = whole.len().saturating_sub(limit);
    if excess == 0 {
        return (0, whole.into_owned());
    }
    let (mut gone, mut from) = (0, 0);
    let mut drop_one = |raw: usize, decoded: usize| {
        if excess == 0 {
            return false;
        }
        excess = excess.saturating_sub(decoded);
        gone += raw;
        from += decoded;
        true
    };
    'bytes: for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if !drop_one(character.len_utf8(), character.len_utf8()) {
                break 'bytes;
            }
        }
        if !chunk.invalid().is_empty()
            && !drop_one(
                chunk.invalid().len(),
                char::REPLACEMENT_CHARACTER.len_utf8(),
            )
        {
            break;
        }
    }
    (gone, whole.get(from..).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(record: Record, pieces: &[&[u8]]) -> String {
        let mut keeper = Keeper::new(record);
        for piece in pieces {
            keeper.push(piece);
        }
        keeper.finish().into_text()
    }

    #[test]
    fn so_many_bytes_are_kept_and_one_more_is_cut() {
        let exact = "x".repeat(TAIL);
        assert_eq!(kept(Record::Tail, &[exact.as_bytes()]), exact);
        let over = kept(Record::Tail, &[b"y", exact.as_bytes()]);
        assert_eq!(over, format!("[1 bytes cut by attest]\n{exact}"));
        assert_eq!(
            kept(Record::Full, &[b"y", exact.as_bytes()]).len(),
            TAIL + 1
        );
        assert_eq!(kept(Record::None, &[b"y"]), "");
    }

    #[test]
    fn the_cut_falls_between_characters() {
        let mut text = "é".repeat(TAIL / 2);
        text.push('x');
        let out = kept(Record::Tail, &[text.as_bytes()]);
        let tail = format!("{}x", "é".repeat(TAIL / 2 - 1));
        assert_eq!(out, format!("[2 bytes cut by attest]\n{tail}"));
    }

    #[test]
    fn pieces_make_no_difference() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| n.to_le_bytes()[0]).collect();
        let whole = kept(Record::Tail, &[&bytes]);
        for size in [1, 7, 4096, 65_536, 65_537] {
            let pieces: Vec<_> = bytes.chunks(size).collect();
            assert_eq!(kept(Record::Tail, &pieces), whole, "{size}");
        }
    }

    #[test]
    fn what_is_no_text_stays_within_the_bound() {
        let bytes = vec![0xff; TAIL];
        let out = kept(Record::Tail, &[&bytes]);
        let (marker, text) = out.split_once('\n').unwrap();
        assert!(text.len() <= TAIL);
        assert_eq!(marker, format!("[{} bytes cut by attest]", TAIL - TAIL / 3));
    }

    #[test]
    fn outputs_fit_alike_whoever_came_first() {
        let output = |text: &str| Recorded::bounded(text, Record::Tail);
        let texts = ["aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"];
        let told = |outputs: [Recorded; 3]| outputs.map(Recorded::into_text);
        let mut at_once = texts.map(output);
        fit(at_once.iter_mut(), 25);
        let at_once = told(at_once);
        assert_eq!(
            at_once,
            [texts[0], texts[1], "[5 bytes cut by attest]\nccccc"]
        );
        for first in 0..3 {
            for second in (0..3).filter(|second| *second != first) {
                let mut outputs = texts.map(output);
                let mut there = [false; 3];
                for next in [first, second, 3 - first - second] {
                    there[next] = true;
                    let present = outputs.iter_mut().zip(there);
                    fit(present.filter_map(|(o, there)| there.then_some(o)), 25);
                }
                assert_eq!(told(outputs), at_once, "{first} {second}");
            }
        }
    }

    #[test]
    fn an_output_without_room_keeps_its_marker() {
        let mut outputs = [Recorded::bounded("abc", Record::Tail)];
        fit(outputs.iter_mut(), 0);
        assert_eq!(outputs[0].clone().into_text(), "[3 bytes cut by attest]\n");
    }

    #[test]
    fn shrinking_counts_what_yaml_makes_of_it() {
        let mut recorded = Recorded::bounded("ab\u{1}\ncd", Record::Tail);
        assert_eq!(recorded.stored_size(), 22);
        recorded.shrink(22);
        assert_eq!(recorded.clone().into_text(), "ab\u{1}\ncd");
        recorded.shrink(11);
        assert_eq!(recorded.into_text(), "[3 bytes cut by attest]\n\ncd");
    }

    #[test]
    fn text_that_was_kept_before_says_how_much_was_cut_then() {
        let read = |text: &str| Recorded::bounded(text, Record::Tail);
        let kept = read("[7 bytes cut by attest]\n[1 bytes cut by attest]\nabc");
        assert_eq!(kept.tail(100), ("[1 bytes cut by attest]\nabc", true));
        assert_eq!(kept.tail(2), ("bc", true));
        assert_eq!(read("abc").tail(3), ("abc", false));
        assert_eq!(read("xéy").tail(2), ("y", true));
        for plain in [
            "[0 bytes cut by attest]\nabc",
            "[07 bytes cut by attest]\nabc",
            "[+7 bytes cut by attest]\nabc",
            "[7 bytes cut by attest]",
            "x[7 bytes cut by attest]\n",
        ] {
            assert_eq!(read(plain).tail(100), (plain, false), "{plain}");
        }
        let long = format!("[7 bytes cut by attest]\nx{}", "y".repeat(TAIL));
        let again = read(&long).into_text();
        assert_eq!(
            again,
            format!("[8 bytes cut by attest]\n{}", "y".repeat(TAIL))
        );
        assert_eq!(recorded_tail(&again, TAIL), "y".repeat(TAIL));
        assert_eq!(recorded_tail(&again, TAIL + 40), again);
        assert_eq!(Recorded::bounded("abc", Record::None).tail(3), ("", false));
    }
}
