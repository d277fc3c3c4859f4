//! `init`: the beginning of a package.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agent_plugin::{Files, Options, PLUGIN_SCHEMA};
use clap::Args;
use cli_shell::{CliError, Ui, exit, visible};
use serde::Serialize;

const MANIFEST: &str = "plugin.json";
const SKILLS: &str = "skills";
const SKILL: &str = "skills/hello/SKILL.md";
const README: &str = "README.md";

const HELLO: &str = "\
---
name: hello
description: Greets somebody by name. Use it when somebody asks for a greeting.
---

# Hello

Greet the person by name, in one friendly sentence. Ask for the name if nobody said it.
";

const RULE: &str = "\
Makes plugin.json, skills/hello/SKILL.md and README.md. Nothing is overwritten:
a README.md that is there stays, and a directory that has a plugin.json or
skills is left as it is.";

/// Where the package begins.
#[derive(Debug, Clone, Args)]
#[command(after_help = RULE)]
pub struct Init {
    /// The directory of the package, made if it is not there
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// The name of the plugin [default: that of the directory]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// What `--format json` prints, one record.
#[derive(Serialize)]
struct Record {
    name: String,
    directory: String,
    created: Vec<&'static str>,
    already_present: Vec<&'static str>,
}

impl Init {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let name = self.name()?;
        let files = files(&name)?;
        let keeps_readme = self.check()?;
        let wanted = files
            .iter()
            .filter(|(path, _)| !(keeps_readme && *path == README));
        let mut made = Made::default();
        for (path, text) in wanted.clone() {
            made.write(&self.directory, path, text)?;
        }
        made.stays();
        let record = Record {
            name,
            directory: self.directory.display().to_string(),
            created: wanted.map(|(path, _)| *path).collect(),
            already_present: keeps_readme.then_some(README).into_iter().collect(),
        };
        ui.record(&record, text)?;
        let word = safe_fs::shell_word(&self.directory);
        ui.status(format!("next: `backplane inspect {word}`"));
        Ok(exit::ok())
    }

    fn name(&self) -> Result<String, CliError> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let absolute = std::path::absolute(&self.directory).map_err(CliError::operation)?;
        let found = fs_err::canonicalize(&self.directory).unwrap_or(absolute);
        let name = found.file_name().and_then(|name| name.to_str());
        name.map(str::to_owned).ok_or_else(|| {
            CliError::usage(format!("`{}` has no name", self.directory.display()))
                .hint("name the plugin with `--name`")
        })
    }

    /// Refuses a directory that is a package already; tells whether its README stays.
    fn check(&self) -> Result<bool, CliError> {
        let leads_nowhere = fs_err::symlink_metadata(&self.directory).is_ok()
            && fs_err::metadata(&self.directory).is_err();
        if leads_nowhere || fs_err::metadata(&self.directory).is_ok_and(|found| !found.is_dir()) {
            return Err(
                CliError::usage(format!("`{}` is no directory", self.directory.display()))
                    .hint("name a directory, or one to make"),
            );
        }
        for name in [MANIFEST, SKILLS] {
            if is_there(&self.directory.join(name))? {
                return Err(CliError::usage(format!(
                    "`{}` is there already, and nothing is overwritten",
                    self.directory.join(name).display()
                ))
                .hint("name another directory"));
            }
        }
        is_there(&self.directory.join(README))
    }
}

fn is_there(path: &Path) -> Result<bool, CliError> {
    match fs_err::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(CliError::operation(error)),
    }
}

/// The files of a package of this name, judged as every package is.
fn files(name: &str) -> Result<Vec<(&'static str, String)>, CliError> {
    let name_text = serde_json::to_string(name).map_err(CliError::operation)?;
    let manifest = format!(
        "{{\n  \"$schema\": \"{PLUGIN_SCHEMA}\",\n  \"name\": {name_text},\n  \
         \"version\": \"0.1.0\",\n  \"description\": \"Greets people by name\"\n}}\n"
    );
    let files = vec![
        (MANIFEST, manifest),
        (SKILL, HELLO.to_owned()),
        (README, readme(name)),
    ];
    let map = |(path, text): &(&str, String)| ((*path).to_owned(), text.clone().into_bytes());
    let map: Files = files.iter().map(map).collect();
    agent_plugin::load(map, &Options::default()).map_err(|_| {
        CliError::usage(format!("`{}` is no name of a plugin", visible(name))).hint(
            "name it with `--name`: 1 to 64 of a-z, 0-9, `-` and `.`, a letter or digit \
                at both ends, no `--` and no `..`, such as `my-plugin`",
        )
    })?;
    Ok(files)
}

fn readme(name: &str) -> String {
    format!(
        "# {name}\n\nAn Agent Plugins package.\n\n\
         - `plugin.json`: its name, version and description\n\
         - `skills/`: one directory for each skill, with a `SKILL.md`\n\n\
         Look at it with `backplane inspect .`, and pack it with\n\
         `backplane pack . -o ../{name}.tar.gz`.\n"
    )
}

/// What this run made; it is taken back if the rest cannot be made.
#[derive(Default)]
struct Made {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Made {
    fn write(&mut self, root: &Path, path: &str, text: &str) -> Result<(), CliError> {
        let place = root.join(path);
        self.folder(place.parent().unwrap_or(root))?;
        let mut file = fs_err::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&place)
            .map_err(CliError::operation)?;
        self.files.push(place);
        file.write_all(text.as_bytes()).map_err(CliError::operation)
    }

    fn folder(&mut self, folder: &Path) -> Result<(), CliError> {
        if folder.as_os_str().is_empty() || folder.is_dir() {
            return Ok(());
        }
        if let Some(above) = folder.parent() {
            self.folder(above)?;
        }
        if folder.is_dir() {
            // It was `above/..`, which is there as soon as `above` is.
            return Ok(());
        }
        fs_err::create_dir(folder).map_err(CliError::operation)?;
        self.folders.push(folder.to_owned());
        Ok(())
    }

    fn stays(mut self) {
        self.files.clear();
        self.folders.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // The error that stopped the work is the one to tell.
        for file in &self.files {
            fs_err::remove_file(file).ok();
        }
        for folder in self.folders.iter().rev() {
            fs_err::remove_dir(folder).ok();
        }
    }
}

fn text(record: &Record) -> String {
    let created = record
        .created
        .iter()
        .map(|path| format!("created  {path}\n"));
    let kept = record
        .already_present
        .iter()
        .map(|path| format!("kept     {path}\n"));
    created.chain(kept).collect()
}
