//! Findings as people read them. Their texts are foreign; nothing of them is opened.

use attest_plugin_protocol::Finding;
use bounded::text::visible;

/// The most of the findings of a denial that one error message repeats.
const REASON_BYTES: usize = 16 * 1024;

/// One finding as visible text.
pub(super) fn line(finding: &Finding) -> String {
    let (rule, message) = (visible(finding.rule()), visible(finding.message()));
    let line = format!("{rule} ({}): {message}", finding.severity());
    match finding.resource() {
        Some(resource) => format!("{line} [{}]", visible(resource)),
        None => line,
    }
}

/// Why a plugin said no, a line for each finding. What does not fit is counted; the run log has it
/// all.
pub(super) fn reason(findings: &[Finding]) -> String {
    let mut reason = String::new();
    for (index, finding) in findings.iter().enumerate() {
        let line = line(finding);
        if index > 0 && reason.len() + line.len() > REASON_BYTES {
            let left = findings.len() - index;
            return format!("{reason}\nand {left} more");
        }
        if index > 0 {
            reason.push('\n');
        }
        reason.push_str(&line);
    }
    if reason.is_empty() {
        return "without a finding".to_owned();
    }
    reason
}

#[cfg(test)]
mod tests {
    use attest_plugin_protocol::Severity;

    use super::*;

    fn finding(rule: &str, message: &str, resource: Option<&str>) -> Finding {
        Finding::new(rule, Severity::High, message, resource.map(str::to_owned)).unwrap()
    }

    #[test]
    fn a_finding_is_visible() {
        let with = finding("a\u{1b}", "b\n", Some("step:c\u{202e}"));
        assert_eq!(line(&with), r"a\u{1b} (high): b\u{a} [step:c\u{202e}]");
        assert_eq!(line(&finding("a", "b", None)), "a (high): b");
    }

    #[test]
    fn a_denial_names_its_findings_as_far_as_they_fit() {
        assert_eq!(reason(&[]), "without a finding");
        let two = [finding("a", "b", None), finding("c", "d", None)];
        assert_eq!(reason(&two), "a (high): b\nc (high): d");
        let long = vec![finding("a", &"b".repeat(4_000), None); 256];
        let shown = reason(&long);
        assert!(shown.len() < REASON_BYTES + 20, "{}", shown.len());
        assert!(shown.ends_with("\nand 252 more"), "{shown}");
    }
}
