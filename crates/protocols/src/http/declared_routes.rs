//! The published routes of operations, such as `GET /v1/workspaces`. The definition of an operation declares its routes.
//! The parameters of the path and of the query, or the fields of the body, are the arguments of the operation.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{RawPathParams, RawQuery, State, rejection::RawPathParamsRejection},
    http::{HeaderMap, Method, StatusCode},
    routing::{MethodFilter, on},
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{
    archive, body,
    client::{CallHeaders, ClientRequestPermit},
    errors::{self, HttpRejection, HttpResult},
    middleware, operations,
    state::HttpServerState,
};
use crate::definition::{DialectDefinition, ToolRouteDefinition, ToolStreamDirection};

struct OperationRoute {
    operation: String,
    stream: Option<ToolStreamDirection>,
    success: StatusCode,
}

pub(super) fn add_declared_routes(mut router: Router<Arc<HttpServerState>>) -> Router<Arc<HttpServerState>> {
    let operations = DialectDefinition::native().map(|definition| definition.operations).unwrap_or_default();
    for operation in operations {
        for ToolRouteDefinition { method, path, status } in operation.routes {
            let method =
                Method::from_bytes(method.as_bytes()).ok().and_then(|method| MethodFilter::try_from(method).ok());
            let success = status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::OK);
            let (operation, stream) = (operation.name.clone(), operation.stream);
            let route = Arc::new(OperationRoute { operation, stream, success });
            let serve = move |state, permit, method, parameters, query, headers, content| {
                serve_route(route.clone(), state, permit, method, parameters, query, headers, content)
            };
            router = method.into_iter().fold(router, |router, method| router.route(&path, on(method, serve.clone())));
        }
    }
    router
}

#[expect(clippy::too_many_arguments, reason = "these are the extracted parts of the request")]
async fn serve_route(
    route: Arc<OperationRoute>,
    State(state): State<Arc<HttpServerState>>,
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    method: Method,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    content: Body,
) -> HttpResult {
    if !state.hosts_workspaces() {
        let single = "this server serves one workspace; start it with --workspaces to serve many";
        return Err(HttpRejection::not_found(single).into());
    }
    let invalid = HttpRejection::bad_request("the name in the URL is not valid UTF-8; correct the URL");
    let parameters = parameters.map_err(|_| invalid)?;
    let (mut arguments, content) = if method == Method::POST {
        middleware::require_json(&headers)?;
        (operations::parse_arguments(&body::read_short_body(content).await?)?, Body::empty())
    } else {
        (parse_query(query.as_deref()), content)
    };
    arguments.extend(parameters.iter().map(|(name, value)| (name.to_owned(), Value::from(value))));
    let operation = &route.operation;
    match route.stream {
        Some(ToolStreamDirection::Output) => {
            archive::serve_export(client, &state.transfer_limit, operation.clone(), arguments).await
        }
        Some(ToolStreamDirection::Input) => {
            archive::serve_import(client, &state.transfer_limit, operation.clone(), arguments, content).await
        }
        None => {
            let call_headers = CallHeaders::from_headers(&headers);
            let reply = client.call_operation(operation, &arguments, &call_headers).await?.into_result()?;
            Ok(errors::json_text_response(route.success, reply.json))
        }
    }
}

/// Numbers and booleans in the query become JSON numbers and booleans. A query parameter without a value becomes
/// `true`.
fn parse_query(query: Option<&str>) -> Map<String, Value> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = match (value, value.parse::<u64>()) {
                (_, Ok(number)) => Value::from(number),
                ("true", _) => Value::from(true),
                ("false", _) => Value::from(false),
                (text, Err(_)) => Value::from(decode_query_value(text)),
            };
            (key.to_owned(), value)
        })
        .collect()
}

/// Invalid escapes in a query parameter, such as `%zz`, stay unchanged.
fn decode_query_value(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_query_parameters() {
        let read = parse_query(Some("limit=3&cursor=a%2Eb+c&trash&label=%zz&x=%"));
        let expected = json!({ "limit": 3, "cursor": "a.b c", "trash": true, "label": "%zz", "x": "%" });
        assert_eq!(Value::Object(read), expected);
        assert_eq!(parse_query(None), Map::new());
    }
}
