//! `review`, `keep`, `reject` and `turn` show the changes of a session by file and hunk, and let a person accept or
//! reject the changes. The server computes the changes of a session from the journal and the stored versions. `turn`
//! records the start of a session's turn in the journal, so that a person can review or reject one turn.
//!
//! The rejection of a hunk is a recorded file change that reverts the lines of the session. A rejection keeps the lines
//! that others wrote, whether the lines are saved or not.

mod attribution;
mod keep_reject;
mod session_changes;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use stead_path::RelPath;
use stead_text::{
    diff::diff_stat,
    encoding::{DetectedContentKind, Encoding, detect_content},
    lines,
    unified::{DiffLabels, unified_diff},
    visible::escape_deceptive_line,
};

pub use self::attribution::TextWithLineAuthors;
pub(crate) use self::keep_reject::{KeepChangesArgs, RejectChangesArgs};
use self::{attribution::ReviewHunk, session_changes::ReviewedFile};
use crate::{
    call_context::CallContext,
    call_notation::CallNotation,
    caller::Principal,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPath, RequestedPathIndex, RequestedPaths,
        ResolvedTargets,
    },
    ops::outcome_builder::OutcomeBuilder,
    session_store::{SessionStoreReply, SessionStoreWriteRequest},
    workspace::{CommitReceipt, JournalEntryOrder, JournalEntryQuery, JournalNoChangeEntryFilter},
};

#[derive(Debug, Clone, PartialEq, Eq)]
struct ReviewedSessionKey {
    principal: String,
    session: String,
    /// The other sessions that matched the request, the session with the latest change first.
    others: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SessionOrTurnStart {
    #[default]
    Session,
    Turn,
}

impl SessionOrTurnStart {
    fn as_str(self) -> &'static str {
        match self {
            SessionOrTurnStart::Session => "session",
            SessionOrTurnStart::Turn => "turn",
        }
    }
}

/// Determines the session to review. An agent reviews the session that it names, otherwise its current session. A
/// person names a principal, a session id or both; of several matching sessions, the latest is reviewed.
fn resolve_session(
    context: &CallContext<'_>,
    principal: Option<&str>,
    session: Option<&str>,
) -> Result<ReviewedSessionKey, Error> {
    let own = context.caller.principal.to_string();
    let requested = principal.map(Principal::parse).transpose()?.map(|requested| requested.to_string());
    match &context.caller.principal {
        Principal::Agent(_) => {
            if requested.is_some_and(|requested| requested != own) {
                return Err(Error::new(ErrorKind::NotOwner, "an agent can review only its own changes")
                    .with_next_step("omit author; only a person can review the changes of others"));
            }
            let session = session.unwrap_or(&context.caller.session).to_owned();
            Ok(ReviewedSessionKey { principal: own, session, others: Vec::new() })
        }
        Principal::User(_) | Principal::System | Principal::External => {
            if let (Some(principal), Some(session)) = (&requested, session) {
                let (principal, session) = (principal.clone(), session.to_owned());
                return Ok(ReviewedSessionKey { principal, session, others: Vec::new() });
            }
            latest_session(context, requested.as_deref(), session)
        }
    }
}

/// Finds the matching session with the latest change; without a principal, only sessions of agents match.
fn latest_session(
    context: &CallContext<'_>,
    principal: Option<&str>,
    session: Option<&str>,
) -> Result<ReviewedSessionKey, Error> {
    let filter = JournalEntryQuery {
        principal: principal.map(str::to_owned),
        selection: JournalNoChangeEntryFilter::WithChanges,
        order: JournalEntryOrder::NewestFirst,
        limit: limits::ENTRIES_SCANNED_MAX,
        ..JournalEntryQuery::default()
    };
    let entries = context.workspace().entries(&filter)?;
    let mut callers = entries.into_iter().map(|stored| stored.entry.caller).filter(|caller| {
        let is_candidate = principal.is_some() || caller.principal.starts_with("agent:");
        is_candidate && session.is_none_or(|session| caller.session == session)
    });
    let latest = callers.next().ok_or_else(|| {
        Error::new(ErrorKind::NothingToDo, "no agent session has changes to review")
            .with_next_step("call history to see who changed what")
    })?;
    let mut others = Vec::new();
    for caller in callers {
        if caller.session != latest.session && !others.contains(&caller.session) {
            others.push(caller.session);
        }
    }
    Ok(ReviewedSessionKey { principal: latest.principal, session: latest.session, others })
}

impl ReviewedSessionKey {
    fn render_heading(&self, notation: CallNotation) -> String {
        let Self { principal, session, others } = self;
        let others = others.first().map_or_else(String::new, |next| {
            let arguments = Map::from_iter([("session".to_owned(), next.clone().into())]);
            let call = notation.render_call("review", &arguments);
            let plural = if others.len() == 1 { "" } else { "s" };
            format!("; {} earlier session{plural} also changed files, to see the latest of them {call}", others.len())
        });
        format!("session {session} of {principal}{others}\n")
    }
}

fn require_person(context: &CallContext<'_>) -> Result<(), Error> {
    match &context.caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Agent(_) | Principal::System | Principal::External => {
            Err(Error::new(ErrorKind::PolicyDenied, "only a person can keep or reject changes")
                .with_next_step("call undo to revert your own entries"))
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewArgs {
    path: Option<String>,
    session: Option<String>,
    author: Option<String>,
    #[serde(default)]
    since: SessionOrTurnStart,
}

impl Operation for ReviewArgs {
    type Resolved = Option<RequestedPathIndex>;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        Ok(self.path.as_deref().map(|path| paths.add(RequestedPath::read(path))))
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        path: Option<RequestedPathIndex>,
        targets: &ResolvedTargets,
    ) -> PlanResult<Self> {
        let session = resolve_session(context, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> = path.map(|slot| &targets[slot].path);
        let changes = session_changes::find_session_changes(context, &session, self.since, only)?;
        let total = changes.files.len();
        let texts = if only.is_some() { ReviewFileTextsInclusion::Include } else { ReviewFileTextsInclusion::Omit };
        let mut diff_lines_max = limits::DIFF_LINES_MAX;
        let mut text = match &context.caller.principal {
            Principal::Agent(_) => String::new(),
            Principal::User(_) | Principal::System | Principal::External => {
                session.render_heading(context.options.call_notation)
            }
        };
        let listed = changes.files.iter().take(limits::REVIEW_FILES_MAX);
        let files: Vec<Value> =
            listed.map(|file| review_file_json(file, texts, &mut diff_lines_max, &mut text)).collect();
        let omitted = total - files.len();
        if total == 0 {
            text.push_str("no changes to review\n");
        } else if omitted > 0 {
            text.push_str(&format!("… and {omitted} more files: pass a path\n"));
        }
        let outcome = OutcomeBuilder::new()
            .with_field("author", session.principal)
            .with_field("session", session.session)
            .with_field("since", self.since.as_str())
            .with_field("files", files)
            .with_field("total", total)
            .with_field("truncated", changes.truncated || omitted > 0)
            .build(text);
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

fn change_kind_name(file: &ReviewedFile) -> &'static str {
    match (&file.before, &file.current, &file.moved_from) {
        (_, _, Some(_)) => "move",
        (None, Some(_), None) => "create",
        (_, None, None) => "remove",
        (Some(_), Some(_), None) => "modify",
    }
}

struct NonDefaultTextFormat {
    encoding: Option<&'static str>,
    line_endings: Option<&'static str>,
}

impl NonDefaultTextFormat {
    fn for_file(file: &ReviewedFile) -> Self {
        let bytes = file.current.as_ref().map(|now| now.bytes.as_slice()).unwrap_or_default();
        let encoding = match detect_content(bytes) {
            DetectedContentKind::Text { encoding } if encoding != Encoding::Utf8 => Some(encoding.name()),
            DetectedContentKind::Text { .. } | DetectedContentKind::Binary => None,
        };
        let text = file.blame_and_hunks.as_ref().map(|(blame, _)| blame.text()).unwrap_or_default();
        let counted = lines::count_endings(text.as_bytes());
        let line_endings = match (counted.crlf, counted.lf + counted.cr) {
            (0, _) => None,
            (_, 0) => Some("crlf"),
            (_, _) => Some("mixed"),
        };
        Self { encoding, line_endings }
    }

    fn describe(&self) -> String {
        self.line_endings.iter().chain(&self.encoding).map(|word| format!(", {word}")).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReviewFileTextsInclusion {
    Include,
    Omit,
}

fn review_file_json(
    file: &ReviewedFile,
    texts: ReviewFileTextsInclusion,
    diff_lines_max: &mut usize,
    text: &mut String,
) -> Value {
    let path = file.path.to_string();
    let mut fields = OutcomeBuilder::new()
        .with_field("path", path.clone())
        .with_some("moved_from", file.moved_from.as_ref().map(ToString::to_string))
        .with_field("change", change_kind_name(file))
        .with_some("version", file.current.as_ref().map(|now| now.observed.version.to_string()))
        .with_field("actors", file.actors.clone());
    let format = NonDefaultTextFormat::for_file(file);
    fields = fields.with_some("encoding", format.encoding).with_some("line_endings", format.line_endings);
    let actors = file.actors.join(", ");
    let Some((blame, hunks)) = &file.blame_and_hunks else {
        text.push_str(&format!("{} {} ({actors}), not text\n", change_kind_name(file), escape_deceptive_line(&path)));
        return Value::Object(fields.with_field("hunks", Vec::<Value>::new()).into_json());
    };
    let before = file.before.as_deref().unwrap_or_default();
    let lines = diff_stat(before, blame.text());
    text.push_str(&format!(
        "{} {} +{} -{} ({actors}){}\n",
        change_kind_name(file),
        escape_deceptive_line(&path),
        lines.added,
        lines.removed,
        format.describe(),
    ));
    let labels = DiffLabels { old: "before", new: "now" };
    let diff = unified_diff(before, blame.text(), labels, limits::DIFF_CONTEXT_LINES, *diff_lines_max);
    *diff_lines_max = diff_lines_max.saturating_sub(diff.text.lines().count());
    text.push_str(&diff.text);
    let omitted = hunks.len().saturating_sub(limits::REVIEW_HUNKS_MAX);
    let hunks: Vec<Value> = hunks.iter().take(limits::REVIEW_HUNKS_MAX).map(ReviewHunk::to_json).collect();
    fields = fields
        .with_field("added", lines.added)
        .with_field("removed", lines.removed)
        .with_field("hunks", hunks)
        .with_some("hunks_left_out", (omitted > 0).then_some(omitted))
        .with_field("diff", diff.text)
        .with_some("diff_left_out_lines", (diff.omitted_lines > 0).then_some(diff.omitted_lines));
    if texts == ReviewFileTextsInclusion::Include {
        fields = fields.with_field("old_text", file.before.clone().map_or(Value::Null, Value::String));
        fields = fields.with_field("new_text", file.current.as_ref().map_or(Value::Null, |_| json!(blame.text())));
    }
    Value::Object(fields.into_json())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BeginTurnArgs {}

impl Operation for BeginTurnArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let session = context.caller.session.clone();
        let build_outcome = move |_: &SessionStoreReply, receipt: &CommitReceipt| {
            let text = format!("started a turn of session {session} at r{}", receipt.entry);
            OutcomeBuilder::new().with_field("session", session).with_receipt(receipt).build_one_line(text)
        };
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::BeginTurn,
            build_outcome: Box::new(build_outcome),
        })
    }
}
