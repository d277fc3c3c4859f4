//! `GET /v1/workers/connect`: who may have which slot. All that is wrong with a
//! token, an id or a slot is answered alike.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use forge_domain::PoolId;
use futures_util::FutureExt as _;
use gate_link::{ConnectQuery, GateSession};
use gate_store::StoreError;
use hyper::upgrade::OnUpgrade;
use tokio::sync::oneshot;

use super::connection::{Connection, Slot};
use super::handshake;
use super::wire::Wire;
use crate::http::ApiError;
use crate::random;
use crate::state::{GateState, Refusal};

pub(crate) async fn connect(State(state): State<GateState>, mut request: Request) -> Response {
    let Some((query, pool)) = authorized(&state, &request) else {
        return ApiError::Unauthorized.into_response();
    };
    let key = match handshake::accept_key(request.version(), request.headers()) {
        Ok(key) => key,
        Err(no_upgrade) => return no_upgrade.into_response(),
    };
    if state.stopping().is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the Gate stops\n").into_response();
    }
    let generation = match random::generation() {
        Ok(generation) => generation,
        Err(error) => {
            state.fail(error);
            return ApiError::failed().into_response();
        }
    };
    let session = GateSession::new(&query);
    let slot = Slot {
        id: query.slot,
        pool,
        generation,
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let (say, heard) = oneshot::channel();
    let tasks = state.tasks().clone();
    // A Worker may give up before the store has answered, and this function is dropped together
    // with the connection. The slot must not stay taken by nobody, so the task that gives it back
    // is there before it is taken.
    tasks.spawn(async move {
        let connected = state.store().connect_slot(
            slot.id.clone(),
            slot.pool.clone(),
            slot.generation,
            state.now(),
        );
        let connected = state.judge(connected.await);
        let taken = connected.is_ok();
        drop(say.send(connected));
        if taken {
            hold(state, slot, session, upgrade).await;
        }
    });
    match heard.await {
        Ok(Ok(())) => handshake::switching(&key),
        Ok(Err(Refusal::Store(StoreError::SlotBusy))) => {
            (StatusCode::CONFLICT, "worker slot unavailable\n").into_response()
        }
        Ok(Err(refusal)) => ApiError::from(refusal).into_response(),
        Err(_) => ApiError::failed().into_response(),
    }
}

/// Serves a slot that was taken, and gives it back. Where the connection is gone there is no
/// upgrade.
async fn hold(state: GateState, slot: Slot, session: GateSession, upgrade: OnUpgrade) {
    let killed = state.lifetime().killed.clone();
    let mut connection = Connection::new(state, slot, session);
    let served = async {
        match upgrade.await {
            Ok(upgraded) => {
                let wire = Wire::new(upgraded).await;
                tokio::select! {
                    reason = connection.serve(wire) => reason,
                    () = killed.cancelled() => "shutdown",
                }
            }
            Err(_) => "handshake failed",
        }
    };
    // Whatever ends it, the slot can be connected again. The connection is used once more,
    // to let go; that reads nothing that a panic could have left half done.
    let served = AssertUnwindSafe(served).catch_unwind().await;
    connection
        .disconnect(served.unwrap_or("a defect of this program"))
        .await;
}

fn authorized(state: &GateState, request: &Request) -> Option<(ConnectQuery, PoolId)> {
    let query = ConnectQuery::parse(request.uri().query()?).ok()?;
    let known = state
        .tokens()
        .is_worker(query.slot.worker(), request.headers());
    let pool = state.pool_of(&query.slot)?.clone();
    known.then_some((query, pool))
}
