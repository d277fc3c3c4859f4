//! `backplane login`: a token for a registry, kept where nobody else can read it.

use std::io::{self, IsTerminal as _, Read as _};
use std::process::ExitCode;

use backplane_client::{Method, Object, Token};
use clap::Args;
use cli_shell::{CliError, Format, Secret, Ui, exit};
use zeroize::Zeroizing;

use crate::credentials::Credentials;
use crate::registry::Registry;
use crate::settings::{Places, RemoteArgs, Settings, TokenPlace};
use crate::wire;

/// The longest token with its line feed.
const LONGEST: u64 = 4097;

/// Arguments of `backplane login`.
#[derive(Debug, Clone, Args)]
pub struct LoginArgs {
    /// Read the token from standard input; `--token-file` reads it from a file
    #[arg(long, conflicts_with = "token_file")]
    token_stdin: bool,
    /// Keep the token without asking the registry whether it knows it
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &LoginArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    let mut settings = Settings::load(&args.remote)?;
    let path = Places::find()?.credentials.ok_or_else(|| {
        CliError::config("there is no home to keep a token in")
            .hint("set `HOME` or `XDG_CONFIG_HOME`, or use `--token-file` with each command")
    })?;
    let text = token_text(args)?;
    if args.token_stdin {
        // Not the one that variables or files name: that one is not sent.
        settings.token = Some(TokenPlace::Input);
    }
    let token = Token::new(text.as_str()).map_err(CliError::config)?;
    let url = settings.registry.clone();
    let known = match args.no_check {
        true => None,
        false => Some(who(&Registry::with_token(settings, Some(token), ui)?)?),
    };
    let path = Credentials::store(&path, &url, &text)?;
    match (&known, ui.format()) {
        (Some(known), Format::Json) => ui.json(known)?,
        (Some(known), Format::Human) => {
            let name = wire::shown(known, "name").unwrap_or_default();
            let scopes = wire::texts(known, "scopes").join(" ");
            ui.data(format!("{url}  {name}  {scopes}").trim_end())?;
        }
        (None, _) => {}
    }
    ui.status(format!(
        "the token for `{url}` is kept in `{}`",
        path.display()
    ));
    Ok(exit::ok())
}

/// Asks who the token is; a registry that does not know it ends the login.
fn who(registry: &Registry) -> Result<Object, CliError> {
    let call = registry.client().request_call(Method::Get, "/whoami", None);
    let known = registry
        .ask(call)
        .map_err(|error| error.hint("nothing was kept; `--no-check` keeps a token unasked"))?;
    wire::text(&known, "name")?;
    Ok(known)
}

fn token_text(args: &LoginArgs) -> Result<Zeroizing<String>, CliError> {
    if let Some(path) = &args.remote.token_file {
        let secret = Secret::from_file(path).map_err(CliError::config)?;
        return Ok(Zeroizing::new(secret.expose().to_owned()));
    }
    if !args.token_stdin {
        // A terminal would show what is typed.
        return Err(CliError::usage("where the token is to be read from is not said").hint(
            "`backplane login --token-stdin < FILE`, or `--token-file FILE`; a token is no argument, which everybody on the machine can see",
        ));
    }
    if io::stdin().is_terminal() {
        return Err(CliError::usage("a terminal would show the token").hint(
            "`backplane login --token-stdin < FILE`, or from a password manager through a pipe",
        ));
    }
    let mut text = Zeroizing::new(String::new());
    io::stdin()
        .lock()
        .take(LONGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| CliError::operation(error).because("cannot read the token"))?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
