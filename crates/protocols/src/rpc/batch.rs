//! Answers one message: a request, a notification, or a batch of both.

use serde_json::Value;

use super::{
    RpcServer,
    connection::RpcPendingMessage,
    message::{self, RpcMessageError},
};
use crate::limits::BATCH_REQUESTS_MAX;

impl RpcServer {
    /// Answers the requests of a batch in order, so that a later one sees the effects of an earlier one.
    pub(super) async fn answer_batch(&self, requests: Vec<Value>, pending: &RpcPendingMessage) -> Option<Value> {
        if requests.is_empty() {
            return Some(
                RpcMessageError::invalid_request(None, "a batch must hold at least one request").into_response(),
            );
        }
        if requests.len() > BATCH_REQUESTS_MAX {
            return Some(RpcMessageError::invalid_request(None, "the batch holds too many requests").into_response());
        }
        if pending.connection().idempotency_key().is_some() {
            let reason = "an Idempotency-Key header cannot cover a batch; set _meta[\"stead/key\"] on each request";
            return Some(RpcMessageError::invalid_request(None, reason).into_response());
        }
        let mut responses = Vec::new();
        for request in requests {
            responses.extend(self.answer_request(request, pending).await);
        }
        (!responses.is_empty()).then_some(Value::Array(responses))
    }

    /// Answers one request, or runs a notification.
    pub(super) async fn answer_request(&self, value: Value, pending: &RpcPendingMessage) -> Option<Value> {
        let request = match message::parse_request(value) {
            Ok(request) => request,
            Err(error) => return Some(error.into_response()),
        };
        let id = request.id.clone();
        let outcome = self.dispatch(request, pending).await;
        id.map(|id| message::response(id, outcome))
    }
}
