//! What a person asks begins a turn: each prompt that goes by is marked in the journals of its session's roots, so that
//! what the agent does from there on can be seen and taken back as one.
//!
//! Promises that no prompt waits for its mark or is changed by it, and that no write of the session comes between a prompt
//! and its mark. A mark that fails is let go.

use std::sync::Arc;

use super::session::{Root, Session};
use crate::{
    dialect::acp,
    run::{Asked, Company},
};

/// Begins to mark a prompt of this session. Must be called before the prompt goes on, inside a runtime.
pub(super) fn mark(session: Arc<Session>) {
    // Where so many marks are under way nothing is written between them, so one more would tell nothing.
    let Some(marking) = session.marking() else { return };
    tokio::spawn(async move {
        // Roots that share a journal are marked there once each: no write comes between, so it is one turn all the same.
        for root in session.roots() {
            mark_in(root).await;
        }
        drop(marking);
    });
}

async fn mark_in(root: &Root) {
    let request = acp::turn();
    let asked = Asked {
        caller: root.caller.clone(),
        operation: request.operation,
        arguments: request.arguments,
        terms: request.terms,
        key: None,
        hold_ms: 0,
    };
    let pace = root.runner.pace(&asked);
    // The prompt is on its way whatever became of its mark; what the engine refused, it recorded.
    drop(root.runner.run(asked, pace, Company::Others, None, std::future::pending()).await);
}
