//! What a package of 1 000 files and 300 skills costs: loading it from its map and from its
//! directory, and reading it for an archive.
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::fmt::Write as _;
use std::hint::black_box;

use agent_plugin::{Files, Options, load};
use agent_plugin_dir::{load_directory, read_directory_with_metadata};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use plugin_archive::Limits;

const SKILLS: usize = 300;
const FILES: usize = 1_000;

/// Bytes of a resource, and of the body of a document: what real ones have.
const RESOURCE: usize = 8_192;
const BODY: usize = 6_144;

fn document(name: &str) -> String {
    let line = "Read the change, run the tests, and say what is wrong with it.\n";
    format!(
        "---\nname: {name}\ndescription: >-\n  Reviews a change and says\n  what is wrong with it.\nlicense: MIT\nallowed-tools: Read Grep\nmetadata:\n  author: example\n  version: \"1.0\"\n---\n{}",
        line.repeat(BODY.div_ceil(line.len()))
    )
}

fn package() -> Files {
    let mut servers = String::new();
    for number in 0..20 {
        let comma = if number == 0 { "" } else { "," };
        write!(
            servers,
            r#"{comma}"s{number}":{{"type":"stdio","command":"./skills/skill-{number}/run","args":["--root","${{PLUGIN_ROOT}}"],"env":{{"MODE":"x"}},"cwd":"./skills"}}"#
        )
        .unwrap();
    }
    let schemas = "https://agent-plugins.org/schemas/1.0.0";
    let manifest = format!(r#"{{"$schema":"{schemas}/plugin.schema.json","name":"example"}}"#);
    let mcp = format!(r#"{{"$schema":"{schemas}/mcp.schema.json","mcpServers":{{{servers}}}}}"#);
    let mut files = Files::from([
        ("plugin.json".to_owned(), manifest.into_bytes()),
        ("mcp.json".to_owned(), mcp.into_bytes()),
    ]);
    for number in 0..SKILLS {
        let name = format!("skill-{number}");
        files.insert(format!("skills/{name}/SKILL.md"), document(&name).into());
    }
    for number in 0..FILES - files.len() {
        let path = format!("skills/skill-{}/scripts/{number}", number % SKILLS);
        files.insert(path, vec![b'x'; RESOURCE]);
    }
    files
}

fn bench(criterion: &mut Criterion) {
    let files = package();
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in &files {
        let path = folder.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, bytes).unwrap();
    }
    let (options, limits) = (Options::default(), Limits::default());
    let loaded = load_directory(folder.path(), &options, &limits).unwrap();
    assert_eq!((loaded.files.len(), loaded.skills.len()), (FILES, SKILLS));
    assert_eq!(
        (loaded.mcp_servers.len(), loaded.diagnostics.len()),
        (20, 0)
    );
    let mut group = criterion.benchmark_group("package of 1 000 files and 300 skills");
    group.bench_function("load from its map", |bencher| {
        bencher.iter_batched(
            || files.clone(),
            |files| load(black_box(files), &options),
            BatchSize::LargeInput,
        );
    });
    group.bench_function("load from its directory", |bencher| {
        bencher.iter(|| load_directory(black_box(folder.path()), &options, &limits));
    });
    group.bench_function("read its directory strictly", |bencher| {
        bencher.iter(|| read_directory_with_metadata(black_box(folder.path()), &limits));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
