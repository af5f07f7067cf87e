//! The state of one JSON-RPC client's connection: its session, its running calls, and whether it is still open.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use stead_engine::{CallDurationClass, Caller, CallerResourceLifetime};
use tokio::sync::{Notify, watch};

use super::transport::MessageSink;
use crate::{
    call_executor::{ConnectionCurrentSession, OtherRequestsPending, until_disconnected},
    event_pusher::EventPusher,
};

/// A JSON-RPC client's connection.
pub struct RpcConnection {
    running_calls: Mutex<HashMap<String, Vec<Arc<Notify>>>>,
    pending_messages: AtomicUsize,
    closed: watch::Sender<bool>,
    pub(super) session: ConnectionCurrentSession,
    /// Tells the engine to close the caller's open buffers when the connection ends. The lifetime is `None` for a
    /// single HTTP request, which closes no buffers.
    caller_lifetime: Option<CallerResourceLifetime>,
    pub(super) idempotency_key: Option<String>,
    pub(super) event_pusher: Option<EventPusher>,
    pub(super) sink: Option<Arc<dyn MessageSink>>,
}

impl Default for RpcConnection {
    fn default() -> Self {
        let (closed, _) = watch::channel(false);
        Self {
            running_calls: Mutex::default(),
            pending_messages: AtomicUsize::new(0),
            closed,
            session: ConnectionCurrentSession::default(),
            caller_lifetime: Some(CallerResourceLifetime::connected()),
            idempotency_key: None,
            event_pusher: None,
            sink: None,
        }
    }
}

impl RpcConnection {
    pub(super) fn with_output(event_pusher: EventPusher, sink: Arc<dyn MessageSink>) -> Self {
        let mut connection = Self::default();
        (connection.event_pusher, connection.sink) = (Some(event_pusher), Some(sink));
        connection
    }

    pub(crate) fn for_single_request(session: Option<String>, idempotency_key: Option<String>) -> Self {
        let mut connection = Self::default();
        (connection.session, connection.caller_lifetime, connection.idempotency_key) =
            (ConnectionCurrentSession::with_session(session), None, idempotency_key);
        connection
    }

    /// Counts a received JSON-RPC message as pending until the returned guard is dropped.
    pub fn accept_message(self: &Arc<Self>) -> RpcPendingMessageGuard {
        self.pending_messages.fetch_add(1, Ordering::Relaxed);
        RpcPendingMessageGuard(self.clone())
    }

    /// Closes the connection, which cancels calls that wait for an event and lets other calls finish.
    pub fn close(&self) {
        self.closed.send_replace(true);
        if let Some(pusher) = &self.event_pusher {
            pusher.close();
        }
    }

    pub(super) fn cancel_call(&self, id: &Value) {
        let running = crate::lock(&self.running_calls);
        running.get(&id.to_string()).into_iter().flatten().for_each(|call| call.notify_one());
    }
}

impl Drop for RpcConnection {
    fn drop(&mut self) {
        self.caller_lifetime.iter().for_each(CallerResourceLifetime::end);
    }
}

/// A guard for a JSON-RPC message that the server has received and not yet answered.
pub struct RpcPendingMessageGuard(Arc<RpcConnection>);

impl Drop for RpcPendingMessageGuard {
    fn drop(&mut self) {
        self.0.pending_messages.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RpcPendingMessageGuard {
    pub(super) fn caller_in_session(&self, caller: &Caller) -> Caller {
        let mut caller = self.0.session.apply_to(caller.clone());
        if let Some(lifetime) = &self.0.caller_lifetime {
            caller.lifetime = lifetime.clone();
        }
        caller
    }

    pub(super) fn connection(&self) -> &RpcConnection {
        &self.0
    }

    pub(super) fn other_requests(&self) -> OtherRequestsPending {
        if self.0.pending_messages.load(Ordering::Relaxed) <= 1 {
            OtherRequestsPending::None
        } else {
            OtherRequestsPending::Waiting
        }
    }

    /// Registers a running call under its request id, so that the client can cancel the call.
    pub(super) fn register_call(&self, id: Option<&Value>) -> RpcRunningCall<'_> {
        let cancel_notify = Arc::new(Notify::new());
        let id = id.map(Value::to_string);
        if let Some(id) = &id {
            let mut running = crate::lock(&self.0.running_calls);
            running.entry(id.clone()).or_default().push(cancel_notify.clone());
        }
        RpcRunningCall { connection: &self.0, id, cancel_notify }
    }
}

pub(super) struct RpcRunningCall<'a> {
    connection: &'a RpcConnection,
    id: Option<String>,
    cancel_notify: Arc<Notify>,
}

impl RpcRunningCall<'_> {
    /// Waits until the client cancels the call, or disconnects while the call waits for an event.
    pub(super) async fn until_cancelled(&self, cost_class: CallDurationClass) {
        tokio::select! {
            () = self.cancel_notify.notified() => {}
            () = until_disconnected(cost_class, self.connection.closed.subscribe()) => {}
        }
    }
}

impl Drop for RpcRunningCall<'_> {
    fn drop(&mut self) {
        let Some(id) = &self.id else { return };
        let mut running = crate::lock(&self.connection.running_calls);
        if let Some(calls) = running.get_mut(id) {
            calls.retain(|call| !Arc::ptr_eq(call, &self.cancel_notify));
            if calls.is_empty() {
                running.remove(id);
            }
        }
    }
}
