//! Times and durations as people read them; lines are laid out by `cli_shell::layout`.

use jiff::Timestamp;

pub use cli_shell::layout::wrap;
pub(crate) use cli_shell::layout::{cell, pairs};

/// The date and time to the second, in UTC.
pub(crate) fn moment(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        Err(_) => cli_shell::visible(time),
    }
}

/// The time of day alone, in UTC.
pub(crate) fn time_of_day(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => time.strftime("%H:%M:%S").to_string(),
        Err(_) => cli_shell::visible(time),
    }
}

/// How long ago a time was, roughly.
pub(crate) fn age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return cli_shell::visible(time);
    };
    match now.duration_since(time).as_secs() {
        i64::MIN..60 => format!("{} s", now.duration_since(time).as_secs().max(0)),
        seconds @ 60..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Milliseconds in the unit that people read.
pub(crate) fn milliseconds(duration: u64) -> String {
    match duration {
        0..1_000 => format!("{duration} ms"),
        1_000..60_000 => format!("{}.{} s", duration / 1_000, duration % 1_000 / 100),
        _ => format!("{} min {} s", duration / 60_000, duration % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations() {
        assert_eq!(
            moment("2026-11-30T14:02:11.123456789Z"),
            "2026-11-30 14:02:11Z"
        );
        assert_eq!(time_of_day("2026-11-30T14:02:11Z"), "14:02:11");
        assert_eq!(moment("\u{1b}soon"), cli_shell::visible("\u{1b}soon"));
        assert_eq!(milliseconds(999), "999 ms");
        assert_eq!(milliseconds(1_250), "1.2 s");
        assert_eq!(milliseconds(61_000), "1 min 1 s");
        let now: Timestamp = "2026-11-30T14:00:00Z".parse().unwrap();
        for (time, ago) in [
            ("2026-11-30T14:00:05Z", "0 s"),
            ("2026-11-30T13:59:01Z", "59 s"),
            ("2026-11-30T13:59:00Z", "1 min"),
            ("2026-11-30T12:00:00Z", "2 h"),
            ("2026-11-20T14:00:00Z", "10 days"),
            ("soon", "soon"),
        ] {
            assert_eq!(age(time, now), ago);
        }
    }
}
