//! `resources/directory/read`: what is directly in a directory, as resources, by page. The method belongs to the Skills
//! extension, which is declared for its sake; there are no skills here, and its lists say so.

use rmcp::{
    ErrorData, RoleServer,
    model::{CustomRequest, CustomResult, ProtocolVersion},
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{resources, server::Server};

/// The extension that the method belongs to.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The method.
pub(super) const METHOD: &str = "resources/directory/read";
/// What a directory is served as.
const DIRECTORY_TYPE: &str = resources::DIRECTORY_TYPE;

/// What the extension says that this server can do.
pub(super) fn settings() -> Value {
    json!({ "directoryRead": true })
}

#[derive(Deserialize)]
struct Asked {
    uri: String,
    #[serde(default)]
    cursor: Option<String>,
}

impl Server {
    /// Answers what the extension adds; nothing for other methods.
    pub(super) async fn extended(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CustomResult, ErrorData>> {
        let outcome = match request.method.as_str() {
            METHOD => self.directory(request, context).await,
            "skills/list" => Ok(Map::from_iter([("skills".to_owned(), json!([]))])),
            "skills/get" => Err(ErrorData::invalid_params("there are no skills here", None)),
            _ => return None,
        };
        Some(outcome.map(|result| CustomResult::new(Value::Object(for_era(result, context)))))
    }

    async fn directory(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Map<String, Value>, ErrorData> {
        let params = request.params.clone().unwrap_or_default();
        let Asked { uri, cursor } = serde_json::from_value(params)
            .map_err(|error| ErrorData::invalid_params(format!("{METHOD}: {error}"), None))?;
        let mut asked = json!({ "path": resources::path(&uri)?, "all": true });
        if let Some(cursor) = cursor {
            asked["cursor"] = json!(cursor);
        }
        let listed =
            self.resource_call(&self.caller(context), &uri, "list", asked).await.map_err(not_there)?;
        let entries = listed.json.get("entries").and_then(Value::as_array);
        let children: Vec<Value> =
            entries.into_iter().flatten().filter_map(|entry| child(&uri, entry)).collect();
        let mut result = Map::from_iter([("resources".to_owned(), Value::Array(children))]);
        if let Some(next) = listed.json.get("next").and_then(|next| next.get("cursor")) {
            result.insert("nextCursor".to_owned(), next.clone());
        }
        Ok(result)
    }
}

/// The method has one answer for everything that is no directory.
fn not_there(error: ErrorData) -> ErrorData {
    ErrorData::invalid_params(error.message, error.data)
}

/// An entry as a resource below the address that was read.
fn child(uri: &str, entry: &Value) -> Option<Value> {
    let name = entry.get("path")?.as_str()?.rsplit('/').next()?;
    let address = format!("{}{}", resources::as_directory(uri), resources::encoded(name));
    let mut child = json!({ "uri": address, "name": name });
    if entry.get("type")?.as_str()? == "directory" {
        child["mimeType"] = json!(DIRECTORY_TYPE);
    }
    if let Some(size) = entry.get("size") {
        child["size"] = size.clone();
    }
    Some(child)
}

/// Clients of the later era are told that an answer is whole and that it is not to be kept.
fn for_era(mut result: Map<String, Value>, context: &RequestContext<RoleServer>) -> Map<String, Value> {
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("ttlMs".to_owned(), json!(0));
        result.insert("cacheScope".to_owned(), json!("private"));
    }
    result
}
