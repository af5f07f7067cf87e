//! What a person asks begins a turn: each prompt that goes by is marked in the journals of its session's roots, so that
//! what the agent does from there on can be seen and taken back as one.
//!
//! Promises that no prompt is changed by its mark, and that no write of the session comes between a prompt and its mark:
//! file methods wait for it here; where the agent has a server of more tools, which another process runs, the prompt itself
//! waits, for a bounded time. A mark that fails is let go.

use std::sync::Arc;

use super::session::{Root, Session};
use crate::{
    dialect::acp,
    limits::MARK_WAIT,
    run::{Asked, Company},
};

/// Marks a prompt of this session, or begins to. Must be called before the prompt goes on, inside a runtime.
pub(super) async fn mark(session: Arc<Session>) {
    // Where so many marks are under way nothing is written between them, so one more would tell nothing.
    let Some(marking) = session.marking() else { return };
    let has_server = session.served.is_some();
    let marked = tokio::spawn(async move {
        // Roots that share a journal are marked there once each: no write comes between, so it is one turn all the same.
        for root in session.roots() {
            mark_in(root).await;
        }
        drop(marking);
    });
    if has_server {
        // One that takes longer than that is not worth a person's time; file methods wait for it still.
        drop(tokio::time::timeout(MARK_WAIT, marked).await);
    }
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
