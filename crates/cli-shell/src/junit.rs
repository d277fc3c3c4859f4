//! JUnit documents, as systems of continuous integration read them.

use std::time::Duration;

/// One case of a suite.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// Its class, `plugin-v1.text`.
    pub class: &'a str,
    /// Its name within the class.
    pub name: &'a str,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome<'a>,
}

/// How a case ended; a reason has no control characters.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// As it should.
    Passed,
    /// As it should, and there is something to say. The format has no word for that: it is a case
    /// that passed and wrote a line.
    Warned(&'a str),
    /// Not as it should.
    Failed(&'a str),
    /// Not at all.
    Skipped(&'a str),
}

/// Writes one suite as a document.
pub fn document(suite: &str, cases: &[Case<'_>]) -> String {
    let count = |which: fn(&Outcome<'_>) -> bool| {
        let found = cases.iter().filter(|case| which(&case.outcome));
        found.count()
    };
    let counts = format!(
        r#"tests="{}" failures="{}" errors="0" skipped="{}" time="{}""#,
        cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        seconds(cases.iter().map(|case| case.duration).sum()),
    );
    let suite = attribute(suite);
    let cases: String = cases.iter().map(written).collect();
    let head = r#"<?xml version="1.0" encoding="UTF-8"?>"#;
    format!(
        "{head}\n<testsuites {counts}>\n  <testsuite name=\"{suite}\" {counts}>\n\
         {cases}  </testsuite>\n</testsuites>\n"
    )
}

fn written(case: &Case<'_>) -> String {
    let start = format!(
        r#"    <testcase classname="{}" name="{}" time="{}""#,
        attribute(case.class),
        attribute(case.name),
        seconds(case.duration)
    );
    let inner = match case.outcome {
        Outcome::Passed => return format!("{start}/>\n"),
        Outcome::Warned(reason) => {
            format!("<system-out>warning: {}</system-out>", attribute(reason))
        }
        Outcome::Failed(reason) => format!("<failure message=\"{}\"/>", attribute(reason)),
        Outcome::Skipped(reason) => format!("<skipped message=\"{}\"/>", attribute(reason)),
    };
    format!("{start}>\n      {inner}\n    </testcase>\n")
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}

/// Escapes an attribute's value, which is fit for text too. What XML 1.0 cannot hold in any
/// spelling is replaced.
fn attribute(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_its_counts_and_escapes_its_reasons() {
        let case = |name, outcome| Case {
            class: "plugin",
            name,
            duration: Duration::from_millis(1_500),
            outcome,
        };
        let cases = [
            case("one", Outcome::Passed),
            case("two", Outcome::Failed("got `<\"&>`")),
            case("three", Outcome::Skipped("not selected")),
            case("four", Outcome::Warned("stays")),
        ];
        assert_eq!(
            document("a & b", &cases),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" errors="0" skipped="1" time="6.000">
  <testsuite name="a &amp; b" tests="4" failures="1" errors="0" skipped="1" time="6.000">
    <testcase classname="plugin" name="one" time="1.500"/>
    <testcase classname="plugin" name="two" time="1.500">
      <failure message="got `&lt;&quot;&amp;&gt;`"/>
    </testcase>
    <testcase classname="plugin" name="three" time="1.500">
      <skipped message="not selected"/>
    </testcase>
    <testcase classname="plugin" name="four" time="1.500">
      <system-out>warning: stays</system-out>
    </testcase>
  </testsuite>
</testsuites>
"#
        );
        assert_eq!(attribute("a\u{ffff}b"), "a\u{fffd}b");
    }
}
