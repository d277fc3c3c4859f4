//! A registry that is asked: the client over HTTP, and what its failures mean at a terminal.

use std::path::Path;

use backplane_client::{
    Auth, Call, Cancel, Client, ClientError, Fault, Never, Refusal, RefusalCode, Token,
    TransportError,
};
use backplane_http::{HttpTransport, Options, Proxies, Roots};
use cli_shell::{CliError, ErrorKind, Secret, Ui, env};

use crate::credentials::Credentials;
use crate::settings::{RemoteArgs, Settings, TokenPlace};

/// A registry and who asks it.
pub(crate) struct Registry {
    settings: Settings,
    client: Client<HttpTransport>,
}

impl Registry {
    /// Makes ready to ask the registry that the options, variables and files name. Nothing is sent.
    pub(crate) fn open(args: &RemoteArgs, ui: &Ui) -> Result<Self, CliError> {
        let settings = Settings::load(args)?;
        let token = settings.token()?;
        Self::with_token(settings, token, ui)
    }

    /// Does the same with a token that is known already.
    pub(crate) fn with_token(
        settings: Settings,
        token: Option<Token>,
        ui: &Ui,
    ) -> Result<Self, CliError> {
        let options = Options {
            roots: settings.ca_file.clone().map_or(Roots::System, Roots::Only),
            allow_plain_http: settings.allow_plain_http,
            proxies: Proxies::from_variables(env::var).map_err(CliError::config)?,
            ..Options::default()
        };
        let transport = HttpTransport::new(options).map_err(CliError::config)?;
        let url = settings.registry.to_string();
        if transport.sends_plain(&url) {
            ui.warn(format!(
                "requests to `{url}` leave this machine unprotected: everybody on the way can read them, the token too"
            ));
        }
        ui.detail(format!("registry `{url}`, named by {}", settings.named_by));
        let auth = token.map_or(Auth::None, Auth::Token);
        let client = Client::new(&url, auth, Vec::new(), transport).map_err(CliError::config)?;
        Ok(Self { settings, client })
    }

    /// Returns the client, to make calls with.
    pub(crate) fn client(&self) -> &Client<HttpTransport> {
        &self.client
    }

    /// Returns what it was opened with.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends a call and returns what it gives.
    pub(crate) fn ask<T>(&self, call: Result<Call<T>, ClientError>) -> Result<T, CliError> {
        self.try_ask(call).map_err(|error| self.explain(error))
    }

    /// Does the same with a sign of life.
    pub(crate) fn ask_while<T>(
        &self,
        call: Result<Call<T>, ClientError>,
        waiting: &dyn Cancel,
    ) -> Result<T, CliError> {
        self.send(call, waiting)
            .map_err(|error| self.explain(error))
    }

    /// Does the same for who judges failures itself.
    pub(crate) fn try_ask<T>(&self, call: Result<Call<T>, ClientError>) -> Result<T, ClientError> {
        self.send(call, &Never)
    }

    fn send<T>(
        &self,
        call: Result<Call<T>, ClientError>,
        waiting: &dyn Cancel,
    ) -> Result<T, ClientError> {
        self.client.carry_out(call?, waiting)
    }

    /// Says what a failure means and what to do.
    pub(crate) fn explain(&self, error: ClientError) -> CliError {
        match error {
            ClientError::HttpStatus { status } => self.status(status),
            ClientError::Refused(refusal) => self.refusal(&refusal),
            ClientError::Transport(error) => self.unreached(error),
            ClientError::Path(_) | ClientError::Selection(_) | ClientError::Digest(_) => {
                CliError::usage(error)
            }
            ClientError::Address(_) | ClientError::Header(_) => CliError::config(error),
            ClientError::Answer(_) => CliError::operation(error).hint(self.no_registry_hint()),
            error => CliError::operation(error),
        }
    }

    fn no_registry_hint(&self) -> String {
        let registry = &self.settings.registry;
        format!("is `{registry}` a registry of plugins? `curl {registry}/healthz` tells")
    }

    fn status(&self, status: u16) -> CliError {
        let registry = &self.settings.registry;
        let kind = match status {
            409 | 410 | 413 | 422 => ErrorKind::No,
            401 | 403 => ErrorKind::Config,
            _ => ErrorKind::Operation,
        };
        let message = match status {
            401 if self.settings.token.is_none() => format!("`{registry}` wants a token"),
            401 => format!("`{registry}` does not know the token"),
            403 => format!("`{registry}` does not allow this to the token"),
            410 => "the release is yanked (status 410)".to_owned(),
            status => format!("`{registry}` answered with status {status}"),
        };
        let error = match status {
            // Whoever asks for what may be missing says so itself: here the route is not there.
            404 => CliError::new(kind, message).hint(self.no_registry_hint()),
            _ => CliError::new(kind, message),
        };
        self.with_credentials_hint(error, status)
    }

    fn refusal(&self, refusal: &Refusal) -> CliError {
        let kind = match refusal.code() {
            RefusalCode::NotFound
            | RefusalCode::Conflict
            | RefusalCode::ReleaseYanked
            | RefusalCode::LimitExceeded
            | RefusalCode::InvalidPackage
            | RefusalCode::ReceiptMismatch => ErrorKind::No,
            RefusalCode::Unauthorized | RefusalCode::Forbidden => ErrorKind::Config,
            _ => ErrorKind::Operation,
        };
        let message = format!("`{}` refused it: {refusal}", self.settings.registry);
        let error = match refusal.sentence() {
            Some(sentence) => {
                CliError::new(kind, format!("the registry says: {sentence}")).because(message)
            }
            None => CliError::new(kind, message),
        };
        let error = match refusal.code() {
            RefusalCode::ReleaseYanked => {
                error.hint("`backplane yank NAME@RELEASE --undo` takes that back")
            }
            _ => error,
        };
        self.with_credentials_hint(error, refusal.status())
    }

    fn with_credentials_hint(&self, error: CliError, status: u16) -> CliError {
        let from = match &self.settings.token {
            None => "no token was sent".to_owned(),
            Some(place) => format!("the token is from {}", place.words()),
        };
        match status {
            401 if self.settings.token == Some(TokenPlace::Input) => error.hint(from),
            401 => error.hint(format!(
                "{from}; `backplane login --registry {} --token-stdin` keeps one",
                self.settings.registry
            )),
            403 => error.hint(format!(
                "{from}; its scopes and plugins are set at the registry"
            )),
            429 | 503 => error.hint("it may work in a minute"),
            _ => error,
        }
    }

    fn unreached(&self, error: TransportError) -> CliError {
        let fault = error.fault();
        let registry = &self.settings.registry;
        let failed = CliError::operation(error).because(format!("cannot ask `{registry}`"));
        match fault {
            Fault::Tls => failed.hint("a private authority is named with `--ca-file FILE`"),
            Fault::Refused => failed.hint(
                "a registry on another machine needs `https://`; `--allow-plain-http` sends all in clear text",
            ),
            Fault::Unreachable | Fault::TimedOut => failed.hint(format!(
                "the registry is named by {}; is it running?",
                self.settings.named_by
            )),
            _ => failed,
        }
    }
}

impl Settings {
    /// Reads the token, if there is one for the registry.
    pub(crate) fn token(&self) -> Result<Option<Token>, CliError> {
        let text = match &self.token {
            // What was read from standard input is in the hands of who read it.
            None | Some(TokenPlace::Input) => return Ok(None),
            Some(TokenPlace::File(path)) => Secret::from_file(path),
            Some(TokenPlace::Variable(name)) => Secret::from_env(name),
            Some(TokenPlace::Credentials(path)) => {
                let all = Credentials::load(path)?;
                let token = all.token(&self.registry).map(|text| checked(text, path));
                return token.transpose();
            }
        };
        let text = text.map_err(|error| {
            CliError::config(error)
                .hint("a token is one line of visible ASCII, as `backplane serve` made it")
        })?;
        Token::new(text.expose())
            .map(Some)
            .map_err(CliError::config)
    }
}

fn checked(text: &str, path: &Path) -> Result<Token, CliError> {
    Token::new(text).map_err(|error| {
        CliError::config(error).because(format!("`{}` holds no usable token", path.display()))
    })
}

impl TokenPlace {
    /// Says where the token is, never what.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::File(path) => format!("file `{}`", path.display()),
            Self::Variable(name) => format!("variable `{name}`"),
            Self::Credentials(path) => format!("the credentials in `{}`", path.display()),
            Self::Input => "standard input".to_owned(),
        }
    }
}
