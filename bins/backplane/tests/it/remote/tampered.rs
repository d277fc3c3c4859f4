//! Artifacts that are not what they were.

use super::service::Place;

#[test]
fn a_changed_artifact_is_never_accepted() {
    let place = Place::plain();
    let release = place.publish();
    let path = place.artifact(release["artifact_digest"].as_str().unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() / 2;
    bytes[last] ^= 1;
    let mut writable = std::fs::metadata(&path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut writable, 0o600);
    std::fs::set_permissions(&path, writable).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    place
        .line("reader", "download acme-notes -o got.tar.gz")
        .expect(2);
    assert!(!place.bed.path("got.tar.gz").exists());
    assert!(!place.bed.path("got.tar.gz.part").exists());
}
