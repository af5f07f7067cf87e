//! Files and directories as resources: what a client can read by address, and hear about when it changes. Addresses are
//! `stead:///path` below the workspace, or `file:///…` where an absolute path under the root is meant.
//!
//! Everything goes through the engine, so scope and record are those of any call. A subscription is a watch that ends with
//! the conversation.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use engine::{Answer, Caller, Failure, Kind, Lasting, Terms, limits::READ_BYTES_MAX};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate, ResourceUpdatedNotificationParam, SubscriptionFilter,
    },
    service::{Peer, RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::server::Server;
use crate::{
    dialect::failure_text,
    push::{PUSHED_WAITING_MAX, Push, Pushed},
    run::{Asked, Company},
};

/// The address of the workspace itself.
const ROOT: &str = "stead:///";
/// The address of a file on this machine.
const FILE: &str = "file://";
/// What a directory is served as.
pub(super) const DIRECTORY_TYPE: &str = "inode/directory";
/// An update carries an address and no event, so it is told in nobody's words.
const WORDLESS: &str = "";
/// Most addresses of one subscription.
const ADDRESSES_MAX: usize = 1_000;

/// The subscriptions of a client of the `initialize` era.
#[derive(Default)]
pub(super) struct Subscribed {
    push: Option<Push>,
    /// The watch behind each address.
    watches: HashMap<String, String>,
}

impl Subscribed {
    /// Watches that are to end with the conversation.
    pub(super) fn close(&mut self) -> Vec<String> {
        if let Some(push) = self.push.take() {
            push.close();
        }
        self.watches.drain().map(|(_, watch)| watch).collect()
    }
}

/// What can be listed: where to begin.
pub(super) fn list() -> ListResourcesResult {
    let root = Resource::new(ROOT, "workspace")
        .with_description(
            "The files of the workspace; read it to see what is in it, subscribe to hear of changes.",
        )
        .with_mime_type(DIRECTORY_TYPE);
    ListResourcesResult::with_all_items(vec![root])
}

/// How every file is addressed.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let any = ResourceTemplate::new(template(), "file")
        .with_description("A file or directory, by its path in the workspace.");
    ListResourceTemplatesResult::with_all_items(vec![any])
}

/// The one template.
pub(super) fn template() -> String {
    format!("{ROOT}{{+path}}")
}

/// The address of a path in the workspace.
pub(super) fn address(path: &str) -> String {
    let names: Vec<String> = path.split('/').map(encoded).collect();
    format!("{ROOT}{}", names.join("/"))
}

/// A directory's address, as what its children's addresses begin with.
pub(super) fn as_directory(uri: &str) -> String {
    if uri.ends_with('/') { uri.to_owned() } else { format!("{uri}/") }
}

/// A name as it stands in an address: what is not plain is written `%41`.
pub(super) fn encoded(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let one = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(one).collect()
}

/// Whether an address is one of the workspace's, right or wrong.
pub(super) fn is_own(uri: &str) -> bool {
    uri.starts_with(ROOT) || uri.starts_with(FILE)
}

/// The path an address means.
pub(super) fn path(uri: &str) -> Result<String, ErrorData> {
    let written = match (uri.strip_prefix(ROOT), uri.strip_prefix(FILE)) {
        (Some(""), _) => return Ok(".".to_owned()),
        (Some(path), _) => path,
        (None, Some(path)) if path.starts_with('/') => path,
        (None, _) => return Err(unknown(uri)),
    };
    decoded(written).ok_or_else(|| unknown(uri))
}

fn unknown(uri: &str) -> ErrorData {
    let message = "addresses are stead:///PATH, or file:///PATH under the workspace";
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
}

/// Resolves `%41` and the like.
fn decoded(text: &str) -> Option<String> {
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

/// A failure as the protocol says it.
fn sorry(uri: &str, failure: &Failure) -> ErrorData {
    let data = json!({ "uri": uri, "error": failure.to_json()["error"] });
    if matches!(failure.kind, Kind::NotFound | Kind::NotDirectory) {
        return ErrorData::resource_not_found(failure_text(failure), Some(data));
    }
    ErrorData::invalid_params(failure_text(failure), Some(data))
}

impl Server {
    /// Runs one operation for a resource.
    pub(super) async fn resource_call(
        &self,
        caller: &Caller,
        uri: &str,
        operation: &str,
        arguments: Value,
    ) -> Result<Answer, ErrorData> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let asked = Asked {
            caller: caller.clone(),
            operation: operation.to_owned(),
            arguments,
            // What is begun for a subscription ends with it, also when this process is killed.
            terms: Terms { lasting: Lasting::Process, ..Terms::default() },
            key: None,
            hold_ms: 0,
        };
        let pace = self.made.runner.pace(&asked);
        let outcome = self.made.runner.run(asked, pace, Company::Others, None, std::future::pending()).await;
        outcome
            .map_err(|broken| ErrorData::internal_error(broken.to_string(), None))?
            .map_err(|failure| sorry(uri, &failure))
    }

    /// The content of a resource: a file whole, a directory as the list of its names.
    pub(super) async fn read_at(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let (path, caller) = (path(uri)?, self.caller(context));
        let stat = self.resource_call(&caller, uri, "stat", json!({ "path": path })).await?;
        if stat.json.get("type").and_then(Value::as_str) == Some("directory") {
            let listed = self.resource_call(&caller, uri, "list", json!({ "path": path })).await?;
            let contents = ResourceContents::text(listed.text, uri).with_mime_type(DIRECTORY_TYPE);
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

    /// Begins the watch behind an address. A directory is heard with everything below it.
    async fn watch_at(&self, uri: &str, caller: &Caller) -> Result<String, ErrorData> {
        let asked = json!({ "path": path(uri)?, "recursive": true });
        let begun = self.resource_call(caller, uri, "watch", asked).await?;
        let id = begun.json.get("watch").and_then(Value::as_str);
        id.map(str::to_owned).ok_or_else(|| ErrorData::internal_error("the watch has no name", None))
    }

    /// Ends watches; one that is over already is as good.
    async fn unwatch(&self, caller: &Caller, watches: impl IntoIterator<Item = String>) {
        for watch in watches {
            drop(self.resource_call(caller, ROOT, "unwatch", json!({ "watch": watch })).await);
        }
    }

    /// `resources/subscribe`.
    pub(super) async fn subscribe_to(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut subscribed = self.subscribed.lock().await;
        if subscribed.watches.contains_key(uri) {
            return Ok(());
        }
        if subscribed.watches.len() >= ADDRESSES_MAX {
            return Err(ErrorData::invalid_params("too many subscriptions; unsubscribe from some", None));
        }
        let caller = self.caller(context);
        let id = self.watch_at(uri, &caller).await?;
        subscribed.watches.insert(uri.to_owned(), id.clone());
        let push = subscribed.push.get_or_insert_with(|| {
            let (to, heard) = mpsc::channel(PUSHED_WAITING_MAX);
            tokio::spawn(tell(heard, context.peer.clone(), self.addresses.clone()));
            Push::new(to)
        });
        self.addresses.lock().await.insert(id.clone(), uri.to_owned());
        push.begin(self.made.runner.engine(), &caller, &id, WORDLESS);
        Ok(())
    }

    /// `resources/unsubscribe`. Nothing happens when there is no such subscription.
    pub(super) async fn unsubscribe_from(&self, uri: &str, context: &RequestContext<RoleServer>) {
        let mut subscribed = self.subscribed.lock().await;
        if let Some(id) = subscribed.watches.remove(uri) {
            if let Some(push) = &subscribed.push {
                push.end(&id);
            }
            self.addresses.lock().await.remove(&id);
            self.unwatch(&self.caller(context), [id]).await;
        }
    }

    /// Ends every subscription of the `initialize` era.
    pub(super) async fn end_subscriptions(&self) {
        self.events.close();
        let watches = self.subscribed.lock().await.close();
        self.unwatch(&self.made.caller, watches).await;
    }

    /// The addresses of a subscription that mean anything.
    pub(super) fn meant(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let uris = requested.resource_subscriptions.iter().flatten();
        let known = uris.filter(|uri| path(uri).is_ok()).take(ADDRESSES_MAX).cloned();
        SubscriptionFilter::builder().resource_subscriptions(known.collect::<Vec<_>>()).build()
    }

    /// `subscriptions/listen`: tells until the client has heard enough.
    pub(super) async fn listen_for(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let (to, mut heard) = mpsc::channel(PUSHED_WAITING_MAX);
        let push = Push::new(to);
        let mut addresses = HashMap::new();
        let mut outcome = Ok(());
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            match self.watch_at(uri, &self.made.caller).await {
                Ok(id) => {
                    push.begin(self.made.runner.engine(), &self.made.caller, &id, WORDLESS);
                    addresses.insert(id, uri.clone());
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        // The client was told that it is subscribed before the watches stood: what changed in between, it must look for.
        for uri in addresses.values().filter(|_| outcome.is_ok()) {
            drop(context.sink().notify_resource_updated(uri.clone()).await);
        }
        while outcome.is_ok() {
            let uris = tokio::select! {
                () = context.cancelled() => break,
                first = heard.recv() => match first {
                    Some(first) => together(first, &mut heard, &addresses),
                    None => break,
                },
            };
            for uri in uris {
                if context.sink().notify_resource_updated(uri).await.is_err() {
                    break;
                }
            }
        }
        push.close();
        self.unwatch(&self.made.caller, addresses.into_keys()).await;
        outcome
    }
}

/// Tells a client of the `initialize` era.
async fn tell(
    mut heard: mpsc::Receiver<Pushed>,
    peer: Peer<RoleServer>,
    addresses: super::server::Addresses,
) {
    while let Some(first) = heard.recv().await {
        let uris = together(first, &mut heard, &*addresses.lock().await);
        for uri in uris {
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                return;
            }
        }
    }
}

/// The addresses of what was heard by now, each once.
fn together(
    first: Pushed,
    heard: &mut mpsc::Receiver<Pushed>,
    addresses: &HashMap<String, String>,
) -> Vec<String> {
    let mut uris: Vec<String> = Vec::new();
    let mut next = Some(first);
    while let Some(pushed) = next {
        if let Some(uri) = addresses.get(&pushed.heard.watch).filter(|uri| !uris.contains(uri)) {
            uris.push(uri.clone());
        }
        next = heard.try_recv().ok();
    }
    uris
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_mean_paths() {
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
            assert_eq!(path(uri).ok().as_deref(), expected, "{uri}");
        }
        for name in ["a b/c%d/é.txt", "plain", "\u{1}?#&"] {
            assert_eq!(path(&address(name)).ok().as_deref(), Some(name), "there and back");
        }
    }
}
