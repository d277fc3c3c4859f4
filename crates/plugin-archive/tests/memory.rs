//! In a process of its own, because the peak of memory is that of a process.

use std::fs;

use plugin_archive::{Limits, unpack};

/// One gibibyte of zeros behind the header of a file that says it is as large as it may be.
fn bomb() -> Vec<u8> {
    use miniz_oxide::deflate::core::{
        CompressorOxide, TDEFLFlush, compress_to_output, create_comp_flags_from_zip_params,
    };
    let mut archive = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut piece = Vec::new();
    let mut compressor = CompressorOxide::new(create_comp_flags_from_zip_params(4, 0, 0));
    compress_to_output(
        &mut compressor,
        &vec![0; 1 << 20],
        TDEFLFlush::Sync,
        |bytes| {
            piece.extend_from_slice(bytes);
            true
        },
    );
    (0..1024).for_each(|_| archive.extend_from_slice(&piece));
    archive
}

fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn m54_a_bomb_takes_no_more_memory_than_the_limits() {
    let bomb = bomb();
    let before = peak().unwrap();
    let error = unpack(&bomb, &Limits::default()).unwrap_err();
    assert_eq!(error.code(), "limit_exceeded");
    let grown = peak().unwrap() - before;
    assert!(grown < 16 << 10, "{grown} KiB");
}
