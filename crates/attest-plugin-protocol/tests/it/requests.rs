//! Requests: their order, their ids, their bytes.

use std::collections::BTreeMap;

use attest_plugin_protocol::{
    AfterStep, BeforeStep, Decision, HostEvent, MESSAGE_BYTES, Payload, PipelinePayload,
    RequestError, StepOutput, StepPlan,
};
use strict_json::{Layout, Limits, parse_object};

use crate::support::{Driver, NANO, TIMEOUT, after, allow, before, pipeline};

#[test]
fn ids_rise_by_one_over_the_whole_invocation_shutdown_included() {
    let mut driver = Driver::ready();
    let receipt = Payload::Receipt(strict_json::Object::default());
    for (payload, id) in [
        (pipeline(), 2),
        (before(), 3),
        (after(), 4),
        (receipt, 5),
        (before(), 6),
    ] {
        driver.ask(&payload);
        driver.write(allow(id));
        assert_eq!(driver.verdict().decision, Decision::Allow);
    }
    driver.shutdown();
    let ids: Vec<u64> = driver
        .sent
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_u64())
        .map(Option::unwrap)
        .collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(
        driver.sent.last().unwrap(),
        "{\"v\":1,\"id\":7,\"kind\":\"shutdown\"}\n"
    );
}

#[test]
fn requests_are_strictly_sequential() {
    let mut driver = Driver::new();
    let not_idle = Err(RequestError::NotIdle);
    assert_eq!(driver.session.request(driver.now, &before()), not_idle);
    driver.write(crate::support::hello_ok());
    driver.ask(&before());
    assert_eq!(driver.session.request(driver.now, &before()), not_idle);
    driver.write(allow(2));
    driver.shutdown();
    assert_eq!(driver.session.request(driver.now, &before()), not_idle);
    driver.exited(0);
    assert_eq!(driver.session.request(driver.now, &before()), not_idle);
    assert_eq!(driver.sent.len(), 3);
}

#[test]
fn an_id_that_is_not_exactly_that_of_the_request_is_a_violation() {
    for id in [
        "1",
        "3",
        "0",
        "-2",
        "2.0",
        "2e0",
        "20",
        "\"2\"",
        "null",
        "true",
        "[2]",
        "18446744073709551618",
    ] {
        let mut driver = Driver::asked();
        driver.write(allow(2).replace("\"id\":2", &format!("\"id\":{id}")));
        let reason = driver.broken();
        assert!(reason.contains("`id`"), "{id}: {reason}");
    }
    let mut driver = Driver::asked();
    driver.write(allow(2).replace("\"id\":2,", ""));
    assert_eq!(
        driver.broken(),
        "protocol violation: invalid message: field `id` is missing"
    );
}

#[test]
fn any_byte_while_no_request_is_open_is_a_violation() {
    for bytes in ["\n", " ", "{", "x\n", &allow(2), &allow(1), "\u{0}"] {
        let mut driver = Driver::ready();
        driver.write(bytes);
        assert_eq!(
            driver.broken(),
            "protocol violation: wrote to stdout while no request was open"
        );
        assert_eq!(
            driver.session.request(driver.now, &before()),
            Err(RequestError::NotIdle)
        );
    }
    // Behind an answer it makes no difference whether it comes with it or later.
    let mut driver = Driver::asked();
    driver.write(allow(2) + &allow(3));
    match driver.acts().as_slice() {
        [HostEvent::Verdict(_), HostEvent::Failed(_)] => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_has_the_time_out_from_its_request_on() {
    let mut driver = Driver::ready();
    driver.wait(TIMEOUT * 5);
    driver.ask(&before());
    assert_eq!(driver.session.poll_timeout(), Some(driver.now + TIMEOUT));
    driver.wait(TIMEOUT - NANO);
    driver.write(allow(2));
    assert_eq!(driver.verdict().decision, Decision::Allow);
    assert_eq!(driver.session.poll_timeout(), None);

    driver.ask(&after());
    driver.wait(TIMEOUT);
    assert_eq!(driver.broken(), "no answer to step.post within 30 s");
    driver.write(allow(3));
    assert_eq!(driver.acts(), [], "too late");
    assert_eq!(driver.session.poll_timeout(), None);
}

#[test]
fn half_an_answer_is_none() {
    let mut driver = Driver::asked();
    let line = allow(2);
    driver.write(line.trim_end());
    driver.wait(TIMEOUT - NANO);
    assert_eq!(driver.acts(), []);
    driver.wait(NANO);
    assert_eq!(driver.broken(), "no answer to step.pre within 30 s");
}

#[test]
fn a_request_of_one_mebibyte_is_sent_and_one_byte_more_is_not() {
    let step = |length| {
        Payload::BeforeStep(BeforeStep {
            run: "x".repeat(length),
            ..BeforeStep::default()
        })
    };
    let mut driver = Driver::ready();
    driver.ask(&step(0));
    let empty = driver.sent.last().unwrap().len() - 1;
    driver.write(allow(2));
    let room = MESSAGE_BYTES - empty;
    assert_eq!(
        driver.session.request(driver.now, &step(room + 1)),
        Err(RequestError::TooLarge)
    );
    driver.pump();
    assert_eq!(driver.sent.len(), 2, "nothing is sent, also no part of it");
    driver.ask(&step(room));
    assert_eq!(driver.sent.last().unwrap().len(), MESSAGE_BYTES + 1);
    driver.write(allow(3));
    assert_eq!(
        driver.acts().len(),
        2,
        "the id of what was not sent is not used up"
    );
}

#[test]
fn the_pipeline_is_written_as_the_table_says() {
    let mut driver = Driver::ready();
    driver.ask(&Payload::Pipeline(PipelinePayload {
        path: Some("attest.yaml".to_owned()),
        pipeline_hash: "aa".to_owned(),
        name: Some("build".to_owned()),
        version: Some("1".to_owned()),
        steps: vec![
            StepPlan {
                name: "compile".to_owned(),
                run: "cc -o a a.c".to_owned(),
                needs: vec!["fetch".to_owned()],
                inputs: vec!["a.c".to_owned()],
                outputs: vec!["a".to_owned()],
                env: BTreeMap::from([("CC".to_owned(), "cc".to_owned())]),
                working_dir: Some("src".to_owned()),
                capsule: Some("box.toml".to_owned()),
                cache: true,
                timeout_secs: Some(60),
            },
            StepPlan::default(),
        ],
    }));
    let expected = concat!(
        r#"{"v":1,"id":2,"kind":"pipeline.validate","payload":{"pipeline":{"path":"attest.yaml","#,
        r#""pipeline_hash":"aa","name":"build","version":"1","steps":[{"name":"compile","#,
        r#""run":"cc -o a a.c","needs":["fetch"],"inputs":["a.c"],"outputs":["a"],"#,
        r#""env":{"CC":"cc"},"working_dir":"src","capsule":"box.toml","cache":true,"#,
        r#""timeout_secs":60},{"name":"","run":"","needs":[],"inputs":[],"outputs":[],"env":{},"#,
        r#""cache":false}]}}}"#,
        "\n"
    );
    assert_eq!(driver.sent.last().unwrap(), expected);
}

#[test]
fn steps_are_written_as_the_table_says_and_absent_fields_are_omitted() {
    let mut driver = Driver::ready();
    driver.ask(&before());
    driver.write(allow(2));
    driver.ask(&after());
    driver.write(allow(3));
    driver.ask(&Payload::AfterStep(AfterStep {
        exit_code: -1,
        capsule_hash: Some("cc".to_owned()),
        output: Some(StepOutput::tail("out", "")),
        ..AfterStep::default()
    }));
    let expected = [
        concat!(
            r#"{"v":1,"id":2,"kind":"step.pre","payload":{"step":{"name":"","run":"","needs":[],"#,
            r#""inputs":[],"outputs":[],"input_hash":"","command_hash":"","cache_hit":false}}}"#,
            "\n"
        ),
        concat!(
            r#"{"v":1,"id":3,"kind":"step.post","payload":{"step":{"name":"","input_hash":"","#,
            r#""output_hash":"","duration_secs":0,"exit_code":0,"cache_hit":false}}}"#,
            "\n"
        ),
        concat!(
            r#"{"v":1,"id":4,"kind":"step.post","payload":{"step":{"name":"","input_hash":"","#,
            r#""output_hash":"","duration_secs":0,"exit_code":-1,"cache_hit":false,"#,
            r#""capsule_hash":"cc","stdout":"out","stderr":"","stdout_truncated":false,"#,
            r#""stderr_truncated":false}}}"#,
            "\n"
        ),
    ];
    assert_eq!(driver.sent.get(1..).unwrap(), expected);
}

#[test]
fn the_receipt_is_written_as_it_is_given() {
    let limits = Limits {
        bytes: 1_000,
        depth: 9,
    };
    let text = br#"{"schema_version":3,"signature":null,"steps":[{"n":1.5}]}"#;
    let receipt = parse_object(text, &limits, Layout::Compact).unwrap();
    let mut driver = Driver::ready();
    driver.ask(&Payload::Receipt(receipt));
    let expected = concat!(
        r#"{"v":1,"id":2,"kind":"receipt.finalize","payload":{"receipt":"#,
        r#"{"schema_version":3,"signature":null,"steps":[{"n":1.5}]}}}"#,
        "\n"
    );
    assert_eq!(driver.sent.last().unwrap(), expected);
}

#[test]
fn output_is_the_end_of_a_stream_cut_at_a_character() {
    let limit = attest_plugin_protocol::OUTPUT_BYTES;
    let exact = "x".repeat(limit);
    assert_eq!(
        attest_plugin_protocol::tail(&exact),
        (exact.as_str(), false)
    );
    let long = format!("{exact}y");
    let (kept, cut) = attest_plugin_protocol::tail(&long);
    assert!(cut && kept.len() == limit && kept.ends_with('y'));
    let wide = "€".repeat(limit);
    let (kept, cut) = attest_plugin_protocol::tail(&wide);
    assert!(cut && kept.len() == limit - limit % 3);
    assert_eq!(attest_plugin_protocol::tail(""), ("", false));
    let output = StepOutput::tail(&long, &exact);
    assert!(output.stdout_truncated && !output.stderr_truncated);
}
