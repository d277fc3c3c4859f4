//! What can be required: by name, by policy file, and never so that a failure becomes a pass.

use attest_receipt::receipt::{Decision, Receipt};
use attest_verify::policy::{MAX_BYTES, PolicyError};
use attest_verify::{Options, Outcome, Policy, RequireError, Requirement, verify};
use proptest::prelude::{Strategy, any, prop, prop_assert, proptest};

use crate::common::{
    judge, key, options, other_key, passes, plugin, public, receipt, signed, signed_by, step,
    store, time, trusting, usual,
};

fn requiring(names: &str) -> Options {
    Options {
        require: Requirement::parse(&[names]).unwrap(),
        ..options()
    }
}

fn following(policy: &str) -> Options {
    let policy = format!("version = 1\n{policy}");
    Options {
        policy: Some(Policy::parse(policy.as_bytes()).unwrap()),
        ..options()
    }
}

#[track_caller]
fn refused(outcome: &Outcome, requirement: &str, words: &str) {
    let unmet = outcome
        .policy
        .unmet
        .iter()
        .find(|unmet| unmet.requirement.to_string() == requirement)
        .unwrap_or_else(|| panic!("{:#?}", outcome.policy));
    assert!(unmet.reason.contains(words), "{unmet:?}");
    assert!(!outcome.passed());
}

#[test]
fn names_are_a_closed_list() {
    let all = "signature, timestamp,recompute,linkage,trust,success,plugins,plugin:a-1,success";
    let all = Requirement::parse(&[all, "signature"]).unwrap();
    let names: Vec<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "signature",
            "timestamp",
            "recompute",
            "linkage",
            "trust",
            "success",
            "plugins",
            "plugin:a-1"
        ]
    );
    assert_eq!(
        Requirement::parse(&["nonsense"]).unwrap_err().to_string(),
        "--require: unknown requirement 'nonsense'; expected one of signature, timestamp, recompute, linkage, trust, success, plugins, plugin:NAME"
    );
    for unknown in [
        "",
        "signature,",
        ",",
        "Signature",
        "policy:steps",
        "plugin",
        "a\u{1b}b",
    ] {
        let error = Requirement::parse(&[unknown]).unwrap_err();
        assert!(matches!(error, RequireError::Unknown(_)), "{unknown}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
    let long = format!("plugin:{}", "a".repeat(33));
    for plugin in ["plugin:", "plugin:A", "plugin:a b", "plugin:a/b", &long] {
        let error = Requirement::parse(&[plugin]).unwrap_err();
        assert!(matches!(error, RequireError::PluginName(_)), "{plugin}");
    }
}

#[test]
fn names_that_nothing_here_could_establish_are_refused_and_say_so() {
    for name in [
        "sbom",
        "provenance",
        "revision",
        "identity",
        "capsule",
        "log-inclusion",
        "log-consistency",
    ] {
        let error = Requirement::parse(&["signature", name]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("--require: '{name}' has no check in this program, so it could never be met")
        );
    }
    let error = Requirement::parse(&["artifacts"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--require: 'artifacts' is checked by `attest import`, not here"
    );
}

#[test]
fn a_skipped_check_meets_no_requirement() {
    let whole = signed(receipt());
    passes(&judge(&whole, &trusting(), &requiring("signature,success")));
    for (name, words) in [
        (
            "timestamp",
            "timestamp check not performed: receipt carries no timestamp token",
        ),
        (
            "recompute",
            "recompute check not performed: enable with --recompute",
        ),
        ("linkage", "no chain-linkage check on this surface"),
        (
            "trust",
            "trust material is none; a current trust bundle is required",
        ),
    ] {
        refused(&judge(&whole, &trusting(), &requiring(name)), name, words);
    }
    let blind = Options {
        check_signatures: false,
        ..requiring("signature")
    };
    refused(
        &judge(&whole, &trusting(), &blind),
        "signature",
        "signature check not performed: disabled by --check-signatures false",
    );
    refused(
        &judge(&receipt(), &trusting(), &requiring("signature")),
        "signature",
        "signature check failed: receipt is unsigned",
    );
    for name in ["success", "plugins", "plugin:x", "signature"] {
        let outcome = verify(b"{}", &trusting(), &requiring(name), None).unwrap();
        refused(&outcome, name, "");
    }
}

fn with_plugins(plugins: &[(&str, Decision)]) -> Receipt {
    let mut receipt = receipt();
    receipt.schema_version = Some(3);
    let records = plugins.iter().map(|(name, decision)| {
        let mut record = plugin(name, *decision);
        if matches!(decision, Decision::Error | Decision::Skipped) {
            record.reason = Some("so it was".to_owned());
        }
        record
    });
    receipt.plugins = Some(records.collect());
    signed(receipt)
}

#[test]
fn required_plugins_have_records_that_allow_or_warn() {
    let (allow, warn, deny) = (Decision::Allow, Decision::Warn, Decision::Deny);
    let good = with_plugins(&[("a", allow), ("b", warn)]);
    passes(&judge(
        &good,
        &trusting(),
        &requiring("plugins,plugin:a,plugin:b"),
    ));
    refused(
        &judge(&good, &trusting(), &requiring("plugin:c")),
        "plugin:c",
        "no record of a plugin 'c'",
    );
    for (decision, words) in [
        (deny, "plugin 'b' denied the run"),
        (Decision::Error, "plugin 'b' failed"),
        (Decision::Skipped, "plugin 'b' was never asked"),
    ] {
        let mixed = with_plugins(&[("a", allow), ("b", decision)]);
        refused(
            &judge(&mixed, &trusting(), &requiring("plugins")),
            "plugins",
            words,
        );
        refused(
            &judge(&mixed, &trusting(), &requiring("plugin:b")),
            "plugin:b",
            words,
        );
        passes(&judge(&mixed, &trusting(), &requiring("plugin:a")));
    }
    refused(
        &judge(&signed(receipt()), &trusting(), &requiring("plugins")),
        "plugins",
        "the receipt has no record of a plugin",
    );
}

#[test]
fn g1_records_of_plugins_change_no_base_verdict() {
    let decisions = [
        Decision::Allow,
        Decision::Warn,
        Decision::Deny,
        Decision::Error,
        Decision::Skipped,
    ];
    for decision in decisions {
        let whole = with_plugins(&[("p", decision)]);
        let outcome = usual(&whole);
        passes(&outcome);
        assert_eq!(outcome.plugins[0].decision, decision);
        // Nor does a friendly record save anything.
        let mut broken = whole;
        broken.total_duration_secs += 1;
        assert!(!usual(&broken).passed());
    }
}

#[test]
fn g1_no_plugin_has_to_be_there_and_its_record_is_signed() {
    // The digest names an executable that exists nowhere; nothing looks for it.
    let whole = with_plugins(&[("gone", Decision::Allow)]);
    passes(&usual(&whole));
    let changes: [fn(&mut Receipt); 5] = [
        |it| it.plugins.as_mut().unwrap()[0].decision = Decision::Warn,
        |it| it.plugins.as_mut().unwrap()[0].version.push('1'),
        |it| it.plugins.as_mut().unwrap()[0].digest = format!("blake3:{}", "8".repeat(64)),
        |it| it.plugins.as_mut().unwrap()[0].deterministic = false,
        |it| it.plugins = None,
    ];
    for change in changes {
        let mut edited = whole.clone();
        change(&mut edited);
        assert!(!usual(&edited).passed(), "{edited:?}");
    }
}

#[test]
fn a_policy_names_the_signers_and_what_each_may_vouch_for() {
    let id = public(&key()).key_id();
    let whole = signed(receipt());
    for policy in [
        format!("[[signer]]\nkey = \"{id}\"\n"),
        format!("[[signer]]\nkey = \"{id}\"\nsteps = [\"test\", \"build\", \"deploy\"]\n"),
    ] {
        passes(&judge(&whole, &trusting(), &following(&policy)));
    }
    let build_only = format!("[[signer]]\nkey = \"{id}\"\nsteps = [\"build\"]\n");
    refused(
        &judge(&whole, &trusting(), &following(&build_only)),
        "policy:signer",
        &format!("key {id} may not vouch for step 'test'"),
    );
    let other = public(&other_key()).key_id();
    let other = format!("[[signer]]\nkey = \"{other}\"\n");
    refused(
        &judge(&whole, &trusting(), &following(&other)),
        "policy:signer",
        &format!("key {id} is not among the signers"),
    );
    // A listed key that the trust store does not know stays untrusted.
    let outcome = judge(
        &signed_by(receipt(), &other_key()),
        &trusting(),
        &following(&other),
    );
    refused(&outcome, "policy:signer", "signature check failed");
    refused(
        &judge(&receipt(), &trusting(), &following(&other)),
        "policy:signer",
        "receipt is unsigned",
    );
    let blind = Options {
        check_signatures: false,
        ..following(&other)
    };
    refused(
        &judge(&whole, &trusting(), &blind),
        "policy:signer",
        "signature check not performed",
    );
}

#[test]
fn a30_a_policy_names_the_steps() {
    let whole = signed(receipt());
    passes(&judge(
        &whole,
        &trusting(),
        &following("steps = [\"test\", \"build\"]"),
    ));
    refused(
        &judge(
            &whole,
            &trusting(),
            &following("steps = [\"build\", \"sign\", \"test\"]"),
        ),
        "policy:steps",
        "missing: step 'sign'",
    );
    refused(
        &judge(&whole, &trusting(), &following("steps = [\"build\"]")),
        "policy:steps",
        "not expected: step 'test'",
    );
    let mut many = receipt();
    many.steps = (0..100).map(|n| step(&format!("s{n:03}"))).collect();
    let outcome = judge(
        &signed(many),
        &trusting(),
        &following("steps = [\"build\"]"),
    );
    refused(&outcome, "policy:steps", "92 more");
}

#[test]
fn a29_a_policy_bounds_the_age() {
    let whole = signed(receipt());
    for (clock, passed) in [
        ("2026-11-30T12:00:00Z", true),
        ("2026-11-30T13:30:00Z", true),
        ("2026-11-30T13:30:01Z", false),
        ("2126-11-30T12:00:00Z", false),
        ("2026-11-30T11:00:00Z", true),
        ("2026-11-20T12:00:00Z", false),
    ] {
        let options = Options {
            now: time(clock),
            ..following("max_age = \"90m\"")
        };
        let outcome = judge(&whole, &trusting(), &options);
        assert_eq!(outcome.passed(), passed, "{clock}");
        assert_eq!(outcome.policy.unmet.is_empty(), passed, "{clock}");
    }
}

#[test]
fn a_policy_takes_the_names_of_require_too() {
    let mut failed = receipt();
    failed.steps[0].exit_code = 1;
    let options = following("require = [\"success\", \"plugin:policy\", \"signature\"]");
    let outcome = judge(&signed(failed), &trusting(), &options);
    refused(&outcome, "success", "1 failed step");
    refused(&outcome, "plugin:policy", "no record");
    assert_eq!(outcome.policy.unmet.len(), 2);
    // Together with the command line each is asked for once.
    let options = Options {
        require: Requirement::parse(&["signature"]).unwrap(),
        ..options
    };
    let outcome = judge(&signed(receipt()), &trusting(), &options);
    assert_eq!(outcome.policy.required.len(), 3);
}

#[test]
fn a_file_that_is_no_policy_is_refused_with_its_place() {
    let id = "0".repeat(32);
    let twice = format!("version = 1\n[[signer]]\nkey = \"{id}\"\n[[signer]]\nkey = \"{id}\"\n");
    let beyond =
        format!("version = 1\nsteps = [\"a\"]\n[[signer]]\nkey = \"{id}\"\nsteps = [\"b\"]\n");
    for (text, words) in [
        ("", "line 1: missing field `version`"),
        ("version = 1\n", "no rule"),
        ("version = 1\nrequire = []\n", "no rule"),
        ("version = 2\nsteps = [\"a\"]\n", "version: is 1"),
        ("version = \"1\"\nsteps = [\"a\"]\n", "line 1: "),
        (
            "version = 1\n\nmax_aeg = \"1d\"\n",
            "line 3: unknown field `max_aeg`",
        ),
        (
            "version = 1\nsteps = [\"a\"]\nsteps = [\"b\"]\n",
            "line 3: ",
        ),
        ("version = 1\nsteps = \"a\"\n", "line 2: "),
        ("version = 1\nsteps = []\n", "steps: is empty"),
        ("version = 1\nsteps = [\"a\", \"a\"]\n", "stands twice"),
        ("version = 1\nsteps = [\"\"]\n", "empty"),
        ("version = 1\nmax_age = 30\n", "line 2: "),
        (
            "version = 1\nrequire = [\"nonsense\"]\n",
            "unknown requirement 'nonsense'",
        ),
        ("version = 1\nrequire = [\"sbom\"]\n", "'sbom' has no check"),
        ("version = 1\nsigner = []\n", "signer: is empty"),
        (
            "version = 1\n[[signer]]\nsteps = [\"a\"]\n",
            "missing field `key`",
        ),
        (
            "version = 1\n[[signer]]\nkey = \"AB\"\n",
            "signer.key: a key id is 32",
        ),
        (
            "version = 1\n[[signer]]\nkey = \"0\"\nname = \"x\"\n",
            "line 4: unknown field `name`",
        ),
        (&twice, "stands twice"),
        (&beyond, "'b' is not among `steps`"),
        ("version = 1\n\"\\u001b\" = 1\n", r"\u{1b}"),
    ] {
        let error = Policy::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{text:?}: {error}");
    }
    for age in [
        "",
        "d",
        "0d",
        "1",
        "1w",
        "-1d",
        "1.5h",
        "01d",
        " 1d",
        "1 d",
        "1D",
        "99999999999999999999s",
        "40000d",
        "+1d",
        "１d",
    ] {
        let text = format!("version = 1\nmax_age = \"{age}\"\n");
        let error = Policy::parse(text.as_bytes()).unwrap_err();
        assert!(
            matches!(error, PolicyError::Value { key: "max_age", .. }),
            "{age}"
        );
    }
    let long = vec![b'#'; MAX_BYTES + 1];
    assert_eq!(
        Policy::parse(&long),
        Err(PolicyError::TooLong(MAX_BYTES + 1))
    );
    assert!(
        Policy::parse(b"version = 1\n\xff")
            .unwrap_err()
            .to_string()
            .starts_with("line 2")
    );
}

fn policies() -> impl Strategy<Value = String> {
    let names = prop::sample::subsequence(vec!["build", "test", "sign"], 1..=3);
    let steps = prop::option::of(names.prop_map(|names| format!("steps = {names:?}\n")));
    let requires = prop::sample::subsequence(
        vec![
            "signature",
            "timestamp",
            "recompute",
            "linkage",
            "trust",
            "success",
            "plugins",
        ],
        0..=7,
    );
    let age = prop::option::of((1u32..4000).prop_map(|n| format!("max_age = \"{n}h\"\n")));
    (steps, requires, age).prop_map(|(steps, requires, age)| {
        format!(
            "version = 1\nrequire = {requires:?}\n{}{}",
            steps.unwrap_or_default(),
            age.unwrap_or_default()
        )
    })
}

proptest! {
    /// Whatever is asked for, a policy turns no failing receipt into a passing one.
    #[test]
    fn g1_a_policy_can_only_refuse(text in policies(), broken in any::<bool>(), revoked in any::<bool>()) {
        let Ok(policy) = Policy::parse(text.as_bytes()) else {
            return Ok(());
        };
        let mut whole = signed(receipt());
        if broken {
            whole.total_duration_secs += 1;
        }
        let trust = if revoked { store(&key(), "status = \"revoked\"") } else { trusting() };
        let without = judge(&whole, &trust, &options());
        let with = judge(&whole, &trust, &Options { policy: Some(policy), ..options() });
        prop_assert!(without.passed() || !with.passed());
        prop_assert!(with.passed() == (without.passed() && with.policy.unmet.is_empty()));
        prop_assert!(with.checks == without.checks);
    }
}
