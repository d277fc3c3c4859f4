//! From a folder to a registry and back.

use serde_json::Value;
use test_case::test_case;

use super::service::Place;

fn id(release: &Value) -> String {
    release["release_id"].as_str().unwrap().to_owned()
}

#[test_case(&Place::tls(); "over tls")]
#[test_case(&Place::plain(); "on loopback")]
fn what_is_published_is_listed_resolved_downloaded_and_inspected(place: &Place) {
    let release = place.publish();
    assert_eq!(release["channels"], serde_json::json!(["stable"]));
    let listed = place.line("reader", "catalog NOTE --format json").expect(0);
    assert_eq!(listed.json()["plugin_id"], "acme-notes");
    let shown = place.line("reader", "catalog").expect(0).out;
    assert!(shown.starts_with("acme-notes "), "{shown}");
    assert!(shown.contains("1.2.0") && shown.contains("Takes notes"));
    place.line("reader", "catalog nothing-of-that").expect(1);
    let resolved = place.line("reader", "resolve acme-notes --format json");
    assert_eq!(resolved.expect(0).json(), release, "handed on as it came");
    let by_id = format!("resolve --release {} --format json", id(&release));
    assert_eq!(place.line("reader", &by_id).expect(0).json(), release);
    let got = place.line("reader", "download acme-notes@stable -o got.tar.gz");
    let digest = release["artifact_digest"].as_str().unwrap();
    assert!(got.expect(0).out.contains(digest));
    place.bed.line("pack notes -o own.tar.gz").expect(0);
    assert_eq!(place.bed.read("got.tar.gz"), place.bed.read("own.tar.gz"));
    place.line("", "inspect got.tar.gz").expect(0);
    let by_digest = format!("download {digest} --format json");
    let record = place.line("reader", &by_digest).expect(0).json();
    assert_eq!(record["plugin_id"], "acme-notes");
    let file = record["file"].as_str().unwrap();
    assert_eq!(place.bed.read(file), place.bed.read("own.tar.gz"));
    assert!(
        place
            .bed
            .names(".")
            .iter()
            .all(|name| !name.ends_with(".part"))
    );
}

#[test]
fn publishing_again_changes_nothing_and_other_bytes_are_told() {
    let place = Place::plain();
    let first = place.publish();
    assert_eq!(
        place.publish(),
        first,
        "the same bytes are the same release"
    );
    place
        .bed
        .write("notes/skills/take-note/example.txt", "oat milk\n");
    let ran = place.line("ci", "publish ./notes --channel beta --format json");
    let ran = ran
        .expect(0)
        .says("exists with other bytes")
        .says(&id(&first));
    let second = ran.json();
    assert_ne!(id(&second), id(&first));
    let releases = place.line("reader", "releases acme-notes --format json");
    let releases = releases.expect(0).out;
    let ids: Vec<String> = releases
        .lines()
        .map(|line| id(&serde_json::from_str(line).unwrap()))
        .collect();
    assert_eq!(ids, [id(&second), id(&first)], "newest first");
    let one = place
        .line("reader", "releases acme-notes --limit 1")
        .expect(0);
    assert_eq!(one.out.lines().count(), 1);
    assert!(one.err.contains("--all"), "{}", one.err);
}

#[test]
fn a_channel_is_moved_and_a_yanked_release_is_met_with_its_reason() {
    let place = Place::plain();
    let first = id(&place.publish());
    place
        .bed
        .write("notes/skills/take-note/example.txt", "oat milk\n");
    let second = place.line("ci", "publish ./notes --format json").expect(0);
    let second = id(&second.json());
    let promote = |release: &str, more: &str| {
        place.line(
            "operator",
            &format!("promote acme-notes {release} --channel stable {more}"),
        )
    };
    promote(&second, &format!("--expect {second}"))
        .expect(1)
        .says("conflict");
    promote(&second, &format!("--expect {first}")).expect(0);
    let yank = |more: &str| place.line("operator", &format!("yank acme-notes@{second} {more}"));
    place
        .line("operator", &format!("yank other@{second}"))
        .expect(1);
    yank("--reason broken").expect(0);
    place
        .line("reader", "resolve acme-notes")
        .expect(1)
        .says("yanked");
    place
        .line("reader", "download acme-notes")
        .expect(1)
        .says("yanked");
    let alone = place.line("reader", &format!("resolve {second}"));
    alone.expect(1).says(&format!("`NAME@{second}`"));
    let locked = format!("download acme-notes@{second} -o locked.tar.gz");
    place.line("reader", &locked).expect(0).says("broken");
    promote(&second, "")
        .expect(1)
        .says("release_yanked")
        .says("--undo");
    let again = place
        .line("ci", "publish ./notes")
        .expect(1)
        .says("release_yanked")
        .says("--undo");
    assert!(!again.err.contains("again is safe"), "{}", again.err);
    let other = format!("promote other {first} --channel stable");
    place
        .line("operator", &other)
        .expect(1)
        .says("`backplane releases other`");
    yank("--undo").expect(0);
    place.line("reader", "resolve acme-notes").expect(0);
    let unknown = format!("resolve acme-notes@r-{}", "0".repeat(32));
    place.line("reader", &unknown).expect(1);
}

#[test]
fn a_token_that_is_unknown_or_lacks_a_right_changes_nothing() {
    let place = Place::plain();
    place.line("", "catalog").expect(2).says("wants a token");
    place
        .bed
        .write("wrong.token", "wrong-token-0123456789abcdef\n");
    let wrong = place.line("wrong", "publish ./notes").expect(2);
    assert!(!wrong.err.contains("wrong-token-0123"), "{}", wrong.err);
    place
        .line("reader", "publish ./notes")
        .expect(2)
        .says("`forbidden`");
    place.line("reader", "catalog").expect(1);
    let release = id(&place.publish());
    let yank = format!("yank acme-notes@{release}");
    place.line("ci", &yank).expect(2).says("`forbidden`");
    place.line("reader", "resolve acme-notes").expect(0);
}

#[test]
fn a_dry_run_and_a_rejected_package_send_nothing() {
    let place = Place::plain();
    let plan = place
        .line("ci", "publish ./notes --dry-run --format json")
        .expect(0);
    place.bed.line("pack notes -o p.tar.gz").expect(0);
    let plan = plan.json();
    assert_eq!(plan["dry_run"], true);
    place.bed.write("bad/plugin.json", "{}");
    place
        .line("ci", "publish ./bad")
        .expect(1)
        .says("name_missing")
        .says("and not packed");
    std::os::unix::fs::symlink("plugin.json", place.bed.path("notes/link")).unwrap();
    place
        .line("ci", "publish ./notes")
        .expect(1)
        .says("--follow-links");
    place.line("reader", "catalog").expect(1);
    let file = place
        .line("ci", "publish ./p.tar.gz --format json")
        .expect(0);
    assert_eq!(file.json()["artifact_digest"], plan["artifact_digest"]);
}

#[test]
fn a_receipt_of_something_else_releases_nothing() {
    let place = Place::plain();
    place.bed.write("receipt.yaml", "no: receipt\n");
    place
        .line(
            "ci",
            "publish ./notes --channel stable --receipt receipt.yaml",
        )
        .expect(1)
        .says("nothing is released");
    place.line("reader", "catalog").expect(1);
    place.publish();
    place
        .line("reader", "download acme-notes -o a.tar.gz --receipt r.yaml")
        .expect(1)
        .says("no receipt");
    assert!(!place.bed.path("a.tar.gz").exists());
}
