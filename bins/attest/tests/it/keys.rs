//! `attest keys`: made, listed, handed on, revoked; and what is refused.

use std::os::unix::fs::PermissionsExt;

use stamp_authority::{Ca, Wanted};

use crate::bed::{Bed, snapshot};

const UNKNOWN: &str = "00000000000000000000000000000000";

fn generate(bed: &Bed, name: &str) -> String {
    let ran = bed.attest(&["keys", "generate", "--name", name]).expect(0);
    assert_eq!(ran.err, "");
    ran.out.trim_end().to_owned()
}

#[test]
fn a_key_is_made_private_listed_and_trusted() {
    let bed = Bed::new();
    assert_eq!(bed.attest(&["keys", "list"]).expect(0).out, "");
    let id = generate(&bed, "ci");
    assert_eq!(id.len(), 32);
    let file = bed.path(&format!(".attest/keys/{id}.key"));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let line = bed.attest(&["keys", "list"]).expect(0).out;
    assert_eq!(
        line,
        format!("{id}  ci                   trusted  private+public\n")
    );
    let json = bed
        .attest(&["keys", "list", "--format", "json"])
        .expect(0)
        .out;
    assert_eq!(
        json,
        format!(
            "{{\"id\":\"{id}\",\"name\":\"ci\",\"status\":\"trusted\",\"private_key_present\":true}}\n"
        )
    );
}

#[test]
fn a_public_key_is_handed_on() {
    let (here, there) = (Bed::new(), Bed::new());
    let id = generate(&here, "ci");
    let pem = here.attest(&["keys", "export", &id]).expect(0).out;
    assert!(pem.starts_with("-----BEGIN PUBLIC KEY-----\n") && !pem.contains("PRIVATE"));
    here.attest(&["keys", "export", &id, "-o", "ci.pem"])
        .expect(0);
    assert_eq!(here.read("ci.pem"), pem);
    there.write("ci.pem", &pem);
    for _ in 0..2 {
        let out = there
            .attest(&["keys", "import", "ci.pem", "--name", "theirs"])
            .expect(0)
            .out;
        assert_eq!(out, format!("{id}\n"));
    }
    let listed = there.attest(&["keys", "list"]).expect(0).out;
    assert_eq!(
        listed,
        format!("{id}  theirs               trusted  public only\n")
    );
}

#[test]
fn private_material_is_not_imported() {
    let bed = Bed::new();
    let id = generate(&bed, "ci");
    let before = snapshot(bed.folder());
    let file = format!(".attest/keys/{id}.key");
    let ran = bed
        .attest(&["keys", "import", &file, "--name", "x"])
        .expect(2);
    assert!(ran.err.contains("private key"), "{}", ran.err);
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn a_revoked_key_stays_signs_nothing_and_is_listed() {
    let bed = Bed::with_vectors();
    let id = generate(&bed, "ci");
    bed.attest(&["sign", "r3_unsigned.yaml", "--output", "s.yaml"])
        .expect(0);
    bed.attest(&["keys", "revoke", &id]).expect(0);
    assert_eq!(bed.names(".attest/keys").len(), 2);
    let listed = bed.attest(&["keys", "list"]).expect(0).out;
    assert!(
        listed.contains("revoked  private+public (revoked at 2"),
        "{listed}"
    );
    bed.attest(&["sign", "r3_unsigned.yaml"])
        .expect(2)
        .says("is revoked");
    bed.attest(&["verify", "s.yaml"]).expect(1);
    bed.attest(&["keys", "revoke", &id])
        .expect(0)
        .says("already");
    let pem = bed.attest(&["keys", "export", &id]).expect(0).out;
    bed.write("ci.pem", pem);
    bed.attest(&["keys", "import", "ci.pem", "--name", "again"])
        .expect(0)
        .says("stays revoked");
}

#[test]
fn an_unknown_key_is_the_answer_no_for_revoke_only() {
    let bed = Bed::new();
    bed.attest(&["keys", "revoke", UNKNOWN])
        .expect(1)
        .says("unknown key id");
    bed.attest(&["keys", "export", UNKNOWN])
        .expect(2)
        .says("unknown key id");
}

#[test]
fn keys_lie_where_the_environment_says() {
    let bed = Bed::new();
    let mut program = bed.program(&["keys", "generate", "--name", "ci"]);
    program.env("ATTEST_KEYS_DIR", "secret/keys");
    let id = crate::bed::ran(&mut program).expect(0).out;
    let file = format!("secret/keys/{}.key", id.trim_end());
    assert!(bed.path(&file).is_file());
    let listed = bed.attest(&["keys", "list"]).expect(0).out;
    assert!(listed.contains("public only"), "{listed}");
    bed.write(
        "r.yaml",
        std::fs::read(crate::bed::vectors().join("r3_unsigned.yaml")).unwrap(),
    );
    bed.attest(&["sign", "r.yaml"])
        .expect(2)
        .says("attest keys generate");
    let mut program = bed.program(&["sign", "r.yaml"]);
    program.env("ATTEST_KEYS_DIR", bed.path("secret/keys"));
    crate::bed::ran(&mut program).expect(0);
}

#[test]
fn a_key_file_that_others_may_read_signs_nothing() {
    let bed = Bed::with_vectors();
    let id = generate(&bed, "ci");
    let file = bed.path(&format!(".attest/keys/{id}.key"));
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    let ran = bed.attest(&["sign", "r3_unsigned.yaml"]).expect(2);
    assert!(ran.err.contains("chmod"), "{}", ran.err);
}

#[test]
fn authorities_are_pinned_once() {
    let bed = Bed::new();
    let ca = Ca::honest("Acme Stamps");
    bed.write("ca.pem", &ca.identity.pem);
    let args = ["keys", "trust-tsa", "ca.pem", "--name", "acme"];
    let ran = bed.attest(&args).expect(0);
    assert_eq!(
        ran.out,
        "pinned timestamp authority 'acme': CN=Acme Stamps,O=Throwaway\n"
    );
    assert!(bed.path(".attest/trust/tsa/acme.crt").is_file());
    bed.attest(&args).expect(2).says("exists already");
    let climb = ["keys", "trust-tsa", "ca.pem", "--name", "../x"];
    bed.attest(&climb).expect(2).says("1 to 64 letters");
    bed.write("leaf.pem", ca.issue(&Wanted::stamper("S")).pem);
    bed.attest(&["keys", "trust-tsa", "leaf.pem", "--name", "n"])
        .expect(2)
        .says("cannot issue the certificates of a timestamp authority");
    bed.write("no.pem", "hello");
    bed.attest(&["keys", "trust-tsa", "no.pem", "--name", "n"])
        .expect(2)
        .says("no.pem");
}

#[test]
fn wrong_invocations_say_what_to_do() {
    let bed = Bed::new();
    bed.attest(&["keys"]).expect(2).says("generate");
    bed.attest(&["keys", "generate"])
        .expect(2)
        .says("--name <NAME>");
    bed.attest(&["keys", "generate", "--name", "a/b"])
        .expect(2)
        .says("`/`");
    bed.attest(&["keys", "export", "nonsense"])
        .expect(2)
        .says("32 lowercase");
    bed.attest(&["keys", "import", "gone.pem", "--name", "x"])
        .expect(2)
        .says("gone.pem");
    assert!(bed.names(".").is_empty());
}
