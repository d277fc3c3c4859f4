//! What is said of something that a load leaves out, by the place where it lies.

use agent_plugin::{Code, Diagnostic, MANIFEST, MCP};

const SKILLS: &str = "skills";
const DOCUMENT: &str = "SKILL.md";

/// What a place is to a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Manifest,
    Mcp,
    Skills,
    /// A directory of `skills`, which is a skill if it has a document.
    Skill,
    Document,
    Resource,
}

impl Place {
    fn of(path: &str) -> Self {
        let mut parts = path.split('/');
        match [parts.next(), parts.next(), parts.next(), parts.next()] {
            [Some(MANIFEST), None, ..] => Self::Manifest,
            [Some(MCP), None, ..] => Self::Mcp,
            [Some(SKILLS), None, ..] => Self::Skills,
            [Some(SKILLS), Some(_), None, _] => Self::Skill,
            [Some(SKILLS), Some(_), Some(DOCUMENT), None] => Self::Document,
            _ => Self::Resource,
        }
    }

    /// A resource that is missing disables nothing, and a directory of `skills` need not be a skill.
    fn diagnostic(self, code: Code, path: &str, message: impl Into<String>) -> Diagnostic {
        match self {
            Self::Manifest | Self::Mcp | Self::Skills | Self::Document => {
                Diagnostic::error(code, path, message)
            }
            Self::Skill | Self::Resource => Diagnostic::warning(code, path, message),
        }
    }
}

/// A link out of the package, at the narrowest boundary that holds it.
pub(crate) fn escape(path: &str, to_directory: bool) -> Diagnostic {
    let message = "a link that leads out of the package";
    let code = match Place::of(path) {
        Place::Manifest => Code::ManifestEscapesRoot,
        Place::Mcp => Code::McpEscapesRoot,
        Place::Skills => Code::SkillsEscapesRoot,
        Place::Document => Code::SkillEscapesRoot,
        Place::Skill if to_directory => Code::SkillEscapesRoot,
        Place::Skill | Place::Resource => {
            return Diagnostic::warning(Code::ResourceEscapesRoot, path, message);
        }
    };
    Diagnostic::error(code, path, message)
}

/// A FIFO, socket or device, or a link to one.
pub(crate) fn special(path: &str, kind: &str) -> Diagnostic {
    let place = Place::of(path);
    let (code, wanted) = match place {
        Place::Manifest => (Code::ManifestMissing, "a file"),
        Place::Mcp => (Code::McpWrongKind, "a file"),
        Place::Skills => (Code::SkillsWrongKind, "a directory"),
        Place::Document => (Code::SpecialFile, "a file"),
        Place::Skill | Place::Resource => (Code::SpecialFile, "a file or directory"),
    };
    place.diagnostic(code, path, format!("is {kind}, not {wanted}"))
}

/// A directory without any file where the servers should be.
pub(crate) fn empty_mcp() -> Diagnostic {
    Diagnostic::error(Code::McpWrongKind, MCP, "is a directory, not a file")
}

/// A link to nothing.
pub(crate) fn dangling(path: &str) -> Diagnostic {
    let message = "a link that leads nowhere";
    Place::of(path).diagnostic(Code::LinkDangling, path, message)
}

/// A link to a directory that it lies in, or to itself.
pub(crate) fn cycle(path: &str) -> Diagnostic {
    let message = "leads back to itself, or through too many links";
    Place::of(path).diagnostic(Code::LinkCycle, path, message)
}
