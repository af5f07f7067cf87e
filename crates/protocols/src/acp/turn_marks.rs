//! Records a turn mark for every prompt in the journals of the session's roots, so that the agent's changes since then can
//! be reviewed and undone together.
//!
//! Prompts are never changed. No write of the session comes between a prompt and its mark: file methods wait for the mark.
//! If the agent has an MCP server in another process, the prompt itself waits for a bounded time. A failed mark is
//! ignored.

use std::sync::Arc;

use super::session::{AcpSession, SessionRoot};
use crate::{
    call_executor::{CallRequest, OtherRequests},
    dialect::acp,
    limits::TURN_MARK_TIMEOUT,
};

/// Starts to mark a prompt of this session. Must be called before the prompt is forwarded, inside a tokio runtime.
pub(super) async fn record_turn(session: Arc<AcpSession>) {
    // With this many open marks no write comes between them, so another mark would be redundant.
    let Some(mark_guard) = session.begin_turn_mark() else { return };
    let has_server = session.mcp_server.is_some();
    let marks = tokio::spawn(async move {
        // Roots with a common journal add one mark each; without a write in between they still form one turn.
        for root in session.roots() {
            record_turn_in_root(root).await;
        }
        drop(mark_guard);
    });
    if has_server {
        // The prompt does not wait longer than this; file methods still wait for the mark.
        drop(tokio::time::timeout(TURN_MARK_TIMEOUT, marks).await);
    }
}

async fn record_turn_in_root(root: &SessionRoot) {
    let request = CallRequest::new(root.agent.clone(), acp::turn_mark_call());
    // The prompt continues even if the mark fails; the engine has recorded a refusal.
    drop(root.executor.run(request, OtherRequests::Waiting, None, |_| std::future::pending()).await);
}
