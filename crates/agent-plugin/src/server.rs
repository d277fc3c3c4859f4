//! One server of `mcp.json`.

use std::collections::BTreeSet;

use strict_json::{Json, Object};

use crate::address::{self, Refusal};
use crate::diagnostic::{Report, member, shown};
use crate::place::{self, Base};
use crate::{Code, Containment, McpServer, Transport, fields};

const STDIO: &[&str] = &["type", "command", "args", "env", "cwd"];
const REMOTE: &[&str] = &["type", "url", "headers"];

/// The names that a host sets itself.
pub(crate) const RESERVED: [&str; 2] = ["PLUGIN_ROOT", "PLUGIN_DATA"];

/// One server under judgement.
pub(crate) struct Judge<'a> {
    /// The place of the server.
    pub path: String,
    pub containment: &'a dyn Containment,
    pub report: &'a mut Report,
}

impl Judge<'_> {
    /// Returns the server when nothing is wrong with it.
    pub(crate) fn server(&mut self, value: &Json) -> Option<McpServer> {
        let Json::Object(config) = value else {
            let message = format!("must be an object, not {}", value.kind());
            self.report
                .error(Code::ServerNotObject, &self.path, message);
            return None;
        };
        let before = self.report.errors();
        let transport = self.transport(config)?;
        let known = match transport {
            Transport::Stdio => STDIO,
            Transport::StreamableHttp | Transport::Sse => REMOTE,
        };
        for (key, _) in config.iter().filter(|(key, _)| !known.contains(key)) {
            let message = format!(
                "a server of type `{}` has no `{}`",
                transport.as_str(),
                shown(key)
            );
            self.error(Code::ServerUnknownField, key, message);
        }
        match transport {
            Transport::Stdio => self.stdio(config),
            Transport::StreamableHttp | Transport::Sse => self.remote(config),
        }
        (self.report.errors() == before).then(|| McpServer {
            transport,
            config: config.clone(),
        })
    }

    fn error(&mut self, code: Code, key: &str, message: impl Into<String>) {
        self.report.error(code, &member(&self.path, key), message);
    }

    fn transport(&mut self, config: &Object) -> Option<Transport> {
        let message = match config.get("type") {
            None => {
                let message = "the required field `type` is missing";
                self.report
                    .error(Code::ServerTypeMissing, &self.path, message);
                return None;
            }
            Some(Json::Text(name)) => match Transport::from_name(name) {
                Some(transport) => return Some(transport),
                None => format!(
                    "`{}` is not `stdio`, `streamable-http` or `sse`",
                    shown(name)
                ),
            },
            Some(other) => format!("must be a string, not {}", other.kind()),
        };
        self.error(Code::ServerTypeUnknown, "type", message);
        None
    }

    /// Returns a text without NUL.
    fn text<'a>(&mut self, value: &'a Json, code: Code, key: &str) -> Option<&'a str> {
        let message = match value {
            Json::Text(text) if !text.contains('\0') => return Some(text),
            Json::Text(_) => "must not hold NUL".to_owned(),
            other => format!("must be a string, not {}", other.kind()),
        };
        self.error(code, key, message);
        None
    }

    fn required<'a>(&mut self, config: &'a Object, key: &str, code: Code) -> Option<&'a str> {
        match config.get(key) {
            Some(value) => self.text(value, code, key),
            None => {
                let message = format!("the required field `{key}` is missing");
                self.report.error(code, &self.path, message);
                None
            }
        }
    }

    fn stdio(&mut self, config: &Object) {
        if let Some(command) = self.required(config, "command", Code::ServerCommandInvalid) {
            self.command(command);
        }
        if let Some(args) = config.get("args") {
            self.args(args);
        }
        if let Some(env) = config.get("env") {
            self.env(env);
        }
        if let Some(cwd) = config.get("cwd") {
            self.cwd(cwd);
        }
    }

    fn command(&mut self, command: &str) {
        match place::command(command) {
            Err(reason) => self.error(Code::ServerCommandInvalid, "command", reason),
            Ok(None) => {}
            Ok(Some(path)) if place::is_inside(path) && self.containment.is_inside(path) => {}
            Ok(Some(_)) => {
                self.error(Code::ServerCommandEscapes, "command", "leaves the package");
            }
        }
    }

    fn args(&mut self, args: &Json) {
        let Json::Array(args) = args else {
            let message = format!("must be an array, not {}", args.kind());
            return self.error(Code::ServerArgsInvalid, "args", message);
        };
        let path = member(&self.path, "args");
        for (index, value) in args.iter().enumerate() {
            let message = match value {
                Json::Text(text) if !text.contains('\0') => continue,
                Json::Text(_) => "must not hold NUL".to_owned(),
                other => format!("must be a string, not {}", other.kind()),
            };
            let path = member(&path, &index.to_string());
            self.report.error(Code::ServerArgsInvalid, &path, message);
        }
    }

    fn env(&mut self, env: &Json) {
        let Json::Object(env) = env else {
            let message = format!("must be an object, not {}", env.kind());
            return self.error(Code::ServerEnvInvalid, "env", message);
        };
        let path = member(&self.path, "env");
        for (name, value) in env.iter() {
            let (code, message) = match value {
                _ if RESERVED.contains(&name) => {
                    let message = format!("`{name}` is set by the host");
                    (Code::ServerEnvReserved, message)
                }
                _ if name.is_empty() || name.contains(['=', '\0']) => {
                    let message = "a name must not be empty and not hold `=` or NUL".to_owned();
                    (Code::ServerEnvInvalid, message)
                }
                Json::Text(text) if !text.contains('\0') => continue,
                Json::Text(_) => (Code::ServerEnvInvalid, "must not hold NUL".to_owned()),
                other => {
                    let message = format!("must be a string, not {}", other.kind());
                    (Code::ServerEnvInvalid, message)
                }
            };
            self.report.error(code, &member(&path, name), message);
        }
    }

    fn cwd(&mut self, value: &Json) {
        let Some(cwd) = self.text(value, Code::ServerCwdInvalid, "cwd") else {
            return;
        };
        let Some((base, rest)) = place::cwd(cwd) else {
            let message = "must start with `./`, `${PLUGIN_ROOT}` or `${PLUGIN_DATA}`";
            return self.error(Code::ServerCwdInvalid, "cwd", message);
        };
        let stays =
            place::is_inside(rest) && (base == Base::Data || self.containment.is_inside(rest));
        if !stays {
            let message = match base {
                Base::Root => "leaves the package",
                Base::Data => "leaves the directory of data",
            };
            self.error(Code::ServerCwdEscapes, "cwd", message);
        }
    }

    fn remote(&mut self, config: &Object) {
        if let Some(url) = self.required(config, "url", Code::ServerUrlInvalid) {
            match address::check(url) {
                Ok(()) => {}
                Err(Refusal::Invalid(reason)) => self.error(Code::ServerUrlInvalid, "url", reason),
                Err(Refusal::Insecure) => {
                    let message = "plain HTTP is for `localhost` and loopback addresses alone";
                    self.error(Code::ServerUrlInsecure, "url", message);
                }
            }
        }
        if let Some(headers) = config.get("headers") {
            self.headers(headers);
        }
    }

    fn headers(&mut self, headers: &Json) {
        let Json::Object(headers) = headers else {
            let message = format!("must be an object, not {}", headers.kind());
            return self.error(Code::ServerHeadersInvalid, "headers", message);
        };
        let path = member(&self.path, "headers");
        let mut seen = BTreeSet::new();
        for (name, value) in headers.iter() {
            let message = match value {
                _ if !fields::is_name(name) => "is no name of an HTTP field".to_owned(),
                _ if !seen.insert(name.to_ascii_lowercase()) => {
                    "is there twice; names have no case".to_owned()
                }
                Json::Text(text) if fields::is_value(text) => continue,
                // The value may be a secret, so it is not repeated.
                Json::Text(_) => "has a value with control characters".to_owned(),
                other => format!("must be a string, not {}", other.kind()),
            };
            let path = member(&path, name);
            self.report
                .error(Code::ServerHeadersInvalid, &path, message);
        }
    }
}
