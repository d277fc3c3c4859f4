//! Timestamps through the program: fetched, verified, refused; and what they mean for a revoked key.

use std::os::unix::fs::PermissionsExt;

use stamp_authority::{Identity, Stamper, der};

use crate::authority::{SHOWN, TIME, Tsa, granted, nobody, reply};
use crate::bed::{Bed, Ran, ran, snapshot};

const RECEIPT: &str = "r3_unsigned.yaml";

/// A workspace with a receipt that is signed by the one key there is.
fn bed() -> Bed {
    let bed = Bed::with_vectors();
    bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
    bed.attest(&["sign", RECEIPT]).expect(0);
    bed
}

fn stamp(bed: &Bed, url: &str) -> Ran {
    bed.attest(&["timestamp", RECEIPT, "--tsa", url])
}

#[test]
fn a_receipt_is_stamped_in_place_and_verifies() {
    let (bed, tsa) = (bed(), Tsa::at(TIME));
    tsa.pin(&bed);
    std::fs::set_permissions(bed.path(RECEIPT), PermissionsExt::from_mode(0o640)).unwrap();
    let before = bed.read(RECEIPT);
    bed.attest(&["verify", "--require", "timestamp", RECEIPT])
        .expect(1);
    let ran = stamp(&bed, &tsa.url).expect(0);
    assert_eq!(ran.out, format!("{RECEIPT}\n"));
    let stamped = format!("signature timestamped {SHOWN} by Acme Stamps");
    assert!(ran.err.contains(&stamped), "{}", ran.err);
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    let mode = std::fs::metadata(bed.path(RECEIPT)).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o640);
    let ran = bed
        .attest(&["verify", "--require", "timestamp", RECEIPT])
        .expect(0);
    assert!(
        ran.out
            .contains(&format!("timestamp    pass     {stamped}")),
        "{}",
        ran.out
    );
    // Nothing but the token is new.
    let after = bed.read(RECEIPT);
    let without: Vec<&str> = after
        .lines()
        .filter(|line| !line.starts_with("timestamp_token: "))
        .collect();
    assert_eq!(without, before.lines().collect::<Vec<_>>());
    assert_eq!(after.lines().count(), before.lines().count() + 1);
    // A stamp is not replaced, not even asked for.
    let ran = stamp(&bed, &nobody()).expect(1);
    assert!(
        ran.err.contains("already carries a timestamp"),
        "{}",
        ran.err
    );
    assert_eq!(bed.read(RECEIPT), after);
}

#[test]
fn elsewhere_the_receipt_stays_as_it_is() {
    let (bed, tsa) = (bed(), Tsa::at(TIME));
    tsa.pin(&bed);
    let before = bed.read(RECEIPT);
    let ran = bed
        .attest(&[
            "timestamp",
            RECEIPT,
            "--tsa",
            &tsa.url,
            "--output",
            "stamped.yaml",
        ])
        .expect(0);
    assert_eq!(ran.out, "stamped.yaml\n");
    assert_eq!(bed.read(RECEIPT), before);
    bed.attest(&["verify", "--require", "timestamp", "stamped.yaml"])
        .expect(0);
    let before = snapshot(bed.folder());
    let gone = [
        "timestamp",
        RECEIPT,
        "--tsa",
        &tsa.url,
        "--output",
        "gone/x.yaml",
    ];
    bed.attest(&gone).expect(2).says("cannot be written");
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn what_became_of_the_receipt_while_the_authority_was_asked_stays() {
    let (bed, honest) = (bed(), Tsa::at(TIME));
    let signed = bed.read(RECEIPT);
    bed.attest(&[
        "timestamp",
        RECEIPT,
        "--tsa",
        &honest.url,
        "--output",
        "stamped.yaml",
    ])
    .expect(0);
    let stamped = bed.read("stamped.yaml");
    for (meanwhile, code, says) in [
        (stamped, 1, "already carries a timestamp"),
        (
            format!("{signed}\n"),
            2,
            "was changed by somebody else meanwhile",
        ),
    ] {
        bed.write(RECEIPT, &signed);
        let (path, text) = (bed.path(RECEIPT), meanwhile.clone());
        let tsa = Tsa::saying(move |identity, asked| {
            std::fs::write(&path, &text).unwrap();
            granted(&Stamper::for_request(identity, asked, TIME).token())
        });
        let ran = stamp(&bed, &tsa.url).expect(code);
        assert!(ran.err.contains(says), "{}", ran.err);
        assert_eq!(bed.read(RECEIPT), meanwhile);
    }
}

#[test]
fn what_has_no_use_for_a_stamp_is_the_answer_no() {
    let bed = bed();
    let signed = bed.read(RECEIPT);
    let unsigned = Bed::with_vectors();
    bed.write("unsigned.yaml", unsigned.read(RECEIPT));
    bed.write(
        "changed.yaml",
        signed.replace("exit_code: 0", "exit_code: 7"),
    );
    bed.write("list.yaml", "- a\n");
    let before = snapshot(bed.folder());
    for (name, says) in [
        ("unsigned.yaml", "receipt is unsigned"),
        ("changed.yaml", "does not verify"),
        ("list.yaml", "is not a receipt"),
    ] {
        // Nobody listens there, and nobody is asked.
        let ran = bed
            .attest(&["timestamp", name, "--tsa", &nobody()])
            .expect(1);
        assert!(ran.err.contains(says), "{name}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn wrong_invocations_ask_nobody_and_change_nothing() {
    let bed = bed();
    let before = snapshot(bed.folder());
    bed.attest(&["timestamp", RECEIPT])
        .expect(2)
        .says("--tsa <URL>");
    stamp(&bed, "http://tsa.example/")
        .expect(2)
        .says("refusing plain `http://`");
    stamp(&bed, "tsa.example").expect(2).says("is not a URL");
    let ran = stamp(&bed, "https://me:hunter2@tsa.example/").expect(2);
    assert!(
        ran.err.contains("has a name or password in it"),
        "{}",
        ran.err
    );
    bed.attest(&["timestamp", "gone.yaml", "--tsa", &nobody()])
        .expect(2)
        .says("gone.yaml");
    stamp(&bed, &nobody())
        .expect(2)
        .says("cannot reach the timestamp authority");
    for (args, says) in [
        (
            &["sign", RECEIPT, "--tsa", "https://a.example"][..],
            "--tsa requires --timestamp",
        ),
        (
            &["sign", RECEIPT, "--timestamp"],
            "--timestamp requires --tsa <URL>",
        ),
        (
            &["run", "--timestamp", "--tsa", "https://a.example"],
            "--timestamp requires --sign; there is no signature to timestamp",
        ),
        (
            &["run", "--sign", "--tsa", "https://a.example"],
            "--tsa requires --timestamp",
        ),
        (
            &["run", "--sign", "--timestamp"],
            "--timestamp requires --tsa <URL>",
        ),
    ] {
        bed.attest(args).expect(2).says(says);
    }
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn an_answer_that_does_not_hold_changes_nothing() {
    type Answer = fn(&Identity, &[u8]) -> Vec<u8>;
    let answers: [(Answer, &str); 9] = [
        (
            |signer, asked| {
                let stamper = Stamper::for_request(signer, asked, TIME);
                granted(&stamper.answering(None).token())
            },
            "its nonce differs",
        ),
        (
            |signer, asked| {
                let stamper = Stamper::for_request(signer, asked, TIME);
                let other = der::asn1::Int::new(&[1, 2, 3]).unwrap();
                granted(&stamper.answering(Some(other)).token())
            },
            "its nonce differs",
        ),
        (
            |signer, asked| {
                let nonce = Stamper::for_request(signer, asked, TIME).statement.nonce;
                granted(&Stamper::new(signer, b"else", TIME).answering(nonce).token())
            },
            "does not cover this signature",
        ),
        (
            |signer, asked| {
                let stamper = Stamper::for_request(signer, asked, "20991231235959Z");
                granted(&stamper.token())
            },
            "more than a day ahead",
        ),
        (
            |signer, asked| {
                let stamper = Stamper::for_request(signer, asked, "20200101000000Z");
                granted(&stamper.token())
            },
            "was not valid at the stated time",
        ),
        (
            |signer, asked| {
                let mut token = Stamper::for_request(signer, asked, TIME).token();
                let last = token.len() - 1;
                token[last] ^= 1;
                granted(&token)
            },
            "own signature is not valid",
        ),
        (
            |_, _| {
                let rejected = [0x30, 9, 0x30, 7, 2, 1, 2, 3, 2, 5, 0x20];
                reply(
                    "200 OK\r\ncontent-type: application/timestamp-reply",
                    &rejected,
                )
            },
            "the request is not permitted",
        ),
        (
            |_, _| reply("302 Found\r\nlocation: https://else.example/", b""),
            "a redirect",
        ),
        (
            |_, _| reply("200 OK\r\ncontent-type: text/html", b"<html>"),
            "not with a timestamp reply",
        ),
    ];
    for (answer, says) in answers {
        let (bed, tsa) = (bed(), Tsa::saying(answer));
        tsa.pin(&bed);
        let before = snapshot(bed.folder());
        let ran = stamp(&bed, &tsa.url).expect(2);
        assert!(ran.err.contains(says), "`{says}` in {}", ran.err);
        assert!(ran.err.contains("timestamping failed"), "{}", ran.err);
        assert_eq!(ran.out, "");
        assert_eq!(snapshot(bed.folder()), before, "{says}");
    }
}

#[test]
fn without_a_pinned_authority_there_is_a_warning_and_verify_refuses() {
    let (bed, tsa) = (bed(), Tsa::at(TIME));
    let ran = stamp(&bed, &tsa.url).expect(0);
    assert!(
        ran.err.contains("no timestamp authority is pinned"),
        "{}",
        ran.err
    );
    let ran = bed.attest(&["verify", RECEIPT]).expect(1);
    let says =
        "no pinned timestamp authority in ./.attest/trust/tsa; add the issuing CA certificate";
    assert!(ran.out.contains(says), "{}", ran.out);
    tsa.pin(&bed);
    bed.attest(&["verify", RECEIPT]).expect(0);
}

#[test]
fn over_tls_the_authority_proves_who_it_is() {
    let (bed, (tsa, pem)) = (bed(), Tsa::over_tls(TIME));
    tsa.pin(&bed);
    bed.write("roots.pem", &pem);
    bed.write(
        "other.pem",
        &stamp_authority::Ca::honest("Other").identity.pem,
    );
    let before = snapshot(bed.folder());
    let stamp_by = |roots: &str| {
        let mut program = bed.program(&["timestamp", RECEIPT, "--tsa", &tsa.url]);
        ran(program.env("SSL_CERT_FILE", bed.path(roots)))
    };
    let told = stamp_by("other.pem").expect(2);
    assert!(told.err.contains("certificate"), "{}", told.err);
    // Without TLS there is nobody to talk to.
    let plain = tsa.url.replace("https:", "http:");
    stamp(&bed, &plain).expect(2).says("cannot reach");
    assert_eq!(snapshot(bed.folder()), before);
    stamp_by("roots.pem").expect(0);
    bed.attest(&["verify", "--require", "timestamp", RECEIPT])
        .expect(0);
}

#[test]
fn a_proxy_is_not_asked_about_this_machine() {
    let (bed, tsa) = (bed(), Tsa::at(TIME));
    tsa.pin(&bed);
    let mut program = bed.program(&["timestamp", RECEIPT, "--tsa", &tsa.url]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        program.env(name, nobody());
    }
    ran(&mut program).expect(0);
}

#[test]
fn an_authority_that_is_not_pinned_where_others_are_is_refused() {
    let (bed, other, tsa) = (bed(), Tsa::at(TIME), Tsa::at(TIME));
    other.pin(&bed);
    let before = snapshot(bed.folder());
    let ran = stamp(&bed, &tsa.url).expect(2);
    assert!(ran.err.contains("whose key did not sign it"), "{}", ran.err);
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn signing_and_stamping_are_one_step() {
    let bed = Bed::with_vectors();
    bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
    let tsa = Tsa::at(TIME);
    tsa.pin(&bed);
    let before = snapshot(bed.folder());
    let sign = |url: &str| bed.attest(&["sign", RECEIPT, "--timestamp", "--tsa", url]);
    // No stamp, no signature: nothing is half done.
    sign(&nobody()).expect(2).says("timestamping failed");
    assert_eq!(snapshot(bed.folder()), before);
    assert_eq!(sign(&tsa.url).expect(0).out, format!("{RECEIPT}\n"));
    bed.attest(&["verify", "--require", "signature,timestamp", RECEIPT])
        .expect(0);
}

const PIPELINE: &str = "version: '1'\nsteps:\n  hello:\n    run: echo hello\n    cache: false\n";

/// A workspace with a pipeline and a key.
fn workspace(pipeline: &str) -> Bed {
    let bed = Bed::new();
    bed.attest(&["init"]).expect(0);
    bed.write("attest.yaml", pipeline);
    bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
    bed
}

#[test]
fn a_run_is_signed_and_stamped() {
    let (bed, tsa) = (workspace(PIPELINE), Tsa::at(TIME));
    tsa.pin(&bed);
    let run = |more: &[&str], url: &str| {
        let args = [&["run", "--sign", "--timestamp", "--tsa", url], more].concat();
        bed.attest(&args)
    };
    for more in [&[][..], &["--check-reproducibility"]] {
        let receipt = run(more, &tsa.url).expect(0).out;
        let receipt = receipt.trim_end();
        bed.attest(&["verify", "--require", "signature,timestamp", receipt])
            .expect(0);
        // The name still tells the content.
        let digest = blake3_of(&bed, receipt);
        assert!(
            receipt.contains(&format!("_{}.yaml", &digest[..12])),
            "{receipt} {digest}"
        );
    }
    // What was run is not lost with a stamp that can still be had.
    let ran = run(&[], &nobody()).expect(2);
    assert!(
        ran.err.contains("`attest timestamp` can still add one"),
        "{}",
        ran.err
    );
    let receipt = ran.out.trim_end();
    bed.attest(&["verify", "--require", "signature", receipt])
        .expect(0);
    bed.attest(&["timestamp", receipt, "--tsa", &tsa.url])
        .expect(0);
    bed.attest(&["verify", "--require", "timestamp", receipt])
        .expect(0);
}

fn blake3_of(bed: &Bed, receipt: &str) -> String {
    blake3::hash(&std::fs::read(bed.path(receipt)).unwrap()).to_string()
}

#[test]
fn a_wrapped_commands_receipt_is_signed_and_stamped() {
    let (bed, tsa) = (workspace(PIPELINE), Tsa::at(TIME));
    tsa.pin(&bed);
    let wrap = |url: &str, command: &str| {
        bed.attest(&[
            "run",
            "--wrap",
            "--name",
            "build",
            "--sign",
            "--timestamp",
            "--tsa",
            url,
            "--receipt",
            "r.yaml",
            "--report",
            "report.json",
            "--",
            "sh",
            "-c",
            command,
        ])
    };
    wrap(&tsa.url, "exit 0").expect(0);
    bed.attest(&["verify", "--require", "timestamp", "r.yaml"])
        .expect(0);
    let ran = wrap(&nobody(), "exit 0").expect(2);
    assert!(
        ran.err.contains("`attest timestamp` can still add one"),
        "{}",
        ran.err
    );
    let report: serde_json::Value = serde_json::from_str(&bed.read("report.json")).unwrap();
    assert_eq!(report["evidence_status"], "produced");
    let error = report["error"].as_str().unwrap();
    assert!(
        error.contains("cannot reach the timestamp authority"),
        "{error}"
    );
    bed.attest(&["verify", "--require", "signature", "r.yaml"])
        .expect(0);
    // The command's own code wins.
    wrap(&nobody(), "exit 7").expect(7);
}

#[test]
fn a29_a_revoked_keys_receipt_counts_if_it_was_stamped_before() {
    let revoked_at = |bed: &Bed, since: &str| {
        let listed = bed.attest(&["keys", "list"]).expect(0).out;
        let id = listed
            .split_whitespace()
            .find(|word| word.len() == 32)
            .unwrap()
            .to_owned();
        bed.attest(&["keys", "revoke", &id]).expect(0);
        let policy = bed.read(".attest/trust/trust.toml");
        let (head, tail) = policy.split_once("revoked_at = \"").unwrap();
        let (_, tail) = tail.split_once('"').unwrap();
        bed.write(
            ".attest/trust/trust.toml",
            format!("{head}revoked_at = \"{since}\"{tail}"),
        );
    };
    for (since, code) in [("2024-06-15T12:00:01Z", 0), ("2024-06-15T11:59:59Z", 1)] {
        let (bed, tsa) = (bed(), Tsa::at(TIME));
        tsa.pin(&bed);
        stamp(&bed, &tsa.url).expect(0);
        revoked_at(&bed, since);
        let ran = bed.attest(&["verify", RECEIPT]).expect(code);
        if code == 0 {
            assert!(
                ran.out.contains("signed by key revoked later"),
                "{}",
                ran.out
            );
        } else {
            let says = format!("after its revocation at {since}");
            assert!(ran.out.contains(&says), "{}", ran.out);
            // Whoever holds the key cannot talk himself out of it.
            bed.attest(&["verify", "--trust-receipt-timestamp", RECEIPT])
                .expect(1);
        }
        // Without the authority nobody says when it was.
        std::fs::remove_file(bed.path(".attest/trust/tsa/acme.crt")).unwrap();
        let ran = bed.attest(&["verify", RECEIPT]).expect(1);
        assert!(ran.out.contains("signed by revoked key"), "{}", ran.out);
    }
}
