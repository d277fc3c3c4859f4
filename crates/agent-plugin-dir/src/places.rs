//! What is said of something that a load leaves out, by the place where it lies.

use agent_plugin::{Code, Diagnostic, MANIFEST, MCP};

const SKILLS: &str = "skills";
const DOCUMENT: &str = "SKILL.md";

/// A link out of the package, at the narrowest boundary that holds it.
pub(crate) fn escape(path: &str, to_directory: bool) -> Diagnostic {
    let code = match path.split('/').collect::<Vec<_>>().as_slice() {
        [MANIFEST] => Code::ManifestEscapesRoot,
        [MCP] => Code::McpEscapesRoot,
        [SKILLS] => Code::SkillsEscapesRoot,
        [SKILLS, _, DOCUMENT] => Code::SkillEscapesRoot,
        [SKILLS, _] if to_directory => Code::SkillEscapesRoot,
        _ => Code::ResourceEscapesRoot,
    };
    Diagnostic::error(code, path, "a link that leads out of the package")
}

/// A FIFO, socket or device, or a link to one.
pub(crate) fn special(path: &str, kind: &str) -> Diagnostic {
    let (code, wanted) = match path {
        MANIFEST => (Code::ManifestMissing, "a file"),
        MCP => (Code::McpWrongKind, "a file"),
        SKILLS => (Code::SkillsWrongKind, "a directory"),
        _ => (Code::SpecialFile, "a file or directory"),
    };
    Diagnostic::error(code, path, format!("is {kind}, not {wanted}"))
}

/// A link to nothing.
pub(crate) fn dangling(path: &str) -> Diagnostic {
    Diagnostic::error(Code::LinkDangling, path, "a link that leads nowhere")
}

/// A link to a directory that it lies in, or to itself.
pub(crate) fn cycle(path: &str) -> Diagnostic {
    let message = "leads back to itself, or through too many links";
    Diagnostic::error(Code::LinkCycle, path, message)
}
