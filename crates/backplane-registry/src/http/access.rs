//! Who asks, and whether they may. Every route says which scope it needs; what a token may change
//! is asked where the plugin is known.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;

use super::answer::{ApiError, Code};
use crate::config::Scope;
use crate::state::RegistryState;
use crate::tokens::Identity;

/// The sender of a request that was let in.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Option<Arc<Identity>>);

impl Caller {
    /// The name of its token; nothing for a reader without one.
    pub(crate) fn name(&self) -> &str {
        self.0.as_ref().map_or("", |identity| &identity.name)
    }

    /// Its token, which every route has but those for anonymous readers.
    pub(crate) fn identity(&self) -> Result<&Identity, ApiError> {
        self.0.as_deref().ok_or_else(ApiError::unauthorized)
    }

    /// Refuses a plugin that the token is not for.
    pub(crate) fn may_change(&self, plugin_id: &str) -> Result<(), ApiError> {
        if self.identity()?.may_change(plugin_id) {
            return Ok(());
        }
        Err(ApiError::new(
            Code::Forbidden,
            format!("this token is not for the plugin `{plugin_id}`"),
        ))
    }
}

/// What a route needs of a token.
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// The scope `read`, or nothing where the registry is open to readers.
    Reader,
    /// This scope.
    Scope(Scope),
    /// Any token at all.
    Token,
}

/// Lets only those through who have what the route needs.
pub(super) fn need(
    need: Need,
    state: &RegistryState,
    route: MethodRouter<RegistryState>,
) -> MethodRouter<RegistryState> {
    route.route_layer(from_fn_with_state((state.clone(), need), admit))
}

async fn admit(
    State((state, need)): State<(RegistryState, Need)>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = match judge(&state, need, request.headers()) {
        Ok(caller) => caller,
        Err(refusal) => return refusal.into_response(),
    };
    request.extensions_mut().insert(caller.clone());
    let mut response = next.run(request).await;
    response.extensions_mut().insert(caller);
    response
}

fn judge(state: &RegistryState, need: Need, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let open = matches!(need, Need::Reader) && state.anonymous_read();
    if open && !headers.contains_key(header::AUTHORIZATION) {
        return Ok(Caller(None));
    }
    let identity = bearer(headers)
        .and_then(|token| state.tokens().who(token))
        .ok_or_else(ApiError::unauthorized)?;
    let scope = match need {
        Need::Token => return Ok(Caller(Some(identity))),
        Need::Reader => Scope::Read,
        Need::Scope(scope) => scope,
    };
    if identity.scopes.contains(&scope) {
        return Ok(Caller(Some(identity)));
    }
    let scope = scope.as_str();
    let message = format!("this token has not the scope `{scope}`");
    let refusal = ApiError::new(Code::Forbidden, message);
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
    Err(match HeaderValue::try_from(challenge) {
        Ok(challenge) => refusal.with(header::WWW_AUTHENTICATE, challenge),
        Err(_) => refusal,
    })
}

/// The token of the only `Authorization: Bearer` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
