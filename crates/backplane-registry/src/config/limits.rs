//! How large packages may be, how many uploads run at once and how long one may take.

use std::time::Duration;

use bounded::GoDuration;
use plugin_archive::Limits;
use strict_json::{FieldError, Fields};

const GIBIBYTE: u64 = 1 << 30;
const MILLION: u64 = 1_000_000;

/// The limits of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Those of archives.
    pub archive: Limits,
    /// Uploads that are received or checked at once; each holds a package in memory.
    pub uploads: u32,
    /// For a whole upload.
    pub upload_timeout: Duration,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            archive: Limits::default(),
            uploads: 4,
            upload_timeout: Duration::from_secs(300),
        }
    }
}

impl ServiceLimits {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, FieldError> {
        let mut limits = Self::default();
        let Some(mut fields) = fields.opt_object("limits")? else {
            return Ok(limits);
        };
        let archive = &mut limits.archive;
        for (name, most, place) in [
            ("max_archive_bytes", GIBIBYTE, &mut archive.archive_bytes),
            (
                "max_uncompressed_bytes",
                4 * GIBIBYTE,
                &mut archive.uncompressed_bytes,
            ),
            ("max_total_bytes", 4 * GIBIBYTE, &mut archive.total_bytes),
            ("max_file_bytes", 4 * GIBIBYTE, &mut archive.file_bytes),
            ("max_files", MILLION, &mut archive.files),
            ("max_entries", MILLION, &mut archive.entries),
            ("max_depth", 128, &mut archive.depth),
        ] {
            if let Some(value) = number(&mut fields, name, most)? {
                *place = value;
            }
        }
        if let Some(value) = number(&mut fields, "uploads", 64)? {
            limits.uploads = u32::try_from(value).unwrap_or(u32::MAX);
        }
        if let Some(value) = duration(&mut fields, "upload_timeout")? {
            limits.upload_timeout = value;
        }
        fields.end()?;
        Ok(limits)
    }
}

fn number(fields: &mut Fields, name: &str, most: u64) -> Result<Option<u64>, FieldError> {
    let at = fields.path_of(name);
    match fields.opt_u64(name)? {
        Some(value) if !(1..=most).contains(&value) => {
            Err(FieldError::invalid(at, format!("must be from 1 to {most}")))
        }
        value => Ok(value),
    }
}

fn duration(fields: &mut Fields, name: &str) -> Result<Option<Duration>, FieldError> {
    let at = fields.path_of(name);
    let Some(value) = fields.opt_parse::<GoDuration>(name)? else {
        return Ok(None);
    };
    let value = Duration::from(value);
    if value < Duration::from_secs(1) || value > Duration::from_secs(3600) {
        return Err(FieldError::invalid(at, "must be from 1s to 1h"));
    }
    Ok(Some(value))
}
