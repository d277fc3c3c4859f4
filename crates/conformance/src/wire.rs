//! The bytes that a scenario writes: frames as lists of raw members, so that a
//! scenario can break one thing and leave the rest as it was.
//!
//! Nothing here goes through the protocol crate: the tool judges plugins that
//! are built on it, and a shared mistake would not show.

use crate::Operation;

/// The session id of every rejection scenario.
pub(crate) const SESSION: &str = "0123456789abcdef0123456789abcdef";

/// The bytes before the LF that protocol v1 allows in a frame.
pub(crate) const FRAME_BYTES: usize = 1_048_576;

/// The bytes that an input or an instruction may have.
pub(crate) const TEXT_BYTES: usize = 65_536;

/// Every capability that protocol v1 has.
pub(crate) const CAPABILITIES: [&str; 6] = [
    "text",
    "workspace_edit",
    "progress",
    "cancel",
    "commit_subject",
    "agent_report",
];

const LIMITS: &str = concat!(
    r#"{"frame_bytes":1048576,"progress_frames":128,"text_bytes":65536,"#,
    r#""progress_text_bytes":1024,"commit_subject_bytes":256}"#
);

/// A frame as the raw text of its members, in the order in which they are written.
#[derive(Clone, Debug)]
pub(crate) struct Frame(Vec<(&'static str, String)>);

impl Frame {
    /// Makes the valid `initialize` that offers the operation's capability and nothing else.
    pub(crate) fn initialize(operation: Operation) -> Self {
        Self::of("initialize")
            .with(
                "capabilities",
                &format!("[{}]", quoted(operation.capability())),
            )
            .with("limits", LIMITS)
    }

    /// Makes the plugin's only right answer to that `initialize`.
    pub(crate) fn initialized(operation: Operation) -> Self {
        Self::of("initialized").with(
            "capabilities",
            &format!("[{}]", quoted(operation.capability())),
        )
    }

    /// Makes a valid `execute` of the operation.
    pub(crate) fn execute(operation: Operation) -> Self {
        let frame = Self::of("execute").with("operation", &quoted(operation.capability()));
        match operation {
            Operation::Text => frame.with("input", r#""conformance""#),
            Operation::WorkspaceEdit => frame
                .with("workspace", r#""/work""#)
                .with("instruction", r#""edit""#)
                .with("timeout_ms", "1000"),
        }
    }

    /// Makes a `cancel`.
    pub(crate) fn cancel() -> Self {
        Self::of("cancel")
    }

    fn of(kind: &str) -> Self {
        Self(Vec::new())
            .with("version", r#""v1""#)
            .with("id", &quoted(SESSION))
            .with("type", &quoted(kind))
    }

    /// Appends a member, also one that is there already.
    pub(crate) fn with(mut self, name: &'static str, raw: &str) -> Self {
        self.0.push((name, raw.to_owned()));
        self
    }

    /// Leaves a member out.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(own, _)| *own != name);
        self
    }

    /// Gives a member another key, which stands in the quotes as it is.
    pub(crate) fn rename(mut self, from: &str, to: &'static str) -> Self {
        for (own, _) in &mut self.0 {
            if *own == from {
                *own = to;
            }
        }
        self
    }

    /// Writes the members from the last to the first.
    pub(crate) fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }

    /// Appends a second copy of a member.
    pub(crate) fn twice(mut self, name: &'static str) -> Self {
        let copy = self.0.iter().find(|(own, _)| *own == name).cloned();
        self.0.extend(copy);
        self
    }

    /// Gives a member another value.
    pub(crate) fn set(mut self, name: &'static str, raw: &str) -> Self {
        for (own, value) in &mut self.0 {
            if *own == name {
                raw.clone_into(value);
            }
        }
        self
    }

    /// Replaces a piece of a member's value.
    pub(crate) fn edit(mut self, name: &'static str, from: &str, to: &str) -> Self {
        for (own, value) in &mut self.0 {
            if *own == name {
                *value = value.replace(from, to);
            }
        }
        self
    }

    /// Writes the frame without its LF.
    pub(crate) fn bare(&self) -> Vec<u8> {
        let members: Vec<String> = self
            .0
            .iter()
            .map(|(name, raw)| format!("{}:{raw}", quoted(name)))
            .collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    }

    /// Writes the frame with its LF.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut bytes = self.bare();
        bytes.push(b'\n');
        bytes
    }
}

/// Writes a list of capabilities.
pub(crate) fn list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", names.join(","))
}

/// Puts a text of harmless ASCII into quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_valid_frames_are_those_of_the_seed() {
        assert_eq!(
            String::from_utf8(Frame::initialize(Operation::Text).line()).unwrap(),
            concat!(
                r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"initialize","capabilities":["text"],"#,
                r#""limits":{"frame_bytes":1048576,"progress_frames":128,"text_bytes":65536,"#,
                r#""progress_text_bytes":1024,"commit_subject_bytes":256}}"#,
                "\n"
            )
        );
        assert_eq!(
            String::from_utf8(Frame::initialized(Operation::Text).line()).unwrap(),
            concat!(
                r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"initialized","capabilities":["text"]}"#,
                "\n"
            )
        );
        assert_eq!(
            String::from_utf8(Frame::execute(Operation::WorkspaceEdit).bare()).unwrap(),
            concat!(
                r#"{"version":"v1","id":"0123456789abcdef0123456789abcdef","type":"execute","operation":"workspace_edit","#,
                r#""workspace":"/work","instruction":"edit","timeout_ms":1000}"#
            )
        );
    }

    #[test]
    fn an_edit_touches_one_member_only() {
        let frame = Frame::execute(Operation::Text)
            .set("input", "1")
            .twice("type")
            .edit("id", "0123", "ffff");
        assert_eq!(
            String::from_utf8(frame.bare()).unwrap(),
            concat!(
                r#"{"version":"v1","id":"ffff456789abcdefffff456789abcdef","type":"execute","operation":"text","#,
                r#""input":1,"type":"execute"}"#
            )
        );
    }
}
