//! Files and directories as MCP resources. URIs are `stead:///path` relative to the workspace, or `file:///…` for an
//! absolute path under the root.
//!
//! Every access goes through the engine, so policy and journal apply as to any call. A subscription is a watch that
//! ends with the connection.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate, ResourceUpdatedNotificationParam, SubscriptionFilter,
    },
    service::{Peer, RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use stead_engine::{CallOptions, CallOutcome, Caller, Error, ErrorKind, WatchLifetime, limits::READ_BYTES_MAX};
use tokio::sync::mpsc;

use super::server::McpServer;
use crate::{
    call_executor::{CallRequest, OtherRequests},
    dialect::error_text,
    event_pusher::{EventPusher, PushedEvent, QUEUED_EVENTS_MAX},
};

const WORKSPACE_URI: &str = "stead:///";
const FILE_URI_PREFIX: &str = "file://";
pub(super) const DIRECTORY_MIME_TYPE: &str = "inode/directory";
/// An update carries a URI and no event, so no dialect renders it.
const NO_DIALECT: &str = "";
const SUBSCRIPTION_URIS_MAX: usize = 1_000;

/// The subscriptions of a client of the `initialize` era.
#[derive(Default)]
pub(super) struct McpSubscriptions {
    event_pusher: Option<EventPusher>,
    /// The watch behind each URI.
    watches: HashMap<String, String>,
}

impl McpSubscriptions {
    /// Stops pushing and returns the watches to end.
    pub(super) fn close(&mut self) -> Vec<String> {
        if let Some(pusher) = self.event_pusher.take() {
            pusher.close();
        }
        self.watches.drain().map(|(_, watch)| watch).collect()
    }
}

/// Lists the workspace root only.
pub(super) fn list_resources() -> ListResourcesResult {
    let root = Resource::new(WORKSPACE_URI, "workspace")
        .with_description("The files of the workspace; read it to list them, subscribe to be notified of changes.")
        .with_mime_type(DIRECTORY_MIME_TYPE);
    ListResourcesResult::with_all_items(vec![root])
}

pub(super) fn list_templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(uri_template(), "file")
        .with_description("A file or directory, by its path in the workspace.");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

pub(super) fn uri_template() -> String {
    format!("{WORKSPACE_URI}{{+path}}")
}

pub(super) fn uri_of_path(path: &str) -> String {
    let names: Vec<String> = path.split('/').map(percent_encode).collect();
    format!("{WORKSPACE_URI}{}", names.join("/"))
}

/// A directory's URI with a trailing slash, the prefix of its children.
pub(super) fn directory_uri(uri: &str) -> String {
    if uri.ends_with('/') { uri.to_owned() } else { format!("{uri}/") }
}

pub(super) fn percent_encode(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let one = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(one).collect()
}

/// Whether the URI has a scheme of the workspace, valid or not.
pub(super) fn is_workspace_uri(uri: &str) -> bool {
    uri.starts_with(WORKSPACE_URI) || uri.starts_with(FILE_URI_PREFIX)
}

pub(super) fn path_of_uri(uri: &str) -> Result<String, ErrorData> {
    let path = match (uri.strip_prefix(WORKSPACE_URI), uri.strip_prefix(FILE_URI_PREFIX)) {
        (Some(""), _) => return Ok(".".to_owned()),
        (Some(path), _) => path,
        (None, Some(path)) if path.starts_with('/') => path,
        (None, _) => return Err(unknown_resource_error(uri)),
    };
    percent_decode(path).ok_or_else(|| unknown_resource_error(uri))
}

fn unknown_resource_error(uri: &str) -> ErrorData {
    let message = "resource URIs are stead:///PATH, or file:///PATH under the workspace";
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

fn resource_error(uri: &str, error: &Error) -> ErrorData {
    let data = json!({ "uri": uri, "error": error.to_json()["error"] });
    if matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotDirectory) {
        return ErrorData::resource_not_found(error_text(error), Some(data));
    }
    ErrorData::invalid_params(error_text(error), Some(data))
}

impl McpServer {
    pub(super) async fn resource_call(
        &self,
        caller: &Caller,
        uri: &str,
        operation: &str,
        arguments: Value,
    ) -> Result<CallOutcome, ErrorData> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let request = CallRequest {
            caller: caller.clone(),
            operation: operation.to_owned(),
            arguments,
            // The watch of a subscription ends with it, even if this process is killed.
            options: CallOptions { watch_lifetime: WatchLifetime::Process, ..CallOptions::default() },
            idempotency_key: None,
            approval_wait_ms: 0,
        };
        let cost_class = self.shared.executor.cost_class(&request);
        let outcome =
            self.shared.executor.run(request, cost_class, OtherRequests::Waiting, None, std::future::pending()).await;
        outcome
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?
            .map_err(|error| resource_error(uri, &error))
    }

    /// Reads a resource: the whole file, or the list of a directory.
    pub(super) async fn read_resource_at(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let (path, caller) = (path_of_uri(uri)?, self.caller_in_session(context));
        let stat = self.resource_call(&caller, uri, "stat", json!({ "path": path })).await?;
        if stat.json.get("type").and_then(Value::as_str) == Some("directory") {
            let listed = self.resource_call(&caller, uri, "list", json!({ "path": path })).await?;
            let contents = ResourceContents::text(listed.text, uri).with_mime_type(DIRECTORY_MIME_TYPE);
            return Ok(ReadResourceResult::new(vec![contents]));
        }
        let bytes = format!("0-{}", READ_BYTES_MAX - 1);
        let whole = json!({ "path": path, "bytes": bytes, "as": "base64" });
        let read = self.resource_call(&caller, uri, "read", whole).await?;
        let encoded = read.json.get("content").and_then(Value::as_str).unwrap_or_default();
        let text = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let contents = match text {
            Some(text) => ResourceContents::text(text, uri).with_mime_type("text/plain"),
            None => ResourceContents::blob(encoded, uri).with_mime_type("application/octet-stream"),
        };
        Ok(ReadResourceResult::new(vec![contents]))
    }

    /// Begins the watch behind a URI. A directory is watched recursively.
    async fn watch_uri(&self, uri: &str, caller: &Caller) -> Result<String, ErrorData> {
        let arguments = json!({ "path": path_of_uri(uri)?, "recursive": true });
        let started = self.resource_call(caller, uri, "watch", arguments).await?;
        let id = started.json.get("watch").and_then(Value::as_str);
        id.map(str::to_owned).ok_or_else(|| ErrorData::internal_error("the watch has no id", None))
    }

    /// Ends watches; one that has ended already is ignored.
    async fn end_watches(&self, caller: &Caller, watches: impl IntoIterator<Item = String>) {
        for watch in watches {
            drop(self.resource_call(caller, WORKSPACE_URI, "unwatch", json!({ "watch": watch })).await);
        }
    }

    pub(super) async fn subscribe_to_uri(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut subscriptions = self.subscriptions.lock().await;
        if subscriptions.watches.contains_key(uri) {
            return Ok(());
        }
        if subscriptions.watches.len() >= SUBSCRIPTION_URIS_MAX {
            return Err(ErrorData::invalid_params("too many subscriptions; unsubscribe from some", None));
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

    pub(super) async fn unsubscribe_from_uri(&self, uri: &str, context: &RequestContext<RoleServer>) {
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

    /// The valid URIs of a subscription.
    pub(super) fn known_subscriptions(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let uris = requested.resource_subscriptions.iter().flatten();
        let known = uris.filter(|uri| path_of_uri(uri).is_ok()).take(SUBSCRIPTION_URIS_MAX).cloned();
        SubscriptionFilter::builder().resource_subscriptions(known.collect::<Vec<_>>()).build()
    }

    /// `subscriptions/listen`: sends updates until the client cancels.
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
        // The subscription was confirmed before the watches started, so report every URI once for changes in between.
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

/// Sends updates to a client of the `initialize` era.
async fn notify_updates(
    mut events: mpsc::Receiver<PushedEvent>,
    peer: Peer<RoleServer>,
    uris_by_watch: super::server::WatchedUris,
) {
    while let Some(first) = events.recv().await {
        let uris = drain_changed_uris(first, &mut events, &*uris_by_watch.lock().await);
        for uri in uris {
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                return;
            }
        }
    }
}

/// The URIs of all queued events, each once.
fn drain_changed_uris(
    first: PushedEvent,
    events: &mut mpsc::Receiver<PushedEvent>,
    uris_by_watch: &HashMap<String, String>,
) -> Vec<String> {
    let mut uris: Vec<String> = Vec::new();
    let mut next = Some(first);
    while let Some(pushed) = next {
        if let Some(uri) = uris_by_watch.get(&pushed.notification.watch_id).filter(|uri| !uris.contains(uri)) {
            uris.push(uri.clone());
        }
        next = events.try_recv().ok();
    }
    uris
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_map_to_paths() {
        for (uri, expected) in [
            ("stead:///", Some(".")),
            ("stead:///src/main.rs", Some("src/main.rs")),
            ("stead:///with%20space", Some("with space")),
            ("file:///ws/a%20b", Some("/ws/a b")),
            ("file://host/a", None),
            ("stead:///%zz", None),
            ("stead:///%4", None),
            ("http://x", None),
        ] {
            assert_eq!(path_of_uri(uri).ok().as_deref(), expected, "{uri}");
        }
        for name in ["a b/c%d/é.txt", "plain", "\u{1}?#&"] {
            assert_eq!(path_of_uri(&uri_of_path(name)).ok().as_deref(), Some(name), "there and back");
        }
    }
}
