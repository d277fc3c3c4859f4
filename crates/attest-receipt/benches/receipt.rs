//! What a receipt of a hundred steps costs: reading it, its signing bytes, and writing it.
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::hint::black_box;

use attest_receipt::receipt::{self, Artifact, ArtifactKind, DeclaredStep, Receipt};
use criterion::{Criterion, criterion_group, criterion_main};

const STEPS: usize = 100;
const VECTOR: &[u8] = include_bytes!("../tests/vectors/r1_pipeline_signed.yaml");

/// Makes a receipt of many steps with ten lines of output each, out of a real one.
fn large() -> Receipt {
    let mut receipt = receipt::read(VECTOR).unwrap();
    let step = receipt.steps.first().cloned().unwrap();
    let provenance = receipt.provenance.as_mut().unwrap();
    let name = |index: usize| format!("step-{index:03}");
    receipt.steps = (0..STEPS)
        .rev()
        .map(|index| receipt::StepResult {
            name: name(index),
            stdout: "compiling a part of it\n".repeat(10),
            ..step.clone()
        })
        .collect();
    receipt.causal_events = (0..STEPS).map(|index| format!("{index:064x}")).collect();
    provenance.steps = (0..STEPS)
        .map(|index| DeclaredStep {
            name: name(index),
            needs: Vec::new(),
            command_hash: step.input_hash.clone(),
            inputs: vec!["src/".into()],
            outputs: vec![format!("out/{index}")],
        })
        .collect();
    provenance.artifacts = (0..STEPS)
        .map(|index| Artifact {
            step: name(index),
            path: format!("out/{index}"),
            kind: ArtifactKind::File,
            digest: step.output_hash.clone(),
            algorithm: "blake3".into(),
        })
        .collect();
    receipt
}

fn bench(criterion: &mut Criterion) {
    let receipt = large();
    assert!(receipt.problems().is_empty());
    let yaml = receipt.to_yaml().unwrap();
    let json = serde_json::to_vec(&receipt).unwrap();
    let mut group = criterion.benchmark_group("receipt of 100 steps");
    group.bench_function("read and signing bytes", |bencher| {
        bencher.iter(|| receipt::read(black_box(yaml.as_bytes())).map(|read| read.signing_bytes()));
    });
    group.bench_function("read from JSON", |bencher| {
        bencher.iter(|| receipt::read(black_box(&json)));
    });
    group.bench_function("signing bytes", |bencher| {
        bencher.iter(|| black_box(&receipt).signing_bytes());
    });
    group.bench_function("problems", |bencher| {
        bencher.iter(|| black_box(&receipt).problems());
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| black_box(&receipt).to_yaml());
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
