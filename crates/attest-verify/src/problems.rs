//! What is wrong, told in a few: a hostile receipt has more faults and longer names than anybody
//! reads, and must not make the verifier write them all down.

/// Problems that are told one by one.
const TOLD: usize = 32;

/// Longest name in a problem, in bytes.
const NAME: usize = 160;

/// Collects problems up to a number, and counts the rest.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    told: Vec<String>,
    more: usize,
}

impl Problems {
    /// Adds a problem; its words are made only if they are told.
    pub(crate) fn add(&mut self, problem: impl FnOnce() -> String) {
        if self.told.len() < TOLD {
            self.told.push(problem());
        } else {
            self.more += 1;
        }
    }

    /// Returns all of them as one detail, or nothing if there are none.
    pub(crate) fn into_detail(mut self) -> Option<String> {
        if self.told.is_empty() {
            return None;
        }
        if self.more > 0 {
            self.told.push(format!("and {} more", self.more));
        }
        Some(self.told.join("; "))
    }
}

/// Cuts a name that is longer than a name.
pub(crate) fn short(name: &str) -> String {
    if name.len() <= NAME {
        return name.to_owned();
    }
    format!("{}…", bounded::text::head(name, NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a09_problems_beyond_a_few_are_counted_and_not_written() {
        let mut problems = Problems::default();
        for n in 0..TOLD {
            problems.add(|| format!("p{n}"));
        }
        for _ in 0..1_000_000 {
            problems.add(|| panic!("nobody reads this"));
        }
        let detail = problems.into_detail().unwrap();
        assert!(detail.starts_with("p0; p1; "), "{detail}");
        assert!(detail.ends_with("; p31; and 1000000 more"), "{detail}");
        assert_eq!(Problems::default().into_detail(), None);
    }

    #[test]
    fn a09_a_long_name_is_cut_between_characters() {
        assert_eq!(short("build"), "build");
        assert_eq!(short(&"x".repeat(NAME)), "x".repeat(NAME));
        let long = "é".repeat(NAME);
        assert_eq!(short(&long), format!("{}…", "é".repeat(NAME / 2)));
        let odd = format!("x{long}");
        assert_eq!(short(&odd), format!("x{}…", "é".repeat(NAME / 2 - 1)));
    }
}
