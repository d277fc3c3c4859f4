//! What a check answers, and how findings reach the reader.

/// The answer of a check that could be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing to complain about.
    Clean,
    /// At least one finding was printed.
    Found,
}

/// Prints the findings of the check `name`, or that there are none.
pub(crate) fn report(name: &str, looked_at: &str, findings: &[String]) -> Verdict {
    if findings.is_empty() {
        println!("{name}: {looked_at}, nothing found");
        return Verdict::Clean;
    }
    for finding in findings {
        println!("{name}: {finding}");
    }
    println!("{name}: {looked_at}, {} found", findings.len());
    Verdict::Found
}
