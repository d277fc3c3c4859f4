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

#[test]
fn no_option_writes_among_keys_and_trust() {
    let bed = Bed::with_vectors();
    bed.attest(&["init"]).expect(0);
    let id = generate(&bed, "ci");
    bed.attest(&["sign", "r3_unsigned.yaml", "--output", "signed.yaml"])
        .expect(0);
    std::os::unix::fs::symlink(".attest/keys", bed.path("link")).unwrap();
    let before = snapshot(bed.folder());
    let key = format!(".attest/keys/{id}.key");
    for target in [
        &key,
        ".attest/keys/new.yaml",
        ".attest/trust/trust.toml",
        ".attest/trust/tsa/x.crt",
        &format!("link/{id}.key"),
        &bed.path(&key).to_string_lossy(),
    ] {
        for args in [
            &["keys", "export", &id, "-o", target][..],
            &["sign", "r3_unsigned.yaml", "--output", target],
            &[
                "timestamp",
                "signed.yaml",
                "--tsa",
                "http://127.0.0.1:9",
                "--output",
                target,
            ],
            &[
                "export",
                "--receipt",
                "signed.yaml",
                "--format",
                "in-toto",
                "--output",
                target,
            ],
            &[
                "causal",
                "export",
                "--receipt",
                "signed.yaml",
                "--allow-partial",
                "-o",
                target,
            ],
            &["run", "--output", target],
            &["run", "--receipt", target],
            &[
                "run",
                "--wrap",
                "--name",
                "a",
                "--receipt",
                target,
                "--",
                "true",
            ],
            &[
                "run", "--wrap", "--name", "a", "--report", target, "--", "true",
            ],
        ] {
            let ran = bed.attest(args).expect(2);
            assert!(
                ran.err.contains("where no option writes"),
                "{args:?} {}",
                ran.err
            );
        }
    }
    for folder in [".attest/keys", ".attest/trust/state", "link"] {
        bed.attest(&["run", "--state-dir", folder])
            .expect(2)
            .says("lies among");
    }
    assert_eq!(snapshot(bed.folder()), before);

    // The folder that the environment names is one, too.
    std::fs::rename(bed.path(".attest/keys"), bed.path("elsewhere")).unwrap();
    let target = format!("elsewhere/{id}.key");
    let mut program = bed.program(&["keys", "export", &id, "-o", &target]);
    program.env("ATTEST_KEYS_DIR", "elsewhere");
    crate::bed::ran(&mut program)
        .expect(2)
        .says("lies among the private keys");
    assert!(bed.read(&target).contains("PRIVATE"));
}

#[test]
fn a_folder_of_keys_that_git_would_take_in_is_warned_of() {
    let bed = Bed::new();
    bed.write(".git/HEAD", "ref: refs/heads/main\n");
    let made = |chosen: &str| {
        let mut program = bed.program(&["keys", "generate", "--name", "ci"]);
        program.env("ATTEST_KEYS_DIR", chosen);
        crate::bed::ran(&mut program).expect(0)
    };
    let ran = made("secret/keys");
    assert_eq!(ran.err, "");
    assert_eq!(bed.read("secret/keys/.gitignore"), "*\n");
    bed.write("used/notes", "");
    let ran = made("used");
    assert!(
        ran.err.contains("warning") && ran.err.contains("no ignore file keeps"),
        "{}",
        ran.err
    );
    bed.write(".gitignore", "used/\n");
    assert_eq!(made("used").err, "");
}

#[test]
fn a_store_that_everybody_can_write_to_is_warned_of_by_verify() {
    let bed = Bed::with_vectors();
    generate(&bed, "ci");
    bed.attest(&["sign", "r3_unsigned.yaml"]).expect(0);
    let policy = bed.path(".attest/trust/trust.toml");
    let verify = ["verify", "--format", "json", "r3_unsigned.yaml"];
    for (mode, warned) in [(0o664, false), (0o666, true)] {
        std::fs::set_permissions(&policy, PermissionsExt::from_mode(mode)).unwrap();
        let ran = bed.attest(&verify).expect(0);
        let record: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let warnings = record["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), usize::from(warned), "{}", ran.out);
        assert_eq!(
            ran.err.contains("warning: every user of this machine"),
            warned,
            "{}",
            ran.err
        );
        assert_eq!(ran.err.contains("chmod o-w"), warned);
    }
}

#[test]
fn messages_say_a_thing_once_and_name_the_path() {
    let bed = Bed::with_vectors();
    let id = generate(&bed, "ci");
    let folder = bed.path(".attest/keys");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o770)).unwrap();
    bed.attest(&["sign", "r3_unsigned.yaml"])
        .expect(2)
        .says("a whole group can write into the folder of private keys")
        .says("chmod go-w ");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    let file = bed.path(&format!(".attest/keys/{id}.key"));
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    let ran = bed.attest(&["sign", "r3_unsigned.yaml"]).expect(2);
    assert!(
        ran.err.contains(&format!("{id}.key`")) && !ran.err.contains("PATH"),
        "{}",
        ran.err
    );
    // The identity, a weak key.
    bed.write(".attest/trust/loose", format!("01{}", "0".repeat(62)));
    let ran = bed.attest(&["keys", "list"]).expect(2);
    assert_eq!(
        ran.err.matches("the public key is weak").count(),
        1,
        "{}",
        ran.err
    );
}
