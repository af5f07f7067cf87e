//! Renders the outcomes of the operations that administer as text, for people at a terminal.

use stead_engine::{
    UtcSecond, arguments_with_details,
    ops::{
        AccessTokenFields, ApplyPolicyOutcome, CreateTokenOutcome, DestroyedWorkspaceTrashPolicy, ListTokensOutcome,
        ListTrashOutcome, ListWorkspacesOutcome, ListedTrashItem, LoggedEntryRow, PurgeTrashOutcome,
        RevokeTokenOutcome, RotateLogKeyOutcome, SetApproverSecretOutcome, ShowApproverOutcome, ShowLogOutcome,
        SignLogOutcome, VerifyLogOutcome, WorkspaceDescription,
    },
};

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

const CHANGES_SHOWN: usize = 3;

fn render_lines<T>(rows: &[T], line: impl Fn(&T) -> String) -> String {
    rows.iter().map(|row| escape_one_line(line(row))).collect::<Vec<_>>().join("\n")
}

impl RenderableOutcome for ListTrashOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        render_lines(&self.items, |item| {
            let ListedTrashItem { trash, path, owner, files, bytes, removed, recoverable_until, .. } = item;
            let removal = format!("removed {removed} by {owner}, kept until {recoverable_until}");
            format!("{trash}  {path}  {files} files, {bytes} bytes  {removal}")
        })
    }
}

/// Implements [`RenderableOutcome`] for outcomes whose text is one expression.
macro_rules! render_outcomes {
    ($($outcome:ident |$this:pat_param| $text:expr;)+) => {$(
        impl RenderableOutcome for $outcome {
            fn native_text(&self, _style: CallStyle) -> String {
                let $this = self;
                String::from($text)
            }
        }
    )+};
}

render_outcomes! {
    PurgeTrashOutcome |outcome| format!("permanently deleted {} items", outcome.deleted);
    ApplyPolicyOutcome |outcome| format!("the policy is now at version {}", outcome.version);
    ShowLogOutcome |outcome| render_lines(&outcome.entries, entry_line);
    SignLogOutcome |outcome| outcome.checkpoint.clone();
    RotateLogKeyOutcome |_| "key rotated: the next checkpoint is signed with a new key, endorsed by the old one";
    CreateTokenOutcome |outcome| outcome.token.0.clone();
    ListTokensOutcome |outcome| render_lines(&outcome.tokens, token_line);
    RevokeTokenOutcome |outcome| escape_one_line(format!("revoked: {}", token_line(&outcome.fields)));
    ListWorkspacesOutcome |outcome| render_lines(&outcome.workspaces, workspace_line);
    WorkspaceDescription |outcome| escape_one_line(workspace_line(outcome));
    SetApproverSecretOutcome |_| "the approver's secret is set; store it where no agent can read it";
    ShowApproverOutcome |outcome| format!("{} approver's secret is set", if outcome.secret_set { "an" } else { "no" });
}

fn entry_line(row: &LoggedEntryRow) -> String {
    let LoggedEntryRow { entry, time, failure, .. } = row;
    let reason = entry.reason.as_deref().unwrap_or("no reason recorded");
    let outcome = failure.map_or_else(String::new, |failure| format!("  {failure}: {reason}"));
    let changes: Vec<&str> = entry.changes.iter().take(CHANGES_SHOWN).map(|change| change.path.as_str()).collect();
    let more = entry.changes.len().saturating_sub(CHANGES_SHOWN);
    let subject = match (changes.is_empty(), more) {
        (true, _) => format!("  {}", arguments_with_details(entry)),
        (false, 0) => format!("  {}", changes.join(", ")),
        (false, more) => format!("  {} and {more} more", changes.join(", ")),
    };
    let tool = entry.tool.as_ref().map_or_else(String::new, |tool| format!("  as {tool}"));
    let approval = entry.approval.as_ref().map_or_else(String::new, |id| format!("  approval: {id}"));
    let (number, who) = (entry.number, &entry.caller.principal);
    format!("r{number}  {time}  {who}  {}{subject}{outcome}{tool}{approval}", entry.operation)
}

impl RenderableOutcome for VerifyLogOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_lines(match self {
            VerifyLogOutcome::Journal(found) => match &found.tamper {
                Some(tamper) => format!(
                    "TAMPERED: {tamper}\nThe journal was changed outside stead. Keep a copy of the state directory, \
                     and compare it with a backup."
                ),
                None => format!(
                    "intact: {} entries checked, {} in total, {} covered by {} signed checkpoints, head {}",
                    found.checked, found.entries, found.covered, found.checkpoints, found.head
                ),
            },
            VerifyLogOutcome::Entry { ok: true, entry, hash, proof, .. } => {
                format!("intact: r{entry} with hash {hash} is in the signed journal of {} entries", proof.size)
            }
            VerifyLogOutcome::Entry { entry, .. } => format!(
                "TAMPERED: r{entry} does not match the signed journal\nTo check all entries, run: stead log verify"
            ),
        })
    }
}

fn token_line(token: &AccessTokenFields) -> String {
    let until = match token.ends {
        None => "until revoked".to_owned(),
        Some(ends) if token.is_expired => format!("not valid since {ends} (revoked or expired)"),
        Some(ends) => format!("until {ends}"),
    };
    let access = match (token.administer, token.export, token.read_only) {
        (true, true, _) => ", administers and exports",
        (true, false, _) => ", administers",
        (false, _, true) => ", read-only",
        (false, _, false) => "",
    };
    let label = if token.label.is_empty() { String::new() } else { format!("  {}", token.label) };
    format!("{}  {}{access}  {until}{label}", token.id, token.principal)
}

fn workspace_line(workspace: &WorkspaceDescription) -> String {
    let WorkspaceDescription { name, id, lasting, state, used_ms, ends_ms, label, size, .. } = workspace;
    let lasting = match lasting {
        DestroyedWorkspaceTrashPolicy::MoveToTrash => "kept",
        DestroyedWorkspaceTrashPolicy::DeleteAtOnce => "ephemeral",
    };
    let mut line = format!("{name}  {id}  {lasting}  {state}");
    if let Some(size) = size {
        line.push_str(&format!("  {} files, {} bytes, entry {}", size.files, size.bytes, size.head.number));
    }
    line.push_str(&format!("  used {}", UtcSecond { unix_ms: *used_ms }));
    if let Some(unix_ms) = *ends_ms {
        line.push_str(&format!("  until {}", UtcSecond { unix_ms }));
    }
    if !label.is_empty() {
        line.push_str(&format!("  {label}"));
    }
    line
}
