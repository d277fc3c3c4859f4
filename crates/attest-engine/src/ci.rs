//! Which CI job a run belongs to.

use attest_receipt::receipt::{Ci, CiProvider};

/// Longest number of a job or run that is recorded.
const LONGEST: usize = 64;

/// Tells from variables which CI job this is; `variable` looks one up.
///
/// Only numbers are taken over, so that no other text of the environment gets into a receipt.
pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Ci> {
    let number = |name: &str| {
        variable(name).filter(|text| {
            !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|b| b.is_ascii_digit())
        })
    };
    let is_true = |name: &str| variable(name).as_deref() == Some("true");
    if is_true("GITHUB_ACTIONS") {
        Some(Ci {
            provider: CiProvider::Github,
            run_id: number("GITHUB_RUN_ID"),
            job_id: None,
        })
    } else if is_true("GITLAB_CI") {
        Some(Ci {
            provider: CiProvider::Gitlab,
            run_id: number("CI_PIPELINE_ID"),
            job_id: number("CI_JOB_ID"),
        })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(variables: &[(&str, &str)]) -> Option<Ci> {
        detect(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn jobs_are_told_by_their_variables() {
        let github = detected(&[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", "17"),
            ("GITLAB_CI", "true"),
        ]);
        assert_eq!(
            github,
            Some(Ci {
                provider: CiProvider::Github,
                run_id: Some("17".into()),
                job_id: None,
            })
        );
        let gitlab = detected(&[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_ID", "1"),
            ("CI_JOB_ID", "2"),
        ]);
        assert_eq!(
            gitlab,
            Some(Ci {
                provider: CiProvider::Gitlab,
                run_id: Some("1".into()),
                job_id: Some("2".into()),
            })
        );
        assert_eq!(detected(&[("CI", "true")]), None);
        assert_eq!(detected(&[("GITHUB_ACTIONS", "1")]), None);
    }

    #[test]
    fn only_numbers_are_taken_over() {
        let long = "1".repeat(65);
        for text in ["", "canary", "1 2", "1\n", "-1", "１", long.as_str()] {
            let ci = detected(&[("GITHUB_ACTIONS", "true"), ("GITHUB_RUN_ID", text)]);
            assert_eq!(ci.unwrap().run_id, None, "{text}");
        }
    }
}
