//! Blocking calls and calls on a runtime, anywhere.

use std::thread;

use backplane_client::{ClientError, Fault, Method, Never, Transport as _};
use backplane_http::HttpTransport;

use crate::server::{Server, Step};
use crate::support::{answer, client, get, ok, patient};

fn current_thread() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

#[test]
fn a_blocking_call_works_inside_of_any_runtime_and_may_end_there() {
    for runtime in [current_thread(), crate::server::runtime()] {
        let server = Server::plain(vec![Step::Send(ok()), Step::Send(ok())]);
        let client = client(&server.url(), patient());
        runtime.block_on(async move {
            get(&client).unwrap();
            get(&client).unwrap();
            drop(client);
        });
    }
}

#[test]
fn a_blocking_call_works_in_spawn_blocking() {
    let server = Server::plain(vec![Step::Send(ok())]);
    let client = client(&server.url(), patient());
    let runtime = current_thread();
    runtime.block_on(async {
        let asked = tokio::task::spawn_blocking(move || get(&client).map(drop));
        asked.await.unwrap().unwrap();
    });
}

#[test]
fn a_call_can_be_carried_out_on_the_callers_runtime() {
    let busy = Step::Send(answer(503, &[], b""));
    let server = Server::plain(vec![busy, Step::Send(ok())]);
    let client = client(&server.url(), patient());
    current_thread().block_on(async {
        let call = client.request_call(Method::Get, "/x", None).unwrap();
        let answer = client.transport().send_async(call.request(), &Never).await;
        call.finish(answer, &Never).unwrap();
    });
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_call_on_the_callers_runtime_can_be_sent_to_other_threads_and_cancelled() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let server = Server::plain(vec![Step::Hold(Vec::new())]);
    let client = client(&server.url(), patient());
    let flag = std::sync::atomic::AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let call = client.request_call(Method::Get, "/x", None).unwrap();
            let answer = is_send(client.transport().send_async(call.request(), &flag));
            let answer = current_thread().block_on(answer);
            call.finish(answer, &flag)
        });
        server.wait_for_requests(1);
        flag.store(true, std::sync::atomic::Ordering::Release);
        asking.join().unwrap()
    });
    assert!(
        matches!(outcome, Err(ClientError::Cancelled)),
        "{outcome:?}"
    );
}

#[test]
fn blocking_calls_and_calls_on_a_runtime_share_no_connection() {
    // The first connection is kept by a runtime that runs no more; the second call must not wait for
    // it. `keep-alive` is what the server says.
    let kept = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_vec();
    let server = Server::plain(vec![Step::Hold(kept), Step::Send(ok())]);
    let client = client(&server.url(), patient());
    let runtime = current_thread();
    runtime.block_on(async {
        let call = client.request_call(Method::Get, "/x", None).unwrap();
        let answer = client.transport().send_async(call.request(), &Never).await;
        call.finish(answer, &Never).unwrap();
    });
    get(&client).unwrap();
    assert_eq!(server.connections(), 2);
}

#[test]
fn many_calls_at_a_time_share_a_transport() {
    let server = Server::plain((0..16).map(|_| Step::Send(ok())).collect());
    let client = client(&server.url(), patient());
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| get(&client).unwrap());
        }
    });
    assert_eq!(server.connections(), 16);
}

#[test]
fn a_transport_refuses_what_it_does_not_speak() {
    let transport = HttpTransport::new(patient()).unwrap();
    let client = client("http://registry.example", patient());
    let call = client.request_call(Method::Get, "/x", None).unwrap();
    let error = transport.send(call.request(), &Never).unwrap_err();
    assert_eq!(error.fault(), Fault::Refused);
    assert!(error.to_string().contains("registry.example"), "{error}");
}
