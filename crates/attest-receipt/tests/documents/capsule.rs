//! Capsules: what is pinned, and the hash that says so.

use attest_receipt::capsule::{self, Capsule, CapsuleError};

const STORED: &str = include_str!("../data/capsule.yaml");

fn pinned(repository: &str) -> String {
    format!("{repository}@sha256:{}", "0".repeat(64))
}

fn sample() -> Capsule {
    Capsule::read(STORED.as_bytes()).unwrap()
}

fn stored(mut capsule: Capsule) -> String {
    capsule.capsule_hash = Some(capsule.hash().unwrap());
    capsule.to_yaml().unwrap()
}

#[test]
fn a_capsule_of_the_original_has_the_hash_that_it_says() {
    let capsule = sample();
    assert_eq!(capsule.capsule_hash, Some(capsule.hash().unwrap()));
    assert_eq!(capsule.to_yaml().unwrap(), STORED);
    let made = Capsule::new("demo", pinned("docker.io/library/busybox")).unwrap();
    assert_eq!(made, capsule);
}

#[test]
fn a32_a_tag_or_another_digest_is_no_pinned_image() {
    let digest = "0".repeat(64);
    for image in [
        "busybox".to_owned(),
        "busybox:latest".to_owned(),
        format!("busybox:latest@sha256:{}", &digest[1..]),
        format!("busybox@sha256:{digest}0"),
        format!("busybox@sha256:{}", "A".repeat(64)),
        format!("busybox@sha512:{digest}"),
        format!("busybox@SHA256:{digest}"),
        format!("@sha256:{digest}"),
        format!("--privileged@sha256:{digest}"),
        format!("busy box@sha256:{digest}"),
        format!("busybox\n@sha256:{digest}"),
        format!("a@sha256:{digest}@sha256:{digest}"),
    ] {
        let error = Capsule::new("demo", image.clone()).unwrap_err();
        assert_eq!(error, CapsuleError::NotPinned(image.clone()));
        assert!(
            error.to_string().contains("not pinned by digest"),
            "{error}"
        );
        let file = STORED.replace(&sample().image, &format!("{image:?}"));
        assert_eq!(
            Capsule::read(file.as_bytes()),
            Err(CapsuleError::NotPinned(image))
        );
    }
    assert!(Capsule::new("demo", pinned("localhost:5000/a/b:tag")).is_ok());
}

#[test]
fn every_field_but_the_hash_is_hashed() {
    let change = |change: fn(&mut Capsule)| {
        let mut capsule = sample();
        change(&mut capsule);
        capsule.hash().unwrap()
    };
    let changed = [
        change(|it| it.format.push('x')),
        change(|it| it.name.push('x')),
        change(|it| it.image.push('x')),
        change(|it| it.entrypoint = Some(vec![])),
        change(|it| it.entrypoint = Some(vec!["a b".into()])),
        change(|it| it.entrypoint = Some(vec!["a".into(), "b".into()])),
        change(|it| drop(it.env.insert("A".into(), "b".into()))),
        change(|it| it.mounts.workspace.push('x')),
        change(|it| it.network.push('x')),
    ];
    let mut all = vec![sample().hash().unwrap()];
    all.extend(changed);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 10);
    assert_eq!(
        change(|it| it.capsule_hash = None),
        sample().hash().unwrap()
    );
}

#[test]
fn a_file_that_was_edited_is_refused() {
    let edited = STORED.replace("workspace: /work", "workspace: /other");
    assert!(matches!(
        Capsule::read(edited.as_bytes()),
        Err(CapsuleError::OtherHash { .. })
    ));
    let without = STORED.split("capsule_hash").next().unwrap();
    assert_eq!(
        Capsule::read(without.as_bytes()),
        Err(CapsuleError::Invalid("capsule_hash is missing".into()))
    );
}

#[test]
fn unknown_keys_are_passed_over() {
    let more = format!("{STORED}later: {{a: [1]}}\n");
    assert_eq!(Capsule::read(more.as_bytes()).unwrap(), sample());
}

#[test]
fn values_stand_as_they_are_spelled() {
    let mut capsule = sample();
    capsule.env.insert("PORT".into(), "8080".into());
    capsule.env.insert("FLAG".into(), "true".into());
    capsule.entrypoint = Some(vec!["sh".into(), "1".into()]);
    let file = stored(capsule.clone()).replace('\'', "");
    assert!(file.contains("PORT: 8080\n"), "{file}");
    let read = Capsule::read(file.as_bytes()).unwrap();
    assert_eq!(read.env, capsule.env);
    assert_eq!(read.entrypoint, capsule.entrypoint);
}

#[test]
fn rules_of_the_format() {
    for (change, word) in [
        (
            (|it| it.format = "attest-capsule/v2".into()) as fn(&mut Capsule),
            "format",
        ),
        (|it| it.name = "../x".into(), "name"),
        (|it| it.name = "..".into(), "name"),
        (|it| it.name = String::new(), "name"),
        (|it| it.name = "a\nb".into(), "name"),
        (|it| it.network = "host".into(), "network"),
        (|it| it.mounts.workspace = "work".into(), "mounts.workspace"),
        (
            |it| it.mounts.workspace = "/work:ro".into(),
            "mounts.workspace",
        ),
        (
            |it| it.mounts.workspace = "/wo\nrk".into(),
            "mounts.workspace",
        ),
        (|it| drop(it.env.insert("A=B".into(), String::new())), "env"),
        (
            |it| drop(it.env.insert(String::new(), String::new())),
            "env",
        ),
        (|it| drop(it.env.insert("A".into(), "\0".into())), "env"),
        (|it| it.entrypoint = Some(vec!["\0".into()]), "entrypoint"),
    ] {
        let mut capsule = sample();
        change(&mut capsule);
        let error = Capsule::read(stored(capsule).as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(word), "{word}: {error}");
    }
    let mut merge = sample();
    merge.env.insert("<<".into(), String::new());
    let error = merge.validate().unwrap_err().to_string();
    assert!(error.starts_with("env"), "{error}");
    for wrong in ["", "[]", "x", "format: [a]", "format: attest-capsule/v1"] {
        assert!(Capsule::read(wrong.as_bytes()).is_err(), "{wrong}");
    }
    let long = vec![b' '; capsule::MAX_BYTES + 1];
    assert!(matches!(
        Capsule::read(&long),
        Err(CapsuleError::Unreadable(_))
    ));
}
