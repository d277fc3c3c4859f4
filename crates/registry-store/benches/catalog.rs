//! Pages of a catalog of 100 000 plugins. The bar: no page takes more than 5 ms.
//!
//! The time is that of a caller: asking the store, the reader's thread, and the page back.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use digest_text::Sha256Text;
use jiff::Timestamp;
use plugin_archive::{Files, Modes};
use registry_store::{ArtifactPlace, ChannelName, Limits, Page, Store};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const PLUGINS: u64 = 100_000;
const LANES: u64 = 128;
const SYLLABLES: [&str; 16] = [
    "bo", "con", "dri", "er", "form", "ga", "in", "lo", "mant", "no", "pre", "re", "sta", "ti",
    "un", "ver",
];

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn word(&mut self) -> String {
        let syllables = 1 + self.below(3);
        (0..syllables)
            .filter_map(|_| SYLLABLES.get(self.below(SYLLABLES.len())))
            .copied()
            .collect()
    }
}

fn package(number: u64) -> Vec<u8> {
    let mut numbers = Numbers(number);
    let name = format!("{}-{}.{number}", numbers.word(), numbers.word());
    let mut description = String::new();
    for _ in 0..8 + numbers.below(12) {
        write!(description, "{} ", numbers.word()).unwrap();
    }
    if number.is_multiple_of(2) {
        description.push_str("for tools and agents");
    }
    if number.is_multiple_of(20_000) {
        description.push_str(" with quixotic views");
    }
    let manifest = format!(
        r#"{{"$schema":"{}","name":"{name}","version":"1.0.{number}","description":"{description}"}}"#,
        agent_plugin::PLUGIN_SCHEMA
    );
    let files = Files::from([("plugin.json".to_owned(), manifest.into_bytes())]);
    plugin_archive::pack_with_threads(
        &files,
        &Modes::new(),
        &plugin_archive::Limits::default(),
        std::num::NonZeroUsize::MIN,
    )
    .unwrap()
}

async fn publish(store: &Store, number: u64) {
    let bytes = package(number);
    let digest = Sha256Text::of(&bytes);
    let admission = store.admit().await.unwrap();
    let checked = admission.check(bytes.into(), digest).await.unwrap();
    let now = Timestamp::UNIX_EPOCH;
    store.upload(checked, now).await.unwrap();
    let channel = Some(ChannelName::stable());
    let publisher = "publisher".to_owned();
    store
        .publish(digest, channel, publisher, now)
        .await
        .unwrap();
}

async fn fill(store: &Store) {
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let store = store.clone();
        lanes.spawn(async move {
            for number in (lane..PLUGINS).step_by(usize::try_from(LANES).unwrap()) {
                publish(&store, number).await;
            }
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.unwrap();
    }
}

/// Finds the cursor after so many full pages.
async fn deep(store: &Store, query: Option<&str>, pages: usize) -> Option<String> {
    let mut cursor = None;
    for _ in 0..pages {
        let page = Page { limit: 100, cursor };
        cursor = store
            .catalog(query.map(str::to_owned), page)
            .await
            .unwrap()
            .next_cursor;
        cursor.as_ref()?;
    }
    cursor
}

fn catalog(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        uploads: u32::try_from(LANES).unwrap(),
        ..Limits::default()
    };
    let root = folder.path().join("registry");
    let store = Store::open(&root, ArtifactPlace::Memory, limits).unwrap();
    runtime.block_on(fill(&store));
    let mut group = criterion.benchmark_group("catalog");
    for (name, query, pages, limit) in [
        ("page", None, 0, 20),
        ("page_of_100", None, 0, 100),
        ("page_deep_in", None, 900, 100),
        ("q_rare", Some("quixotic"), 0, 100),
        ("q_none", Some("nothing of that"), 0, 100),
        ("q_some", Some("preverment"), 0, 100),
        ("q_common", Some("tools"), 0, 100),
        ("q_common_deep_in", Some("tools"), 400, 100),
        (
            "q_common_parts",
            Some("mant for tools and agents wi"),
            0,
            100,
        ),
        ("q_two_letters", Some("er"), 0, 100),
        ("q_two_letters_rare", Some("qu"), 0, 100),
    ] {
        let cursor = runtime.block_on(deep(&store, query, pages));
        assert!(pages == 0 || cursor.is_some(), "{name} is not that deep");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let page = Page {
                    limit,
                    cursor: cursor.clone(),
                };
                let query = query.map(str::to_owned);
                black_box(runtime.block_on(store.catalog(query, page)).unwrap())
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = catalog
}
criterion_main!(benches);
