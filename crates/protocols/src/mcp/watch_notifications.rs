//! Sends events of watches that a client began with a tool, as notifications while the connection lasts. Only clients
//! of the `initialize` era get them; later clients poll by cursor.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::{
    RoleServer,
    model::{CustomNotification, ProtocolVersion, ServerNotification},
    service::{Peer, RequestContext},
};
use serde_json::Value;
use stead_engine::{CallOutcome, Caller, Engine};
use tokio::sync::mpsc;

use crate::{
    dialect::DialectSet,
    event_pusher::{EVENT_METHOD, EventPusher, PushedEvent, QUEUED_EVENTS_MAX, WatchEffect},
};

/// Pushes events to one client.
#[derive(Default)]
pub(super) struct McpWatchNotifier(Mutex<Option<EventPusher>>);

impl McpWatchNotifier {
    /// Starts or stops pushing after a successful call.
    pub(super) fn apply_call(
        &self,
        effect: &WatchEffect,
        outcome: &CallOutcome,
        (engine, caller): (&Engine, &Caller),
        (dialects, dialect): (&Arc<DialectSet>, &str),
        context: &RequestContext<RoleServer>,
    ) {
        let is_modern = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        if is_modern || matches!(effect, WatchEffect::None) {
            return;
        }
        let mut pusher = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pusher = pusher.get_or_insert_with(|| {
            let (sender, events) = mpsc::channel(QUEUED_EVENTS_MAX);
            tokio::spawn(send_notifications(events, context.peer.clone(), dialects.clone()));
            EventPusher::new(sender)
        });
        pusher.apply_call(effect, outcome, engine, caller, dialect);
    }

    /// Stops pushing. The watches stay, and their owner can poll them.
    pub(super) fn close(&self) {
        if let Some(pusher) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            pusher.close();
        }
    }
}

/// Sends events, rendered in the dialect that began the watch.
async fn send_notifications(
    mut events: mpsc::Receiver<PushedEvent>,
    peer: Peer<RoleServer>,
    dialects: Arc<DialectSet>,
) {
    while let Some(pushed) = events.recv().await {
        let params = Value::Object(pushed.render(&dialects));
        let notification = CustomNotification::new(EVENT_METHOD, Some(params));
        if peer.send_notification(ServerNotification::CustomNotification(notification)).await.is_err() {
            return;
        }
    }
}
