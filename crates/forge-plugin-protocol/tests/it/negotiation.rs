//! What a host may offer and what a plugin may select.

use forge_plugin_protocol::{
    Capability, HostEvent, HostSession, InvalidCapabilities, Operation, Violation,
};

use crate::support::{ALL, Driver, ID, frame, initialized};

use Capability::{AgentReport, Cancel, CommitSubject, Progress, Text, WorkspaceEdit};

#[test]
fn an_offer_is_duplicate_free_and_holds_the_operation() {
    let new = |offer: &[Capability]| {
        HostSession::new(ID.parse().unwrap(), Operation::text("x").unwrap(), offer).err()
    };
    assert_eq!(new(&[Text]), None);
    assert_eq!(new(ALL), None);
    assert_eq!(
        new(&[Text, Text]),
        Some(InvalidCapabilities::Duplicate(Text))
    );
    assert_eq!(
        new(&[WorkspaceEdit]),
        Some(InvalidCapabilities::OperationMissing(Text))
    );
    assert_eq!(new(&[Progress]), Some(InvalidCapabilities::NoOperation));
    assert_eq!(new(&[]), Some(InvalidCapabilities::NoOperation));
}

#[test]
fn a_selection_is_a_subset_of_the_offer_in_any_order() {
    for selection in [
        &[Text][..],
        &[Cancel, Text],
        &[AgentReport, Text, WorkspaceEdit, Progress],
        ALL,
    ] {
        let driver = Driver::text().executing(selection);
        let selected = driver.events.iter().find_map(|event| match event {
            HostEvent::Initialized(selected) => Some(selected.iter().collect::<Vec<_>>()),
            _ => None,
        });
        assert_eq!(selected.as_deref(), Some(selection));
    }
}

#[test]
fn a_selection_outside_of_the_offer_fails() {
    let mut driver = Driver::new(Operation::text("x").unwrap(), &[Text, Cancel]);
    driver.write(initialized(&[Text, Progress]));
    let error = InvalidCapabilities::NotOffered(Progress);
    assert_eq!(
        driver.violation(),
        Violation::Capabilities {
            kind: "initialized",
            error
        }
    );
}

#[test]
fn a_selection_holds_the_operation() {
    let mut driver = Driver::workspace();
    driver.write(initialized(&[Text, CommitSubject]));
    let error = InvalidCapabilities::OperationMissing(WorkspaceEdit);
    assert_eq!(
        driver.violation(),
        Violation::Capabilities {
            kind: "initialized",
            error
        }
    );
    let mut driver = Driver::workspace();
    driver.write(initialized(&[CommitSubject]));
    let error = InvalidCapabilities::NoOperation;
    assert_eq!(
        driver.violation(),
        Violation::Capabilities {
            kind: "initialized",
            error
        }
    );
}

#[test]
fn a_selection_has_no_duplicates_and_no_unknown_names() {
    let mut driver = Driver::text();
    driver.write(initialized(&[Text, Text]));
    let error = InvalidCapabilities::Duplicate(Text);
    assert_eq!(
        driver.violation(),
        Violation::Capabilities {
            kind: "initialized",
            error
        }
    );
    for list in [
        r#"["text","unknown"]"#,
        r#"["Text"]"#,
        "[1]",
        "[null]",
        "null",
        "\"text\"",
        "{}",
    ] {
        let mut driver = Driver::text();
        driver.write(frame("initialized", &format!(",\"capabilities\":{list}")));
        let violation = driver.violation();
        assert!(
            matches!(
                violation,
                Violation::Field {
                    kind: "initialized",
                    ..
                }
            ),
            "{list}: {violation}"
        );
    }
    let mut driver = Driver::text();
    driver.write(frame("initialized", ",\"capabilities\":[]"));
    let error = InvalidCapabilities::NoOperation;
    assert_eq!(
        driver.violation(),
        Violation::Capabilities {
            kind: "initialized",
            error
        }
    );
}

#[test]
fn execute_follows_initialized_and_is_sent_once() {
    let mut driver = Driver::text();
    assert_eq!(driver.sent.len(), 1);
    driver.write(initialized(&[Text]));
    assert_eq!(driver.sent.len(), 2);
    driver.write(frame("result", r#","output":"x""#));
    assert_eq!(driver.sent.len(), 2);
    let mut driver = Driver::text().executing(&[Text]);
    driver.write(initialized(&[Text]));
    assert!(matches!(
        driver.violation(),
        Violation::UnexpectedType { .. }
    ));
}

#[test]
fn failure_instead_of_initialized_is_a_violation() {
    let mut driver = Driver::text();
    driver.write(frame("failure", r#","category":"incompatible""#));
    assert!(matches!(
        driver.violation(),
        Violation::UnexpectedType { .. }
    ));
}
