//! Which registry is asked, as whom and how: flags, then variables, then files.
//!
//! A layer that names another registry than the one that is asked is about that other one: nothing else
//! of it counts. So a token never goes to a registry that it was not given for.

mod file;
mod places;

use std::path::PathBuf;

use backplane_client::BaseUrl;
use clap::Args;
use cli_shell::config::Layer;
use cli_shell::{CliError, env};

use crate::credentials::Credentials;

pub(crate) use places::Places;

const URL: &str = "BACKPLANE_URL";
const TOKEN: &str = "BACKPLANE_TOKEN";
const TOKEN_FILE: &str = "BACKPLANE_TOKEN_FILE";
const CA_FILE: &str = "BACKPLANE_CA_FILE";

/// The options of every command that asks a registry.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteArgs {
    /// The registry to ask, such as `https://backplane.example`
    #[arg(long, value_name = "URL", help_heading = "Registry")]
    pub(crate) registry: Option<String>,
    /// A file with the token for it
    #[arg(long, value_name = "FILE", help_heading = "Registry")]
    pub(crate) token_file: Option<PathBuf>,
    /// PEM certificates of the only authorities to trust
    #[arg(long, value_name = "FILE", help_heading = "Registry")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Send requests to another machine without TLS
    #[arg(long, help_heading = "Registry")]
    pub(crate) allow_plain_http: bool,
}

/// Where a token is; its text is read when it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenPlace {
    /// In a file of its own.
    File(PathBuf),
    /// In this variable.
    Variable(&'static str),
    /// Beside the URL in the credentials.
    Credentials(PathBuf),
    /// What was just read from standard input, to be kept.
    Input,
}

/// What one layer says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    layer: Layer,
    registry: Option<String>,
    token: Option<TokenPlace>,
    ca_file: Option<PathBuf>,
    allow_plain_http: bool,
}

/// What all layers come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) registry: BaseUrl,
    /// Which layer named the registry.
    pub(crate) named_by: Layer,
    pub(crate) token: Option<TokenPlace>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) allow_plain_http: bool,
}

impl Settings {
    /// Reads flags, variables and files, and looks whether there are credentials for the registry.
    pub(crate) fn load(args: &RemoteArgs) -> Result<Self, CliError> {
        let places = Places::find()?;
        let mut settings = settle(&layers(args, &places)?, &places)?;
        if settings.token.is_none()
            && let Some(path) = &places.credentials
            && Credentials::load(path)?.has(&settings.registry)
        {
            settings.token = Some(TokenPlace::Credentials(path.clone()));
        }
        Ok(settings)
    }
}

/// Returns what each layer says, the strongest first.
fn layers(args: &RemoteArgs, places: &Places) -> Result<Vec<Said>, CliError> {
    let mut all = vec![flags(args), variables()?];
    for path in places.files() {
        all.extend(file::read(path)?);
    }
    Ok(all)
}

fn flags(args: &RemoteArgs) -> Said {
    Said {
        layer: Layer::Flag("registry".to_owned()),
        registry: args.registry.clone(),
        token: args.token_file.clone().map(TokenPlace::File),
        ca_file: args.ca_file.clone(),
        allow_plain_http: args.allow_plain_http,
    }
}

fn variables() -> Result<Said, CliError> {
    let read = |name: &str| env::var(name).map_err(CliError::config);
    let token = match (read(TOKEN_FILE)?, read(TOKEN)?) {
        (Some(_), Some(_)) => {
            let message = format!("`{TOKEN_FILE}` and `{TOKEN}` are both set");
            return Err(CliError::config(message).hint(format!("unset one of them; `{TOKEN_FILE}` keeps the token out of the environment of other programs")));
        }
        (Some(path), None) => Some(TokenPlace::File(path.into())),
        (None, Some(_)) => Some(TokenPlace::Variable(TOKEN)),
        (None, None) => None,
    };
    Ok(Said {
        layer: Layer::Environment(URL.to_owned()),
        registry: read(URL)?,
        token,
        ca_file: read(CA_FILE)?.map(PathBuf::from),
        allow_plain_http: false,
    })
}

fn settle(layers: &[Said], places: &Places) -> Result<Settings, CliError> {
    let named = layers.iter().find_map(|said| {
        let registry = said.registry.as_deref()?;
        Some((registry, said.layer.clone()))
    });
    let (text, named_by) = named.ok_or_else(|| unnamed(places))?;
    let registry = parse(text, &named_by)?;
    let mut settings = Settings {
        registry,
        named_by,
        token: None,
        ca_file: None,
        allow_plain_http: false,
    };
    for said in layers {
        if let Some(other) = &said.registry
            && parse(other, &said.layer)? != settings.registry
        {
            continue;
        }
        settings.token = settings.token.or_else(|| said.token.clone());
        settings.ca_file = settings.ca_file.or_else(|| said.ca_file.clone());
        settings.allow_plain_http |= said.allow_plain_http;
    }
    Ok(settings)
}

fn parse(text: &str, layer: &Layer) -> Result<BaseUrl, CliError> {
    text.parse().map_err(|error| {
        CliError::config(error)
            .because(format!("{layer} names no registry"))
            .hint("a registry is named like `https://backplane.example`")
    })
}

fn unnamed(places: &Places) -> CliError {
    let error = CliError::config("no registry is named")
        .hint(format!("use `--registry https://HOST` or set `{URL}`"));
    match &places.user {
        Some(path) => error.hint(format!(
            "or write `registry = \"https://HOST\"` into `{}`",
            path.display()
        )),
        None => error,
    }
}

#[cfg(test)]
mod tests;
