//! Judging a receipt in memory: a small one, and one near the greatest size.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench stops at the first surprise"
)]

use std::hint::black_box;
use std::path::Path;

use attest_receipt::receipt;
use attest_receipt::time::Time;
use attest_verify::trust::{Trust, TrustStore};
use attest_verify::{Options, verify};
use criterion::{Criterion, criterion_group, criterion_main};

fn vectors() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../attest-receipt/tests/vectors"
    ))
}

fn trust() -> Trust {
    let files = std::fs::read_dir(vectors().join("trust"))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    Trust::Store(Box::new(TrustStore::from_files(files).unwrap()))
}

fn judging(criterion: &mut Criterion) {
    let trust = trust();
    let now: Time = "2026-12-01T00:00:00Z".parse().unwrap();
    let options = Options::new(now);
    let small = std::fs::read(vectors().join("r1_pipeline_signed.yaml")).unwrap();
    assert!(verify(&small, &trust, &options, None).unwrap().passed());
    criterion.bench_function("small", |bencher| {
        bencher.iter(|| verify(black_box(&small), &trust, &options, None));
    });

    criterion.bench_function("read", |bencher| {
        bencher.iter(|| receipt::read(black_box(&small)));
    });
    let typed = receipt::read(&small).unwrap();
    criterion.bench_function("signing bytes", |bencher| {
        bencher.iter(|| black_box(&typed).signing_bytes());
    });

    // What a chatty build leaves: 12 MiB of output, so the signature covers as much.
    let mut large = receipt::read(&small).unwrap();
    large.steps[0].stdout = "a line of output that says little\n".repeat(12 << 15);
    let large = large.to_yaml().unwrap().into_bytes();
    assert!(large.len() > 12 << 20, "{} bytes", large.len());
    let mut group = criterion.benchmark_group("slow");
    group.sample_size(10);
    group.bench_function("large", |bencher| {
        bencher.iter(|| verify(black_box(&large), &trust, &options, None));
    });
    group.finish();
}

criterion_group!(benches, judging);
criterion_main!(benches);
