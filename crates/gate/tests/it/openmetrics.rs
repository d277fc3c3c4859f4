//! A checker of OpenMetrics 1.0 text, written from its grammar and apart from what writes the text.

use std::collections::{BTreeMap, BTreeSet};

/// What one exposition says: each sample's value by its name and labels, as they stand there.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    samples: BTreeMap<String, f64>,
    /// The families, with their types.
    pub(crate) families: BTreeMap<String, String>,
}

impl Exposition {
    /// The value of a sample, such as `x_total{pool="a"}`; labels in any order.
    pub(crate) fn get(&self, sample: &str) -> Option<f64> {
        let (name, labels) = split(sample).unwrap();
        self.samples.get(&key(&name, &labels)).copied()
    }

    /// The same, which must be there.
    pub(crate) fn value(&self, sample: &str) -> f64 {
        self.get(sample)
            .unwrap_or_else(|| panic!("no {sample} in {:#?}", self.samples))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }
}

type Labels = Vec<(String, String)>;

#[derive(Default)]
struct Family {
    name: String,
    kind: String,
    has_samples: bool,
    /// Names and labels without `le`, in order, to see that no metric comes back later.
    metrics: Vec<Labels>,
    buckets: Option<Buckets>,
}

struct Buckets {
    labels: Labels,
    bound: f64,
    count: f64,
}

/// Reads a whole exposition, or says which line breaks which rule.
pub(crate) fn check(text: &str) -> Result<Exposition, String> {
    let body = text
        .strip_suffix("# EOF\n")
        .ok_or("it does not end in `# EOF`")?;
    let mut found = Exposition::default();
    let mut family = Family::default();
    for line in body.split_terminator('\n') {
        read(line, &mut found, &mut family).map_err(|rule| format!("{rule}: `{line}`"))?;
    }
    family.end()?;
    Ok(found)
}

fn read(line: &str, found: &mut Exposition, family: &mut Family) -> Result<(), String> {
    if let Some(metadata) = line.strip_prefix("# ") {
        let mut words = metadata.splitn(3, ' ');
        let (what, name, rest) = (words.next(), words.next(), words.next());
        let (Some(what), Some(name), Some(rest)) = (what, name, rest) else {
            return Err("metadata has three parts".to_owned());
        };
        is_name(name, true)?;
        if family.name != name {
            family.end()?;
            *family = Family {
                name: name.to_owned(),
                ..Family::default()
            };
            let known = found.families.insert(name.to_owned(), String::new());
            if known.is_some() {
                return Err("the family stands twice".to_owned());
            }
        }
        if family.has_samples {
            return Err("metadata follows a sample".to_owned());
        }
        return family.metadata(what, rest, found);
    }
    let (name, labels) = split(line)?;
    let value = line.rsplit(' ').next().unwrap_or_default();
    let value = number(value)?;
    family.sample(&name, &labels, value)?;
    if found.samples.insert(key(&name, &labels), value).is_some() {
        return Err("the sample stands twice".to_owned());
    }
    Ok(())
}

impl Family {
    fn metadata(&mut self, what: &str, rest: &str, found: &mut Exposition) -> Result<(), String> {
        match what {
            "TYPE" => {
                let known = ["counter", "gauge", "histogram", "info"];
                if !known.contains(&rest) || !self.kind.is_empty() {
                    return Err("one known type".to_owned());
                }
                rest.clone_into(&mut self.kind);
                found.families.insert(self.name.clone(), rest.to_owned());
                Ok(())
            }
            "UNIT" if self.name.ends_with(&format!("_{rest}")) => Ok(()),
            "UNIT" => Err("the unit is not the end of the name".to_owned()),
            "HELP" => match unescape(rest, false) {
                Some(_) => Ok(()),
                None => Err("a bad escape".to_owned()),
            },
            _ => Err("no such metadata".to_owned()),
        }
    }

    fn sample(&mut self, name: &str, labels: &Labels, value: f64) -> Result<(), String> {
        self.has_samples = true;
        let suffix = name
            .strip_prefix(&self.name)
            .ok_or("a sample of another family")?;
        let fits = match self.kind.as_str() {
            "counter" => suffix == "_total" && value >= 0.0,
            "gauge" => suffix.is_empty(),
            "histogram" => matches!(suffix, "_bucket" | "_sum" | "_count"),
            "info" => suffix == "_info" && value.to_bits() == 1.0_f64.to_bits(),
            _ => false,
        };
        if !fits {
            return Err(format!("no sample of a {}", self.kind));
        }
        let names: BTreeSet<_> = labels.iter().map(|(name, _)| name).collect();
        if names.len() != labels.len() {
            return Err("a label stands twice".to_owned());
        }
        let has_bound = labels.iter().any(|(name, _)| name == "le");
        if has_bound != (suffix == "_bucket") {
            return Err("`le` belongs to buckets".to_owned());
        }
        let own: Labels = labels
            .iter()
            .filter(|(name, _)| name != "le")
            .cloned()
            .collect();
        if self.metrics.last() != Some(&own) {
            if self.metrics.contains(&own) {
                return Err("its metric is not in one piece".to_owned());
            }
            self.metrics.push(own.clone());
        }
        if suffix == "_bucket" {
            return self.bucket(own, labels, value);
        }
        match &self.buckets {
            Some(last) if suffix == "_count" && last.labels == own => {
                let whole = last.bound.is_infinite() && last.count.to_bits() == value.to_bits();
                whole
                    .then_some(())
                    .ok_or("its buckets add up to another count".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn bucket(&mut self, own: Labels, labels: &Labels, count: f64) -> Result<(), String> {
        let bound = labels.iter().find(|(name, _)| name == "le");
        let bound = number(&bound.unwrap().1)?;
        if let Some(last) = self.buckets.as_ref().filter(|last| last.labels == own)
            && (bound <= last.bound || count < last.count)
        {
            return Err("buckets grow".to_owned());
        }
        self.buckets = Some(Buckets {
            labels: own,
            bound,
            count,
        });
        Ok(())
    }

    fn end(&self) -> Result<(), String> {
        match &self.buckets {
            Some(last) if !last.bound.is_infinite() => Err(format!("{}: no +Inf", self.name)),
            _ => Ok(()),
        }
    }
}

/// Name and labels of a sample line.
fn split(line: &str) -> Result<(String, Labels), String> {
    let end = line.find(['{', ' ']).unwrap_or(line.len());
    let (name, mut rest) = line.split_at(end);
    is_name(name, true)?;
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").ok_or("a label has a value")?;
            is_name(label, false)?;
            let end = closing(after).ok_or("the quote is not closed")?;
            let value = unescape(&after[..end], true).ok_or("a bad escape")?;
            labels.push((label.to_owned(), value));
            rest = &after[end + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        rest = &rest[1..];
    }
    if rest.is_empty() || (rest.starts_with(' ') && rest.matches(' ').count() == 1) {
        return Ok((name.to_owned(), labels));
    }
    Err("one value follows the labels".to_owned())
}

fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match (escaped, byte) {
            (true, _) => escaped = false,
            (false, b'\\') => escaped = true,
            (false, b'"') => return Some(at),
            (false, _) => {}
        }
    }
    None
}

fn unescape(text: &str, quoted: bool) -> Option<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.push(match letters.next()? {
                'n' => '\n',
                '\\' => '\\',
                '"' => '"',
                _ => return None,
            }),
            '"' if quoted => return None,
            '\n' => return None,
            letter => out.push(letter),
        }
    }
    Some(out)
}

fn is_name(name: &str, colon: bool) -> Result<(), String> {
    let good = |at: usize, c: char| {
        c.is_ascii_alphabetic() || c == '_' || (colon && c == ':') || (at > 0 && c.is_ascii_digit())
    };
    let whole = !name.is_empty() && name.chars().enumerate().all(|(at, c)| good(at, c));
    whole.then_some(()).ok_or(format!("`{name}` is no name"))
}

fn number(text: &str) -> Result<f64, String> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match text {
        "+Inf" => Ok(f64::INFINITY),
        text if plain => text.parse().map_err(|_| format!("`{text}` is no number")),
        text => Err(format!("`{text}` is no number")),
    }
}

fn key(name: &str, labels: &Labels) -> String {
    let mut labels = labels.clone();
    labels.sort();
    format!("{name}{labels:?}")
}

#[test]
fn the_checker_knows_what_is_wrong() {
    let good = "# HELP a b\n# TYPE a counter\na_total{x=\"1\",y=\"\\\"\\n\"} 1\n# EOF\n";
    let read = check(good).unwrap();
    let value = read.value("a_total{y=\"\\\"\\n\",x=\"1\"}");
    assert!((value - 1.0).abs() < 1e-9, "{value}");
    let buckets = "# TYPE h_seconds histogram\n# UNIT h_seconds seconds\n\
        h_seconds_sum 2.5\nh_seconds_count 2\nh_seconds_bucket{le=\"1.0\"} 1\nh_seconds_bucket{le=\"+Inf\"} 2\n# EOF\n";
    check(buckets).unwrap();
    for (bad, rule) in [
        ("# TYPE a counter\na_total 1\n", "EOF"),
        ("# TYPE a counter\na_total 1\n# EOF\nb 1\n", "EOF"),
        ("# TYPE a counter\na 1\n# EOF\n", "no sample of"),
        ("# TYPE a counter\na_total -1\n# EOF\n", "no sample of"),
        ("# TYPE a counter\na_total one\n# EOF\n", "no number"),
        ("# TYPE a counter\na_total 1 17\n# EOF\n", "one value"),
        ("# TYPE a counter\n\na_total 1\n# EOF\n", "no name"),
        ("# TYPE a gauge\n# UNIT a bytes\na 1\n# EOF\n", "the unit"),
        ("# TYPE a gauge\na 1\na 1\n# EOF\n", "twice"),
        (
            "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\n# EOF\n",
            "twice",
        ),
        ("# TYPE a gauge\nb 1\n# EOF\n", "another family"),
        (
            "# TYPE a gauge\na 1\n# HELP a x\n# EOF\n",
            "follows a sample",
        ),
        (
            "# TYPE a gauge\na{x=\"1\",x=\"2\"} 1\n# EOF\n",
            "label stands twice",
        ),
        ("# TYPE a gauge\na{x=\"\\q\"} 1\n# EOF\n", "escape"),
        ("# TYPE a gauge\na{0=\"1\"} 1\n# EOF\n", "no name"),
        (
            "# TYPE h histogram\nh_bucket{le=\"1\"} 1\n# EOF\n",
            "no +Inf",
        ),
        (
            "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n# EOF\n",
            "grow",
        ),
        (
            "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_count 2\n# EOF\n",
            "add up",
        ),
    ] {
        let error = check(bad).unwrap_err();
        assert!(error.contains(rule), "{bad:?}: {error}");
    }
}
