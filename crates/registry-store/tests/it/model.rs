//! Any order of operations against a model that is simple enough to be right.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use registry_store::{ArtifactPlace, ReleaseStatus, Store, StoreError};

use crate::fixture::{Package, all, at, catalog, channel, page, publish, resolve, upload};
use crate::root::Root;

const PLUGINS: usize = 3;
const VARIANTS: usize = 3;
const CHANNELS: [&str; 2] = ["stable", "beta"];

/// One of the packages: plugin and variant.
type Which = (usize, usize);

#[derive(Debug, Clone)]
enum Step {
    Upload(Which),
    Publish(Which, Option<usize>),
    Promote(Which, usize, Option<Which>),
    Yank(Which),
    Unyank(Which),
    Collect,
    Wait(i64),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = || (0..PLUGINS, 0..VARIANTS);
    let to = || 0..CHANNELS.len();
    let step = prop_oneof![
        4 => which().prop_map(Step::Upload),
        4 => (which(), proptest::option::of(to())).prop_map(|(which, to)| Step::Publish(which, to)),
        3 => (which(), to(), proptest::option::of(0..VARIANTS)).prop_map(|(which, to, expected)| {
            Step::Promote(which, to, expected.map(|variant| (which.0, variant)))
        }),
        2 => which().prop_map(Step::Yank),
        1 => which().prop_map(Step::Unyank),
        1 => Just(Step::Collect),
        1 => (1i64..30).prop_map(Step::Wait),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..30)
}

/// What a registry has to be.
#[derive(Debug, Default)]
struct Model {
    now: i64,
    /// When what waits was uploaded last.
    waiting: BTreeMap<Which, i64>,
    /// Releases in the order of their publishing, and whether they are yanked.
    releases: Vec<(Which, bool)>,
    channels: BTreeMap<(usize, usize), Which>,
}

impl Model {
    fn yanked(&self, which: Which) -> Option<bool> {
        let found = self.releases.iter().find(|(release, _)| *release == which);
        found.map(|(_, yanked)| *yanked)
    }

    fn publish(&mut self, which: Which, to: Option<usize>) -> &'static str {
        let created = match self.yanked(which) {
            Some(true) => return "release_yanked",
            Some(false) => false,
            None if !self.waiting.contains_key(&which) => return "not_found",
            None => true,
        };
        if let Some(to) = to {
            let at = self.channels.get(&(which.0, to));
            if !created && at.is_some_and(|at| *at != which) {
                return "conflict";
            }
            self.channels.insert((which.0, to), which);
        }
        if created {
            self.waiting.remove(&which);
            self.releases.push((which, false));
        }
        "ok"
    }

    fn promote(&mut self, which: Which, to: usize, expected: Option<Which>) -> &'static str {
        match self.yanked(which) {
            None => return "not_found",
            Some(true) => return "release_yanked",
            Some(false) => {}
        }
        if expected.is_some() && self.channels.get(&(which.0, to)) != expected.as_ref() {
            return "conflict";
        }
        self.channels.insert((which.0, to), which);
        "ok"
    }

    fn set_yanked(&mut self, which: Which, yanked: bool) -> &'static str {
        let found = self
            .releases
            .iter_mut()
            .find(|(release, _)| *release == which);
        found.map_or("not_found", |(_, is)| {
            *is = yanked;
            "ok"
        })
    }
}

struct Both {
    place: ArtifactPlace,
    root: Root,
    store: Option<Store>,
    model: Model,
    packages: Vec<Vec<Package>>,
}

fn word<T>(outcome: Result<T, StoreError>) -> &'static str {
    outcome.map_or_else(|error| error.wire().as_str(), |_| "ok")
}

impl Both {
    fn package(&self, which: Which) -> &Package {
        &self.packages[which.0][which.1]
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    async fn step(&mut self, step: &Step) {
        let now = self.model.now;
        let (said, expected) = match *step {
            Step::Upload(which) => {
                upload(self.store(), self.package(which), now).await;
                if self.model.yanked(which).is_none() {
                    self.model.waiting.insert(which, now);
                }
                ("ok", "ok")
            }
            Step::Publish(which, to) => {
                let to_name = to.map(|to| CHANNELS[to]);
                let outcome = publish(self.store(), self.package(which), to_name, now).await;
                (word(outcome), self.model.publish(which, to))
            }
            Step::Promote(which, to, expected) => {
                let package = self.package(which);
                let expects = expected.map(|expected| self.package(expected).release());
                let to_name = channel(CHANNELS[to]);
                let outcome = self.store().promote(
                    package.id.clone(),
                    to_name,
                    package.release(),
                    expects,
                    at(now),
                );
                (word(outcome.await), self.model.promote(which, to, expected))
            }
            Step::Yank(which) => {
                let outcome = self
                    .store()
                    .yank(self.package(which).release(), None, at(now))
                    .await;
                (word(outcome), self.model.set_yanked(which, true))
            }
            Step::Unyank(which) => {
                let outcome = self
                    .store()
                    .unyank(self.package(which).release(), at(now))
                    .await;
                (word(outcome), self.model.set_yanked(which, false))
            }
            Step::Collect => {
                let collected = self.store().collect(at(now)).await.unwrap();
                let before = self.model.waiting.len();
                self.model
                    .waiting
                    .retain(|_, uploaded| *uploaded > now - 24);
                assert_eq!(
                    collected.uploads,
                    (before - self.model.waiting.len()) as u64
                );
                ("ok", "ok")
            }
            Step::Wait(hours) => {
                self.model.now += hours;
                ("ok", "ok")
            }
            Step::Reopen => {
                // What is in memory would be gone.
                if matches!(self.place, ArtifactPlace::Disk) {
                    self.store = None;
                    self.store = Some(self.root.open(self.place.clone()));
                }
                ("ok", "ok")
            }
        };
        assert_eq!(said, expected, "{step:?}");
    }

    async fn compare(&self) {
        let live: Vec<Which> = self
            .model
            .releases
            .iter()
            .filter(|(_, yanked)| !yanked)
            .map(|(which, _)| *which)
            .collect();
        let plugins: BTreeSet<usize> = live.iter().map(|which| which.0).collect();
        let mut ids: Vec<String> = plugins
            .iter()
            .map(|plugin| self.packages[*plugin][0].id.to_string())
            .collect();
        ids.sort();
        assert_eq!(catalog(self.store(), None, 2).await, ids);
        assert_eq!(catalog(self.store(), Some("plugin"), 2).await, ids);
        for entry in self
            .store()
            .catalog(None, page(100, None))
            .await
            .unwrap()
            .data
        {
            let plugin = self
                .packages
                .iter()
                .position(|one| one[0].id == entry.plugin_id)
                .unwrap();
            let stable = self
                .model
                .channels
                .get(&(plugin, 0))
                .filter(|which| live.contains(which));
            let shown = stable
                .or_else(|| live.iter().rev().find(|which| which.0 == plugin))
                .unwrap();
            assert_eq!(entry.description, Some(format!("variant {}", shown.1)));
            let pointed: Vec<_> = entry
                .channels
                .into_iter()
                .map(|(name, at)| (name, at.release_id))
                .collect();
            let mut expected: Vec<_> = (0..CHANNELS.len())
                .filter_map(|to| Some((to, *self.model.channels.get(&(plugin, to))?)))
                .filter(|(_, which)| live.contains(which))
                .map(|(to, which)| (channel(CHANNELS[to]), self.package(which).release()))
                .collect();
            expected.sort();
            assert_eq!(pointed, expected);
        }
        for plugin in 0..PLUGINS {
            self.compare_plugin(plugin).await;
        }
    }

    async fn compare_plugin(&self, plugin: usize) {
        let id = &self.packages[plugin][0].id;
        for (to, name) in CHANNELS.iter().enumerate() {
            let found = resolve(self.store(), id.as_str(), Some(name)).await;
            match self.model.channels.get(&(plugin, to)) {
                None => assert_eq!(word(found), "not_found"),
                Some(which) if self.model.yanked(*which) == Some(true) => {
                    assert_eq!(word(found), "release_yanked")
                }
                Some(which) => {
                    assert_eq!(found.unwrap().release_id, self.package(*which).release())
                }
            }
        }
        let of: Vec<_> = self
            .model
            .releases
            .iter()
            .rev()
            .filter(|(which, _)| which.0 == plugin)
            .collect();
        let listed = self.store().releases(id.clone(), page(100, None)).await;
        if of.is_empty() {
            assert_eq!(word(listed), "not_found");
        } else {
            let listed: Vec<_> = listed
                .unwrap()
                .data
                .into_iter()
                .map(|release| (release.release_id, release.status))
                .collect();
            let status = |yanked| {
                if yanked {
                    ReleaseStatus::Yanked
                } else {
                    ReleaseStatus::Published
                }
            };
            let expected: Vec<_> = of
                .iter()
                .map(|(which, yanked)| (self.package(*which).release(), status(*yanked)))
                .collect();
            assert_eq!(listed, expected);
        }
        for variant in 0..VARIANTS {
            let which = (plugin, variant);
            let package = self.package(which);
            let read = all(self
                .store()
                .read(package.digest, 0..package.bytes.len() as u64)
                .await)
            .await;
            match self.model.yanked(which) {
                Some(_) => assert_eq!(read.unwrap(), package.bytes),
                None => assert_eq!(word(read), "not_found"),
            }
            let known = self.store().artifact(package.digest).await.unwrap();
            let there =
                self.model.yanked(which).is_some() || self.model.waiting.contains_key(&which);
            assert_eq!(known.is_some(), there, "{which:?}");
        }
    }
}

fn run(place: ArtifactPlace, steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let root = Root::new();
        let names = ["plugin.a", "a-plugin", "plugin-c"];
        let packages = names.iter().map(|name| {
            (0..VARIANTS)
                .map(|variant| Package::new(name, "1", &format!("variant {variant}")))
                .collect()
        });
        let mut both = Both {
            store: Some(root.open(place.clone())),
            packages: packages.collect(),
            model: Model::default(),
            place,
            root,
        };
        for step in steps {
            both.step(step).await;
        }
        both.compare().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_operations_is_as_the_model_says_on_disk(steps in steps()) {
        run(ArtifactPlace::Disk, &steps);
    }

    #[test]
    fn any_order_of_operations_is_as_the_model_says_in_memory(steps in steps()) {
        run(ArtifactPlace::Memory, &steps);
    }
}
