//! Searching the catalog: exact, whichever way it is found.

use proptest::prelude::*;
use registry_store::{ArtifactPlace, Store, StoreError};

use crate::fixture::{Package, catalog, page, released};
use crate::root::Root;

async fn filled(root: &Root, plugins: &[(String, String)]) -> Store {
    let store = root.open(ArtifactPlace::Memory);
    for (name, description) in plugins {
        released(&store, &Package::new(name, "1", description), "stable", 0).await;
    }
    store
}

fn expected(plugins: &[(String, String)], query: &str) -> Vec<String> {
    let query = query.to_ascii_lowercase();
    let has = |text: &str| text.to_ascii_lowercase().contains(&query);
    let mut found: Vec<String> = plugins
        .iter()
        .filter(|(name, description)| has(name) || has(description))
        .map(|(name, _)| name.clone())
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_search_is_for_a_part_of_id_or_description_whatever_its_case_in_ascii() {
    let plugins = [
        ("acme.tools", "Werkzeuge für ÄRZTE"),
        ("b-side", "100% \"quoted\" AND (odd) * col:umn"),
        ("c.3", "NUL \0 and\nlines\tand tabs"),
        ("d", ""),
        ("e", "side.acme"),
        ("zz", "日本語のプラグイン"),
    ]
    .map(|(name, description)| (name.to_owned(), description.to_owned()));
    let root = Root::new();
    let store = filled(&root, &plugins).await;
    for query in [
        "a",
        "A",
        "ac",
        "acme",
        "ACME.T",
        "für",
        "FÜR",
        "ärzte",
        "ÄRZTE",
        "%",
        "100%",
        "\"",
        "\"quoted\"",
        "and",
        "AND (odd)",
        "*",
        "col:umn",
        "_",
        "side",
        "e",
        ".",
        "3",
        "c.3",
        "日",
        "本語",
        "日本語",
        "zz日",
        "toolsw",
        "d",
        "lines",
        "and t",
        "nothing",
        "NEAR",
        "b-side",
        "-",
        "OR",
        "' OR 1",
    ] {
        for limit in [1, 2, 100] {
            let found = catalog(&store, Some(query), limit).await;
            assert_eq!(found, expected(&plugins, query), "{query}");
        }
    }
}

#[tokio::test]
async fn a_cursor_is_of_one_search() {
    let plugins: Vec<_> = (0..5)
        .map(|n| (format!("p{n}"), "words".to_owned()))
        .collect();
    let root = Root::new();
    let store = filled(&root, &plugins).await;
    let ask = async |query: Option<&str>, cursor| {
        store
            .catalog(query.map(str::to_owned), page(2, cursor))
            .await
    };
    let first = ask(Some("words"), None).await.unwrap();
    let cursor = first.next_cursor.unwrap();
    assert!(ask(Some("words"), Some(cursor.clone())).await.is_ok());
    for query in [None, Some("word"), Some("Words")] {
        let error = ask(query, Some(cursor.clone())).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidCursor), "{error}");
    }
    for bad in ["", "x", &cursor[1..], &format!("{cursor}00")] {
        assert!(
            ask(Some("words"), Some(bad.to_owned())).await.is_err(),
            "{bad}"
        );
    }
    // Whatever is published or goes away meanwhile, a plugin that stays is listed once.
    released(&store, &Package::new("p0a", "1", "words"), "stable", 1).await;
    released(&store, &Package::new("p2a", "1", "words"), "stable", 1).await;
    let second = ask(Some("words"), Some(cursor)).await.unwrap();
    let ids: Vec<_> = second
        .data
        .iter()
        .map(|entry| entry.plugin_id.as_str())
        .collect();
    assert_eq!(ids, ["p2", "p2a"]);
}

#[tokio::test]
async fn a_long_description_is_listed_and_searched_up_to_its_limit() {
    let long = format!("{}é{}", "x".repeat(4095), "needle");
    let root = Root::new();
    let store = filled(&root, &[("acme".to_owned(), long.clone())]).await;
    let entry = store
        .catalog(None, page(1, None))
        .await
        .unwrap()
        .data
        .remove(0);
    assert_eq!(entry.description.unwrap(), "x".repeat(4095));
    assert!(catalog(&store, Some("needle"), 10).await.is_empty());
    let release = crate::fixture::resolve(&store, "acme", None).await.unwrap();
    assert_eq!(release.description.unwrap(), long);
    let listed = store
        .releases("acme".parse().unwrap(), page(1, None))
        .await
        .unwrap();
    assert_eq!(
        listed.data[0].description.as_deref().map(str::len),
        Some(4095)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_searched_is_found_exactly(
        words in proptest::collection::vec("[ab]{0,6}", 1..20),
        queries in proptest::collection::vec("[abAB.]{1,5}", 1..20),
        limit in 1u32..5,
    ) {
        let plugins: Vec<_> = words
            .into_iter()
            .enumerate()
            .map(|(n, word)| (format!("{}.{n}", if n % 2 == 0 { "ab" } else { "b" }), word))
            .collect();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async {
            let root = Root::new();
            let store = filled(&root, &plugins).await;
            for query in queries {
                let found = catalog(&store, Some(&query), limit).await;
                assert_eq!(found, expected(&plugins, &query), "{query}");
            }
        });
    }
}
