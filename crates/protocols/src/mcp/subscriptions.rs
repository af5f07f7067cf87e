//! Sends MCP notifications about changes of subscribed resources and about events of watches. A resource subscription
//! is a watch of the engine that ends with the connection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use rmcp::{
    ErrorData, RoleServer,
    model::{CustomNotification, ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter},
    service::{Peer, SubscriptionContext},
};
use stead_engine::{
    Caller, Engine, WatchLifetimeKind,
    ops::{BegunOrEndedWatch, UnwatchArgs, WatchArgs},
};
use tokio::sync::mpsc;

use super::{
    McpRequestContext,
    resources::{WORKSPACE_URI, path_of_uri},
    server::McpClientRequestHandler,
    uses_later_protocol,
};
use crate::{
    dialect::DialectSet,
    event_pusher::{EVENT_METHOD, EventPusher, PushedEvent},
    limits::{QUEUED_EVENTS_MAX, SUBSCRIPTION_URIS_MAX},
};

/// The dialect name of a subscription's watch is empty, because an update contains only a URI and needs no dialect.
const NO_DIALECT: &str = "";

/// Maps the id of a subscription's watch to the subscribed URI.
pub(super) type WatchedUris = Arc<tokio::sync::Mutex<HashMap<String, String>>>;

#[derive(Default)]
pub(super) struct McpSubscriptions {
    event_pusher: Option<EventPusher>,
    /// Maps each subscribed URI to the id of its watch.
    watches: HashMap<String, String>,
}

impl McpSubscriptions {
    /// Stops sending updates and returns the ids of all watches, which the caller must end.
    fn close(&mut self) -> Vec<String> {
        if let Some(pusher) = self.event_pusher.take() {
            pusher.close();
        }
        self.watches.drain().map(|(_, watch)| watch).collect()
    }
}

impl McpClientRequestHandler {
    async fn watch_uri(&self, uri: &str, caller: &Caller) -> Result<String, ErrorData> {
        // The watch of a subscription ends with the subscription, even if this process is killed.
        let (path, lifetime) = (Some(path_of_uri(uri)?), WatchLifetimeKind::Process);
        let arguments = WatchArgs { path, recursive: true, lifetime, ..WatchArgs::default() };
        Ok(self.resource_call(caller, uri, arguments).await?.watch)
    }

    /// Ends watches and ignores errors, because a watch may already have ended.
    async fn end_watches(&self, caller: &Caller, watches: impl IntoIterator<Item = String>) {
        for watch in watches {
            drop(self.resource_call(caller, WORKSPACE_URI, UnwatchArgs { watch }).await);
        }
    }

    pub(super) async fn subscribe_to_uri(&self, uri: &str, context: &McpRequestContext) -> Result<(), ErrorData> {
        let mut subscriptions = self.subscriptions.lock().await;
        if subscriptions.watches.contains_key(uri) {
            return Ok(());
        }
        if subscriptions.watches.len() >= SUBSCRIPTION_URIS_MAX {
            return Err(ErrorData::invalid_params("too many subscriptions; unsubscribe from some first", None));
        }
        let caller = self.caller_in_session(context);
        let id = self.watch_uri(uri, &caller).await?;
        subscriptions.watches.insert(uri.to_owned(), id.clone());
        let pusher = subscriptions.event_pusher.get_or_insert_with(|| {
            let (sender, events) = mpsc::channel(QUEUED_EVENTS_MAX);
            tokio::spawn(notify_updates(events, context.peer.clone(), self.watched_uris.clone()));
            EventPusher::new(sender)
        });
        self.watched_uris.lock().await.insert(id.clone(), uri.to_owned());
        pusher.add_watch(self.shared.executor.engine(), &caller, &id, NO_DIALECT);
        Ok(())
    }

    pub(super) async fn unsubscribe_from_uri(&self, uri: &str, context: &McpRequestContext) {
        let mut subscriptions = self.subscriptions.lock().await;
        if let Some(id) = subscriptions.watches.remove(uri) {
            if let Some(pusher) = &subscriptions.event_pusher {
                pusher.remove_watch(&id);
            }
            self.watched_uris.lock().await.remove(&id);
            self.end_watches(&self.caller_in_session(context), [id]).await;
        }
    }

    pub(super) async fn end_subscriptions(&self) {
        self.watch_notifier.close();
        let watches = self.subscriptions.lock().await.close();
        self.end_watches(&self.shared.caller, watches).await;
    }

    pub(super) fn known_subscriptions(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let uris = requested.resource_subscriptions.iter().flatten();
        let known = uris.filter(|uri| path_of_uri(uri).is_ok()).take(SUBSCRIPTION_URIS_MAX).cloned();
        SubscriptionFilter::builder().resource_subscriptions(known.collect::<Vec<_>>()).build()
    }

    /// Serves `subscriptions/listen`: sends updates of the accepted URIs until the client cancels.
    pub(super) async fn serve_subscription(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let (sender, mut events) = mpsc::channel(QUEUED_EVENTS_MAX);
        let pusher = EventPusher::new(sender);
        let mut uris_by_watch = HashMap::new();
        let mut outcome = Ok(());
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            match self.watch_uri(uri, &self.shared.caller).await {
                Ok(id) => {
                    pusher.add_watch(self.shared.executor.engine(), &self.shared.caller, &id, NO_DIALECT);
                    uris_by_watch.insert(id, uri.clone());
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        // The client got the confirmation of its subscription before the watches started. Every URI is reported once,
        // because a change in between is missed.
        for uri in uris_by_watch.values().filter(|_| outcome.is_ok()) {
            drop(context.sink().notify_resource_updated(uri.clone()).await);
        }
        while outcome.is_ok() {
            let uris = tokio::select! {
                () = context.cancelled() => break,
                first = events.recv() => match first {
                    Some(first) => drain_changed_uris(first, &mut events, &uris_by_watch),
                    None => break,
                },
            };
            for uri in uris {
                if context.sink().notify_resource_updated(uri).await.is_err() {
                    break;
                }
            }
        }
        pusher.close();
        self.end_watches(&self.shared.caller, uris_by_watch.into_keys()).await;
        outcome
    }
}

async fn notify_updates(mut events: mpsc::Receiver<PushedEvent>, peer: Peer<RoleServer>, uris_by_watch: WatchedUris) {
    while let Some(first) = events.recv().await {
        let uris = drain_changed_uris(first, &mut events, &*uris_by_watch.lock().await);
        for uri in uris {
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                return;
            }
        }
    }
}

fn drain_changed_uris(
    first: PushedEvent,
    events: &mut mpsc::Receiver<PushedEvent>,
    uris_by_watch: &HashMap<String, String>,
) -> Vec<String> {
    let mut uris: Vec<String> = Vec::new();
    let mut next = Some(first);
    while let Some(pushed) = next {
        if let Some(uri) = uris_by_watch.get(&pushed.event.watch).filter(|uri| !uris.contains(uri)) {
            uris.push(uri.clone());
        }
        next = events.try_recv().ok();
    }
    uris
}

/// Sends the events of the watches that one client started with a tool. Clients of later MCP versions get no
/// notifications about watch events, and poll for events with a cursor.
#[derive(Default)]
pub(super) struct McpWatchEventNotifier(Mutex<Option<EventPusher>>);

impl McpWatchEventNotifier {
    pub(super) fn apply_call(
        &self,
        change: &(BegunOrEndedWatch, String),
        (engine, caller): (&Engine, &Caller),
        (dialects, dialect): (&Arc<DialectSet>, &str),
        context: &McpRequestContext,
    ) {
        if uses_later_protocol(context) {
            return;
        }
        let mut pusher = crate::lock(&self.0);
        let pusher = pusher.get_or_insert_with(|| {
            let (sender, events) = mpsc::channel(QUEUED_EVENTS_MAX);
            tokio::spawn(send_notifications(events, context.peer.clone(), dialects.clone()));
            EventPusher::new(sender)
        });
        pusher.apply_call(change, engine, caller, dialect);
    }

    /// Stops the notifications about watch events; the client can still poll for the events of its watches.
    pub(super) fn close(&self) {
        if let Some(pusher) = crate::lock(&self.0).take() {
            pusher.close();
        }
    }
}

async fn send_notifications(
    mut events: mpsc::Receiver<PushedEvent>,
    peer: Peer<RoleServer>,
    dialects: Arc<DialectSet>,
) {
    while let Some(pushed) = events.recv().await {
        let notification = CustomNotification::new(EVENT_METHOD, Some(pushed.render(&dialects)));
        if peer.send_notification(ServerNotification::CustomNotification(notification)).await.is_err() {
            return;
        }
    }
}
