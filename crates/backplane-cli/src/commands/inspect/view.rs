//! A package for people, in 80 columns.

use agent_plugin::{Diagnostic, McpServer, Package, Severity, Skill, Transport};
use cli_shell::{Ui, layout, visible};
use plugin_archive::Modes;
use strict_json::{Json, Object};

use crate::package::{Loaded, is_executable};
use crate::words;

/// Longest description that is shown whole, in characters.
const LONGEST: usize = 400;

pub(super) fn text(loaded: &Loaded, digest: Option<&str>, ui: &Ui) -> String {
    let mut out = String::new();
    let found = match &loaded.result {
        Ok(package) => {
            head(&mut out, package, &loaded.modes, digest);
            skills(&mut out, &package.skills, ui);
            servers(&mut out, package, ui);
            executables(&mut out, &loaded.modes, ui);
            &package.diagnostics
        }
        Err(found) => {
            out.push_str(&ui.bad("the package is rejected"));
            out.push('\n');
            found
        }
    };
    diagnostics(&mut out, found, ui);
    out
}

fn head(out: &mut String, package: &Package, modes: &Modes, digest: Option<&str>) {
    let total = package.files.values().map(|file| file.len() as u64).sum();
    let executables = modes.values().filter(|mode| is_executable(**mode)).count();
    let files = format!(
        "{}, {}, {executables} executable",
        words::count(package.files.len(), "file"),
        words::bytes(total)
    );
    out.push_str(&layout::pairs(&[
        ("name", Some(visible(package.name()))),
        (
            "version",
            Some(package.version().map_or("(none)".to_owned(), short)),
        ),
        ("about", member(&package.manifest, "description").map(short)),
        ("license", member(&package.manifest, "license").map(short)),
        ("digest", digest.map(str::to_owned)),
        ("files", Some(files)),
    ]));
}

fn heading(out: &mut String, title: &str, ui: &Ui) {
    out.push('\n');
    out.push_str(&ui.heading(title));
    out.push('\n');
}

fn skills(out: &mut String, skills: &[Skill], ui: &Ui) {
    if skills.is_empty() {
        return;
    }
    heading(out, &words::count(skills.len(), "skill"), ui);
    for skill in skills {
        let more = match skill.files.len() {
            0 => String::new(),
            files => format!(" (and {})", words::count(files, "resource")),
        };
        let name = format!("{}{more}", visible(&skill.name));
        out.push_str(&layout::wrap(&name, "  ", "    "));
        out.push_str(&layout::wrap(&short(&skill.description), "    ", "    "));
    }
}

fn servers(out: &mut String, package: &Package, ui: &Ui) {
    let servers = &package.mcp_servers;
    if servers.is_empty() {
        return;
    }
    heading(out, &words::count(servers.len(), "server"), ui);
    for (name, server) in servers {
        let name = format!("{} ({})", visible(name), server.transport.as_str());
        out.push_str(&layout::wrap(&name, "  ", "    "));
        out.push_str(&layout::wrap(&target(server), "    ", "    "));
    }
}

/// What is started or asked. Values of variables and headers may be secret and are not shown.
fn target(server: &McpServer) -> String {
    let key = match server.transport {
        Transport::Stdio => "command",
        Transport::StreamableHttp | Transport::Sse => "url",
    };
    let mut line = member(&server.config, key).map(short).unwrap_or_default();
    if let Some(Json::Array(args)) = server.config.get("args") {
        line.push_str(&format!(" (and {})", words::count(args.len(), "argument")));
    }
    line
}

fn executables(out: &mut String, modes: &Modes, ui: &Ui) {
    let run = |(path, mode): (&String, &u32)| is_executable(*mode).then(|| visible(path));
    let paths: Vec<String> = modes.iter().filter_map(run).collect();
    if paths.is_empty() {
        return;
    }
    heading(out, &words::count(paths.len(), "executable"), ui);
    for path in paths {
        out.push_str(&layout::wrap(&path, "  ", "    "));
    }
}

fn diagnostics(out: &mut String, found: &[Diagnostic], ui: &Ui) {
    out.push('\n');
    if found.is_empty() {
        out.push_str(&ui.good("no diagnostics"));
        out.push('\n');
        return;
    }
    let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
    let errors = found.iter().filter(is_error).count();
    let title = format!(
        "{}, {}",
        words::count(errors, "error"),
        words::count(found.len() - errors, "warning")
    );
    out.push_str(&ui.heading(&title));
    out.push('\n');
    for one in found {
        out.push_str(&words::finding(one));
    }
}

fn member<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    match object.get(key) {
        Some(Json::Text(text)) => Some(text),
        _ => None,
    }
}

/// Text of the package, made visible and not longer than somebody reads.
fn short(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = one_line.chars().take(LONGEST).collect();
    if one_line.chars().nth(LONGEST).is_some() {
        cut.push('…');
    }
    visible(&cut)
}
