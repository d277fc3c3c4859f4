//! Cursors of lists: where a page ended, bound to the filter that it was made for.

use digest_text::Sha256Text;

use crate::{JobFilter, StoreError};

/// Makes the cursor that continues after the job of row `seq`.
pub(super) fn make(filter: &JobFilter, seq: i64) -> String {
    format!("j1.{seq:x}.{}", fingerprint(filter))
}

/// Reads a cursor back.
pub(super) fn read(filter: &JobFilter, cursor: &str) -> Result<i64, StoreError> {
    let seq = cursor
        .strip_prefix("j1.")
        .and_then(|rest| rest.split_once('.'))
        .and_then(|(seq, _)| i64::from_str_radix(seq, 16).ok())
        .filter(|seq| *seq > 0)
        .ok_or(StoreError::InvalidCursor)?;
    // Written anew, so that each position has one spelling.
    if make(filter, seq) == cursor {
        Ok(seq)
    } else {
        Err(StoreError::InvalidCursor)
    }
}

fn fingerprint(filter: &JobFilter) -> String {
    let part = |name: &str, value: Option<&str>| format!("{name}={};", value.unwrap_or_default());
    let text = part("status", filter.status.map(forge_domain::JobStatus::as_str))
        + &part("pool", filter.pool.as_ref().map(AsRef::as_ref))
        + &part("repository", filter.repository.as_ref().map(AsRef::as_ref));
    Sha256Text::of(text.as_bytes())
        .to_string()
        .chars()
        .skip("sha256:".len())
        .take(8)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_serves_its_own_list_only() {
        let all = JobFilter::default();
        let failed = JobFilter {
            status: Some(forge_domain::JobStatus::Failed),
            ..JobFilter::default()
        };
        let cursor = make(&all, 1_000);
        assert_eq!(read(&all, &cursor).unwrap(), 1_000);
        assert!(matches!(
            read(&failed, &cursor),
            Err(StoreError::InvalidCursor)
        ));
        for bad in [
            "",
            "j1",
            "j1..",
            "j1.zz.00000000",
            "j1.-1.00000000",
            &format!("{cursor}x"),
            &cursor.replace("3e8", "03e8"),
        ] {
            assert!(read(&all, bad).is_err(), "{bad}");
        }
    }
}
