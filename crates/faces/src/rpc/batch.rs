//! One message answered: a request, a notification, or a batch of both.

use serde_json::Value;

use super::{
    Rpc,
    conversation::Admitted,
    message::{self, Refused},
};
use crate::limits::BATCH_REQUESTS_MAX;

impl Rpc {
    /// Answers a batch, one request after the other, so that a later one sees what an earlier one did.
    pub(super) async fn batch(&self, several: Vec<Value>, admitted: &Admitted) -> Option<Value> {
        if several.is_empty() {
            return Some(Refused::request(None, "a batch holds at least one request").answer());
        }
        if several.len() > BATCH_REQUESTS_MAX {
            return Some(Refused::request(None, "the batch holds too many requests").answer());
        }
        if admitted.conversation().key().is_some() {
            let reason = "one key cannot stand for several calls: each carries its own in _meta as stead/key";
            return Some(Refused::request(None, reason).answer());
        }
        let mut answers = Vec::new();
        for one in several {
            answers.extend(self.one(one, admitted).await);
        }
        (!answers.is_empty()).then_some(Value::Array(answers))
    }

    /// Answers one request; does what a notification says.
    pub(super) async fn one(&self, value: Value, admitted: &Admitted) -> Option<Value> {
        let request = match message::request(value) {
            Ok(request) => request,
            Err(refused) => return Some(refused.answer()),
        };
        let id = request.id.clone();
        let outcome = self.call(request, admitted).await;
        id.map(|id| message::answer(id, outcome))
    }
}
