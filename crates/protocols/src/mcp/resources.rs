//! Files and directories as MCP resources with URIs such as `stead:///path` or `file:///…`. Every access to an MCP
//! resource is an engine call, so that the policy and the journal apply. The method `resources/directory/read` belongs
//! to MCP's Skills extension, which the server declares only for this method.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::{
    ErrorData,
    model::{
        CustomRequest, CustomResult, ExtensionCapabilities, ListResourceTemplatesResult, ListResourcesResult,
        ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stead_engine::{
    CallOptions, Caller, Error, ErrorKind, FileKind,
    limits::READ_BYTES_MAX,
    ops::{ListArgs, ListedEntryRow, ReadArgs, StatArgs},
};

use super::{McpRequestContext, server::McpClientRequestHandler, uses_later_protocol};
use crate::{
    call_executor::{CallRequest, OtherRequestsPending},
    dialect::error_text,
    native::{self, CallStyle, without_nulls},
    prepared_call::{PreparedCall, RenderableOperation},
};

pub(super) const WORKSPACE_URI: &str = "stead:///";
const FILE_URI_PREFIX: &str = "file://";
const DIRECTORY_MIME_TYPE: &str = "inode/directory";
const DIRECTORY_READ_METHOD: &str = "resources/directory/read";

#[derive(Deserialize)]
struct McpDirectoryReadParams {
    uri: String,
    #[serde(default)]
    cursor: Option<String>,
}

/// Returns the declaration of MCP's Skills extension, which defines `resources/directory/read`.
pub(super) fn skills_extension() -> ExtensionCapabilities {
    let settings = Map::from_iter([("directoryRead".to_owned(), Value::Bool(true))]);
    ExtensionCapabilities::from([("io.modelcontextprotocol/skills".to_owned(), settings)])
}

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

/// The bytes that a URI must escape, which are all except the unreserved characters of RFC 3986.
const ESCAPED_BYTES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn percent_encode(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED_BYTES).to_string()
}

/// Returns whether a URI starts like the URI of a workspace file, even if its path is invalid.
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
    let message = "invalid resource URI; use stead:///PATH, or file:///PATH of a file in the workspace";
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
}

/// Decodes a percent-encoded path. An invalid escape gives `None`, because the library would leave the escape
/// unchanged.
fn percent_decode(text: &str) -> Option<String> {
    let is_escape =
        |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

fn resource_error(uri: &str, error: &Error) -> ErrorData {
    let data = json!({ "uri": uri, "error": CallStyle::ToolCall.error_to_json(error)["error"] });
    if matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotDirectory) {
        return ErrorData::resource_not_found(error_text(error), Some(data));
    }
    ErrorData::invalid_params(error_text(error), Some(data))
}

impl McpClientRequestHandler {
    pub(super) async fn resource_call<O: RenderableOperation>(
        &self,
        caller: &Caller,
        uri: &str,
        arguments: O,
    ) -> Result<O::Result, ErrorData> {
        let call = PreparedCall::new(arguments, CallOptions::default(), |result| result?.into_outcome());
        self.run_resource_call(caller, call).await?.map_err(|error| resource_error(uri, &error))
    }

    async fn run_resource_call<T: Send + 'static>(
        &self,
        caller: &Caller,
        call: PreparedCall<T>,
    ) -> Result<T, ErrorData> {
        let request = CallRequest::new(caller.clone(), call);
        let finished =
            self.shared.executor.run(request, OtherRequestsPending::Waiting, None, |_| std::future::pending()).await;
        finished.map(|finished| finished.reply).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    pub(super) async fn read_resource_at(
        &self,
        uri: &str,
        context: &McpRequestContext,
    ) -> Result<ReadResourceResult, ErrorData> {
        let (path, caller) = (path_of_uri(uri)?, self.caller_in_session(context));
        let stat = self.resource_call(&caller, uri, StatArgs { path: path.clone() }).await?;
        if stat.kind == FileKind::Directory {
            let list = ListArgs { path: Some(path), ..ListArgs::default() };
            let call = PreparedCall::new(list, CallOptions::default(), |result| {
                result.map(|reply| native::render_reply(Ok(reply), CallStyle::ToolCall).text)
            });
            let text = self.run_resource_call(&caller, call).await?.map_err(|error| resource_error(uri, &error))?;
            let contents = ResourceContents::text(text, uri).with_mime_type(DIRECTORY_MIME_TYPE);
            return Ok(ReadResourceResult::new(vec![contents]));
        }
        let bytes = Some(format!("0-{}", READ_BYTES_MAX - 1));
        let whole = ReadArgs { path, bytes, format: Some("base64".to_owned()), ..ReadArgs::default() };
        let encoded = self.resource_call(&caller, uri, whole).await?.content;
        let text = STANDARD.decode(&encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let contents = match text {
            Some(text) => ResourceContents::text(text, uri).with_mime_type("text/plain"),
            None => ResourceContents::blob(encoded, uri).with_mime_type("application/octet-stream"),
        };
        Ok(ReadResourceResult::new(vec![contents]))
    }

    /// Handles the methods of MCP's Skills extension; the result is `None` for all other methods.
    pub(super) async fn handle_extension_method(
        &self,
        request: &CustomRequest,
        context: &McpRequestContext,
    ) -> Option<Result<CustomResult, ErrorData>> {
        let outcome = match request.method.as_str() {
            DIRECTORY_READ_METHOD => self.read_directory(request, context).await,
            "skills/list" => Ok(Map::from_iter([("skills".to_owned(), json!([]))])),
            "skills/get" => {
                Err(ErrorData::invalid_params("this server has no skills; resources/list lists its resources", None))
            }
            _ => return None,
        };
        Some(outcome.map(|result| CustomResult::new(Value::Object(add_version_fields(result, context)))))
    }

    async fn read_directory(
        &self,
        request: &CustomRequest,
        context: &McpRequestContext,
    ) -> Result<Map<String, Value>, ErrorData> {
        let params = request.params.clone().unwrap_or_default();
        let McpDirectoryReadParams { uri, cursor } = serde_json::from_value(params)
            .map_err(|error| ErrorData::invalid_params(format!("{DIRECTORY_READ_METHOD}: {error}"), None))?;
        let arguments = ListArgs { path: Some(path_of_uri(&uri)?), all: Some(true), cursor, depth: None };
        let listed = self
            .resource_call(&self.caller_in_session(context), &uri, arguments)
            .await
            // The method has the same error code for every URI that is not a directory.
            .map_err(|error| ErrorData::invalid_params(error.message, error.data))?;
        let children: Vec<Value> = listed.entries.iter().map(|entry| child_resource(&uri, entry)).collect();
        let mut result = Map::from_iter([("resources".to_owned(), Value::Array(children))]);
        if let Some(cursor) = listed.completeness.next_call().and_then(|next| next.cursor.as_deref()) {
            result.insert("nextCursor".to_owned(), cursor.into());
        }
        Ok(result)
    }
}

fn child_resource(uri: &str, entry: &ListedEntryRow) -> Value {
    let path = entry.path.to_wire();
    let name = path.rsplit('/').next().unwrap_or(&path);
    let directory = uri.strip_suffix('/').unwrap_or(uri);
    let mime_type = (entry.kind == FileKind::Directory).then_some(DIRECTORY_MIME_TYPE);
    let uri = format!("{directory}/{}", percent_encode(name));
    without_nulls(json!({ "uri": uri, "name": name, "mimeType": mime_type, "size": entry.size }))
}

/// Adds the result fields of later MCP versions, which say that the result is complete and must not be cached.
fn add_version_fields(mut result: Map<String, Value>, context: &McpRequestContext) -> Map<String, Value> {
    if uses_later_protocol(context) {
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("ttlMs".to_owned(), json!(0));
        result.insert("cacheScope".to_owned(), json!("private"));
    }
    result
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
            ("stead:///%+4", None),
            ("stead:///%C3", None),
            ("http://x", None),
        ] {
            assert_eq!(path_of_uri(uri).ok().as_deref(), expected, "{uri}");
        }
        for name in ["a b/c%d/é.txt", "plain", "\u{1}?#&"] {
            assert_eq!(path_of_uri(&uri_of_path(name)).ok().as_deref(), Some(name), "there and back");
        }
    }
}
