//! The records against the schema that describes them: members, their order, types and words.

use std::path::PathBuf;

use attest_receipt::receipt::Decision;
use attest_verify::{Options, Outcome, Requirement, chain, error_record, verify};
use strict_json::{Json, Layout, Limits, Object, parse_object};

use crate::common::{
    judge, options, plugin, receipt, signed, trusting, usual, vector, vector_trust,
};

fn parsed(bytes: &[u8], layout: Layout) -> Object {
    let limits = Limits {
        bytes: 1 << 20,
        depth: 32,
    };
    parse_object(bytes, &limits, layout).unwrap()
}

fn schema() -> Object {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference/verification-result.schema.json");
    parsed(&std::fs::read(path).unwrap(), Layout::Spaced)
}

fn text(value: &Json) -> &str {
    match value {
        Json::Text(text) => text,
        other => panic!("not a text: {other:?}"),
    }
}

fn list(value: Option<&Json>) -> &[Json] {
    match value {
        Some(Json::Array(items)) => items,
        None => &[],
        Some(other) => panic!("not a list: {other:?}"),
    }
}

fn object(value: &Json) -> &Object {
    match value {
        Json::Object(object) => object,
        other => panic!("not an object: {other:?}"),
    }
}

fn is_type(value: &Json, name: &str) -> bool {
    match value {
        Json::Null => name == "null",
        Json::Bool(_) => name == "boolean",
        Json::Integer(_) | Json::Unsigned(_) => name == "integer",
        Json::Text(_) => name == "string",
        Json::Array(_) => name == "array",
        Json::Object(_) => name == "object",
        Json::Number(_) => false,
    }
}

/// Validates with the keywords that the schema uses, and says where it fails.
fn validate(value: &Json, rule: &Object, root: &Object, at: &str) -> Result<(), String> {
    if let Some(target) = rule.get("$ref") {
        let name = text(target).strip_prefix("#/definitions/").unwrap();
        let definition = object(object(root.get("definitions").unwrap()).get(name).unwrap());
        return validate(value, definition, root, at);
    }
    let any = list(rule.get("oneOf"));
    if !any.is_empty() {
        let fits = any
            .iter()
            .filter(|rule| validate(value, object(rule), root, at).is_ok())
            .count();
        return if fits == 1 {
            Ok(())
        } else {
            Err(format!("{at}: fits {fits} of oneOf"))
        };
    }
    let types = match rule.get("type") {
        Some(Json::Text(name)) => vec![name.as_str()],
        Some(names) => list(Some(names)).iter().map(text).collect(),
        None => vec![],
    };
    if !types.is_empty() && !types.iter().any(|name| is_type(value, name)) {
        return Err(format!("{at}: {value:?} is not {types:?}"));
    }
    if let Some(Json::Array(words)) = rule.get("enum")
        && !words.contains(value)
    {
        return Err(format!("{at}: {value:?} is not among {words:?}"));
    }
    if rule.get("const").is_some_and(|wanted| wanted != value) {
        return Err(format!("{at}: {value:?} is another constant"));
    }
    match value {
        Json::Object(members) => members_fit(members, rule, root, at),
        Json::Array(items) => {
            let Some(rule) = rule.get("items") else {
                return Ok(());
            };
            items.iter().enumerate().try_for_each(|(index, item)| {
                validate(item, object(rule), root, &format!("{at}/{index}"))
            })
        }
        _ => Ok(()),
    }
}

fn members_fit(members: &Object, rule: &Object, root: &Object, at: &str) -> Result<(), String> {
    for name in list(rule.get("required")).iter().map(text) {
        if members.get(name).is_none() {
            return Err(format!("{at}: lacks {name}"));
        }
    }
    let properties = object(rule.get("properties").unwrap());
    let order: Vec<&str> = properties.iter().map(|(name, _)| name).collect();
    let mut last = 0;
    for (name, member) in members.iter() {
        let Some(place) = order.iter().position(|known| *known == name) else {
            return Err(format!("{at}: {name} is not described"));
        };
        if place < last {
            return Err(format!("{at}: {name} comes too late"));
        }
        last = place;
        let rule = object(properties.get(name).unwrap());
        validate(member, rule, root, &format!("{at}/{name}"))?;
    }
    Ok(())
}

#[track_caller]
fn fits(record: &[u8]) {
    let schema = schema();
    let value = Json::Object(parsed(record, Layout::Compact));
    if let Err(error) = validate(&value, &schema, &schema, "") {
        // Of the three kinds of records the right one says more.
        let definitions = object(schema.get("definitions").unwrap());
        for kind in ["receipt", "error"] {
            let rule = object(definitions.get(kind).unwrap());
            eprintln!("{kind}: {:?}", validate(&value, rule, &schema, ""));
        }
        panic!("{error}: {}", String::from_utf8_lossy(record));
    }
}

fn everything() -> Options {
    let names = ["signature,timestamp,recompute,linkage,trust,success,plugins,plugin:policy"];
    let policy = b"version = 1\nsteps = [\"x\"]\nmax_age = \"1s\"\n[[signer]]\nkey = \"00000000000000000000000000000000\"\n";
    Options {
        recompute: true,
        require: Requirement::parse(&names).unwrap(),
        policy: Some(attest_verify::Policy::parse(policy).unwrap()),
        ..options()
    }
}

fn with_plugins() -> Outcome {
    let mut receipt = receipt();
    receipt.schema_version = Some(3);
    receipt.plugins = Some(vec![
        attest_receipt::receipt::PluginRecord {
            reason: Some("it fell over".to_owned()),
            ..plugin("audit", Decision::Error)
        },
        plugin("policy", Decision::Allow),
    ]);
    judge(&signed(receipt), &trusting(), &everything())
}

#[test]
fn every_record_fits_the_schema() {
    for file in [
        "r1_pipeline_signed.yaml",
        "r6_wrapped.yaml",
        "r3_unsigned.yaml",
    ] {
        for options in [options(), everything()] {
            let outcome = verify(&vector(file), &vector_trust("trust"), &options, None).unwrap();
            fits(&outcome.to_json(file));
        }
    }
    fits(&usual(&receipt()).to_json("a \"b\"\n"));
    let outcome = with_plugins();
    assert_eq!(outcome.plugins.len(), 2);
    fits(&outcome.to_json("r"));
    let mut outcome = outcome;
    let events = std::collections::BTreeMap::new();
    outcome.add_linkage(chain::linkage(&receipt(), &events, &[], false));
    fits(&outcome.to_json("a:receipt.yaml"));
    for document in [&b"{}"[..], b"[]", b"schema_version: 99"] {
        let outcome = verify(document, &trusting(), &options(), None).unwrap();
        fits(&outcome.to_json("r"));
    }
    for document in [&b"a: [1"[..], b"a: 1\na: 2", &vec![b'a'; 17 * 1024 * 1024]] {
        let error = verify(document, &trusting(), &options(), None).unwrap_err();
        fits(&error.to_json("r"));
    }
    fits(&error_record("r", "operational", "cannot be read"));
}

#[test]
fn the_members_of_a_record_are_exactly_these_in_this_order() {
    let record = parsed(&with_plugins().to_json("r"), Layout::Compact);
    let keys: Vec<&str> = record.iter().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        [
            "receipt",
            "verdict",
            "checks",
            "signed_by",
            "warnings",
            "plugins",
            "trust_material",
            "execution",
            "policy"
        ]
    );
    let record = parsed(&usual(&signed(receipt())).to_json("r"), Layout::Compact);
    assert!(record.get("plugins").is_none());
    let names: Vec<&str> = list(record.get("checks"))
        .iter()
        .map(|check| text(object(check).get("name").unwrap()))
        .collect();
    assert_eq!(
        names,
        [
            "schema",
            "consistency",
            "signature",
            "timestamp",
            "recompute"
        ]
    );
}

#[test]
fn a_record_that_differs_from_the_schema_is_found_out() {
    let whole = String::from_utf8(usual(&signed(receipt())).to_json("r")).unwrap();
    let schema = schema();
    for (from, to) in [
        ("\"verdict\":\"pass\"", "\"verdict\":\"good\""),
        ("\"warnings\":[]", "\"warnings\":[],\"more\":1"),
        ("\"warnings\":[],", ""),
        ("\"warnings\":[]", "\"warnings\":[1]"),
        (
            "\"outcome\":\"success\",\"failed_steps\":0",
            "\"failed_steps\":0,\"outcome\":\"success\"",
        ),
        ("\"state\":\"none\"", "\"state\":\"current\""),
    ] {
        assert!(whole.contains(from), "{from}");
        let value = Json::Object(parsed(whole.replace(from, to).as_bytes(), Layout::Compact));
        assert!(validate(&value, &schema, &schema, "").is_err(), "{to}");
    }
}
