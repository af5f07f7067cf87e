//! `resources/directory/read`: the children of a directory as resources, paged. The method belongs to the Skills
//! extension, which is declared only for it; the list of skills is always empty.

use rmcp::{
    ErrorData, RoleServer,
    model::{CustomRequest, CustomResult, ProtocolVersion},
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{resources, server::McpServer};

pub(super) const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
pub(super) const DIRECTORY_READ_METHOD: &str = "resources/directory/read";
const DIRECTORY_MIME_TYPE: &str = resources::DIRECTORY_MIME_TYPE;

pub(super) fn extension_settings() -> Value {
    json!({ "directoryRead": true })
}

#[derive(Deserialize)]
struct DirectoryReadParams {
    uri: String,
    #[serde(default)]
    cursor: Option<String>,
}

impl McpServer {
    /// Handles the methods of the extension; `None` for others.
    pub(super) async fn handle_extension_method(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CustomResult, ErrorData>> {
        let outcome = match request.method.as_str() {
            DIRECTORY_READ_METHOD => self.read_directory(request, context).await,
            "skills/list" => Ok(Map::from_iter([("skills".to_owned(), json!([]))])),
            "skills/get" => Err(ErrorData::invalid_params("this server has no skills", None)),
            _ => return None,
        };
        Some(outcome.map(|result| CustomResult::new(Value::Object(add_era_fields(result, context)))))
    }

    async fn read_directory(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Map<String, Value>, ErrorData> {
        let params = request.params.clone().unwrap_or_default();
        let DirectoryReadParams { uri, cursor } = serde_json::from_value(params)
            .map_err(|error| ErrorData::invalid_params(format!("{DIRECTORY_READ_METHOD}: {error}"), None))?;
        let mut arguments = json!({ "path": resources::path_of_uri(&uri)?, "all": true });
        if let Some(cursor) = cursor {
            arguments["cursor"] = json!(cursor);
        }
        let listed = self
            .resource_call(&self.caller_in_session(context), &uri, "list", arguments)
            .await
            .map_err(not_found_error)?;
        let entries = listed.json.get("entries").and_then(Value::as_array);
        let children: Vec<Value> =
            entries.into_iter().flatten().filter_map(|entry| child_resource(&uri, entry)).collect();
        let mut result = Map::from_iter([("resources".to_owned(), Value::Array(children))]);
        if let Some(next) = listed.json.get("next").and_then(|next| next.get("cursor")) {
            result.insert("nextCursor".to_owned(), next.clone());
        }
        Ok(result)
    }
}

/// The method uses one error for everything that is not a directory.
fn not_found_error(error: ErrorData) -> ErrorData {
    ErrorData::invalid_params(error.message, error.data)
}

fn child_resource(uri: &str, entry: &Value) -> Option<Value> {
    let name = entry.get("path")?.as_str()?.rsplit('/').next()?;
    let address = format!("{}{}", resources::directory_uri(uri), resources::percent_encode(name));
    let mut child = json!({ "uri": address, "name": name });
    if entry.get("type")?.as_str()? == "directory" {
        child["mimeType"] = json!(DIRECTORY_MIME_TYPE);
    }
    if let Some(size) = entry.get("size") {
        child["size"] = size.clone();
    }
    Some(child)
}

/// Adds the fields that later clients require: the result is complete and must not be cached.
fn add_era_fields(mut result: Map<String, Value>, context: &RequestContext<RoleServer>) -> Map<String, Value> {
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("ttlMs".to_owned(), json!(0));
        result.insert("cacheScope".to_owned(), json!("private"));
    }
    result
}
