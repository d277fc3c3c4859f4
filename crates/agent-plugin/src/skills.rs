//! `skills/*/SKILL.md`: each skill for itself.

use std::collections::BTreeSet;

use strict_json::{Json, Object};
use strict_yaml::YamlError;

use crate::diagnostic::{Report, member, shown};
use crate::load::has_below;
use crate::{Code, Files, Options, Skill, frontmatter};

/// The directory of skills.
const SKILLS: &str = "skills";

/// The document of a skill, in exactly this case.
const DOCUMENT: &str = "SKILL.md";

const NAME_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1_024;
const COMPATIBILITY_CHARS: usize = 500;

/// Finds the skills; what is wrong with the others is in the report.
pub(crate) fn read(files: &Files, options: &Options, report: &mut Report) -> Vec<Skill> {
    if files.contains_key(SKILLS) {
        let message = "`skills` is a file, not a directory";
        report.error(Code::SkillsWrongKind, SKILLS, message);
        return Vec::new();
    }
    let found = files.range(format!("{SKILLS}/")..);
    found
        .take_while(|(path, _)| path.starts_with("skills/"))
        .filter_map(|(path, bytes)| Some((path, directory(path)?, bytes)))
        .filter(|(path, _, _)| !has_below(files, path))
        .filter_map(|(path, directory, bytes)| {
            let mut judge = Judge {
                path,
                lenient: options.lenient,
                report,
            };
            let mut skill = judge.skill(directory, bytes)?;
            skill.files = resources(files, &skill);
            Some(skill)
        })
        .collect()
}

/// Returns the directory whose document this is.
fn directory(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(SKILLS), Some(directory), Some(DOCUMENT), None) => Some(directory),
        _ => None,
    }
}

fn resources(files: &Files, skill: &Skill) -> BTreeSet<String> {
    let prefix = format!("{}/", skill.root);
    files
        .range(prefix.clone()..)
        .map(|(path, _)| path)
        .take_while(|path| path.starts_with(&prefix))
        .filter(|path| **path != skill.path)
        .cloned()
        .collect()
}

/// One document under judgement.
struct Judge<'a> {
    path: &'a str,
    lenient: bool,
    report: &'a mut Report,
}

impl Judge<'_> {
    fn skill(&mut self, directory: &str, bytes: &[u8]) -> Option<Skill> {
        let content = match std::str::from_utf8(bytes) {
            Ok(content) => content,
            Err(error) => {
                let message = format!("invalid UTF-8 at byte {}", error.valid_up_to());
                self.report.error(Code::SkillNotUtf8, self.path, message);
                return None;
            }
        };
        let parts = frontmatter::split(content).or_else(|| self.no_frontmatter())?;
        let metadata = self.metadata(parts.head)?;
        let before = self.report.errors();
        let name = self.name(&metadata, directory);
        let description = self.description(&metadata);
        self.optional_fields(&metadata);
        if self.report.errors() != before {
            return None;
        }
        Some(Skill {
            path: self.path.to_owned(),
            root: format!("{SKILLS}/{directory}"),
            name: name?,
            description: description?,
            content: content.to_owned(),
            body: parts.body.to_owned(),
            metadata,
            files: BTreeSet::new(),
        })
    }

    fn no_frontmatter<T>(&mut self) -> Option<T> {
        let message = "the document must start with a mapping between two lines of `---`";
        self.report
            .error(Code::SkillFrontmatterMissing, self.path, message);
        None
    }

    fn metadata(&mut self, head: &str) -> Option<Object> {
        match frontmatter::read(head) {
            Ok(Json::Object(metadata)) => Some(metadata),
            Ok(_) => self.no_frontmatter(),
            Err(error) => {
                let (code, message) = match error {
                    // The line of the file: the delimiter is the first one.
                    YamlError::Refused { line, reason } => {
                        let message = format!("frontmatter: line {}: {reason}", line + 1);
                        (Code::SkillYamlInvalid, message)
                    }
                    error => (Code::LimitExceeded, format!("frontmatter: {error}")),
                };
                self.report.error(code, self.path, message);
                None
            }
        }
    }

    fn text<'a>(&mut self, metadata: &'a Object, key: &str, code: Code) -> Option<&'a str> {
        let message = match metadata.get(key) {
            Some(Json::Text(text)) => return Some(text),
            Some(other) => format!("must be a string, not {}", other.kind()),
            None => format!("the required field `{key}` is missing"),
        };
        self.report.error(code, &member(self.path, key), message);
        None
    }

    fn name(&mut self, metadata: &Object, directory: &str) -> Option<String> {
        let name = self.text(metadata, "name", Code::SkillNameInvalid)?;
        let path = member(self.path, "name");
        if !is_name(name) {
            let message = format!(
                "`{}` is no name: 1 to {NAME_CHARS} of a-z, 0-9 and `-`, no `-` at an end and no `--`",
                shown(name)
            );
            self.report.error(Code::SkillNameInvalid, &path, message);
            return None;
        }
        if name != directory {
            let message = format!(
                "`{name}` is not its directory's name, `{}`",
                shown(directory)
            );
            self.tolerable(Code::SkillNameMismatch, &path, message);
        }
        Some(name.to_owned())
    }

    /// Reports what a lenient host loads nevertheless.
    fn tolerable(&mut self, code: Code, path: &str, message: String) {
        if self.lenient {
            self.report.warning(code, path, message);
        } else {
            self.report.error(code, path, message);
        }
    }

    fn description(&mut self, metadata: &Object) -> Option<String> {
        let code = Code::SkillDescriptionInvalid;
        let text = self.text(metadata, "description", code)?;
        let path = member(self.path, "description");
        if text.trim().is_empty() {
            self.report.error(code, &path, "must not be blank");
        } else if text.chars().count() > DESCRIPTION_CHARS {
            let message = format!("more than {DESCRIPTION_CHARS} characters");
            self.report.error(code, &path, message);
        }
        Some(text.to_owned())
    }

    fn optional_fields(&mut self, metadata: &Object) {
        for (key, value) in metadata.iter() {
            let path = member(self.path, key);
            match key {
                "name" | "description" => {}
                "license" | "allowed-tools" => {
                    self.must_be_text(value, &path);
                }
                "compatibility" => self.compatibility(value, &path),
                "metadata" => self.pairs(value, &path),
                key => {
                    let message = format!("`{}` has no meaning here and is kept", shown(key));
                    self.report.warning(Code::SkillUnknownField, &path, message);
                }
            }
        }
    }

    fn must_be_text<'a>(&mut self, value: &'a Json, path: &str) -> Option<&'a str> {
        if let Json::Text(text) = value {
            return Some(text);
        }
        let message = format!("must be a string, not {}", value.kind());
        self.report.error(Code::SkillFieldInvalid, path, message);
        None
    }

    fn compatibility(&mut self, value: &Json, path: &str) {
        let chars = self
            .must_be_text(value, path)
            .map(|text| text.chars().count());
        if chars.is_some_and(|chars| !(1..=COMPATIBILITY_CHARS).contains(&chars)) {
            let message = format!("must have 1 to {COMPATIBILITY_CHARS} characters");
            self.report.error(Code::SkillFieldInvalid, path, message);
        }
    }

    fn pairs(&mut self, value: &Json, path: &str) {
        let Json::Object(pairs) = value else {
            let message = format!("must be a mapping, not {}", value.kind());
            self.tolerable(Code::SkillFieldInvalid, path, message);
            return;
        };
        for (key, value) in pairs.iter() {
            if !matches!(value, Json::Text(_)) {
                let message = format!("must be a string, not {}", value.kind());
                self.tolerable(Code::SkillFieldInvalid, &member(path, key), message);
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= NAME_CHARS
        && name
            .split('-')
            .all(|word| !word.is_empty() && word.bytes().all(is_plain))
}
