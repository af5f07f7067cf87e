//! The native form of calls: an operation is given by its name, its arguments are a JSON object, and its outcome is
//! rendered as an object for programs and as text for models and people.

mod call_style;
mod decode;
mod text;

use serde::Serialize;
use serde_json::{Map, Value};
use stead_engine::{
    CallControl, CallOptions, CallReply, Caller, EditorBufferMetadata, Engine, Error, ErrorKind, OPERATIONS,
    SuccessfulCallResult, for_each_operation, nearest_name,
    ops::{self, InspectPolicyArgs, OperationWithDefinition, StaleReadNotice},
};
use stead_text::visible::escape_deceptive_line;

pub use self::call_style::{CallStyle, CommandRenderer};
use self::decode::decode_arguments;
pub use self::text::RenderableOutcome;
use crate::{
    dialect::{DialectReply, ReplyStatus, error_text},
    json_string::append_escaped,
    limits::ECHOED_NAME_CHARS_MAX,
    prepared_call::{FinishedCall, PreparedCall, RenderableOperation},
};

/// A call whose operation is given by its name and whose arguments are JSON.
pub struct JsonCall<'a> {
    pub caller: &'a Caller,
    pub operation: &'a str,
    pub arguments: Map<String, Value>,
    /// The idempotency key of the call. A call that repeats an idempotency key returns the first outcome and changes
    /// nothing.
    pub idempotency_key: Option<&'a str>,
    pub options: CallOptions,
    pub control: CallControl<'a>,
    pub style: CallStyle,
}

impl<'a> JsonCall<'a> {
    /// Creates a call with default options, the default deadline and no idempotency key.
    pub fn new(caller: &'a Caller, operation: &'a str, arguments: Map<String, Value>) -> Self {
        Self {
            caller,
            operation,
            arguments,
            idempotency_key: None,
            options: CallOptions::default(),
            control: CallControl::default(),
            style: CallStyle::default(),
        }
    }

    /// Runs the call, and renders its outcome.
    pub fn run(&self, engine: &Engine) -> FinishedCall<DialectReply> {
        let mut prepared = prepare_json_call(self.operation, &self.arguments, self.style);
        prepared.options = self.options.clone();
        prepared.run(engine, self.caller, self.idempotency_key, &self.control)
    }
}

/// Prepares a call whose operation is given by its name and whose arguments are JSON.
pub fn prepare_json_call(
    operation: &str,
    arguments: &Map<String, Value>,
    style: CallStyle,
) -> PreparedCall<DialectReply> {
    let prepared = match find_native_call(operation) {
        Some(_) if operation == <InspectPolicyArgs as OperationWithDefinition>::DEFINITION.name => {
            prepare_policy_call(arguments, style)
        }
        Some(row) => (row.prepare)(arguments, style),
        None => Err(unknown_operation_error(ErrorKind::UnknownOperation, operation)),
    };
    prepared.unwrap_or_else(|error| {
        PreparedCall::rejected(operation, arguments, error, CallOptions::default(), |error| error_reply(&error))
    })
}

/// Prepares a call whose outcome is rendered in the native form.
pub fn prepare_call(arguments: impl RenderableOperation, style: CallStyle) -> PreparedCall<DialectReply> {
    PreparedCall::new(arguments, CallOptions::default(), move |result| render_reply(result, style))
}

/// The operation `policy` inspects another call, which only the table of native calls can decode.
fn prepare_policy_call(arguments: &Map<String, Value>, style: CallStyle) -> Result<PreparedCall<DialectReply>, Error> {
    let mut policy: InspectPolicyArgs = decode_arguments(arguments)?;
    if let Some(name) = &policy.operation {
        let row = find_native_call(name).ok_or_else(|| unknown_operation_error(ErrorKind::BadRequest, name))?;
        let given = arguments.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
        policy.inspected = (row.prepare)(&given, style)?.into_inspected();
    }
    Ok(prepare_call(policy, style))
}

type PrepareNativeCallFn = fn(&Map<String, Value>, CallStyle) -> Result<PreparedCall<DialectReply>, Error>;

struct NativeCallRow {
    name: &'static str,
    prepare: PrepareNativeCallFn,
}

macro_rules! outcome_text {
    ($outcome:ty as fields) => {
        impl RenderableOutcome for $outcome {
            fn native_text(&self, _style: CallStyle) -> String {
                text::render_fields(self)
            }
        }
    };
}

macro_rules! native_calls {
    ($($name:literal $effect:ident $args:ident => $outcome:ident $(as $text:ident)? $([$($content:literal),+])?
        $(by $authority:ident)?;)+) => {
        $($(outcome_text!(ops::$outcome as $text);)?)+

        const NATIVE_CALLS: &[NativeCallRow] = &[$(NativeCallRow {
            name: $name,
            prepare: |arguments, style| Ok(prepare_call(decode_arguments::<ops::$args>(arguments)?, style)),
        },)+];
    };
}

for_each_operation!(native_calls);

fn find_native_call(operation: &str) -> Option<&'static NativeCallRow> {
    NATIVE_CALLS.iter().find(|row| row.name == operation)
}

fn unknown_operation_error(kind: ErrorKind, name: &str) -> Error {
    let names = || OPERATIONS.iter().map(|row| row.name);
    let start: String = name.chars().take(ECHOED_NAME_CHARS_MAX).collect();
    let error = Error::new(kind, format!("there is no operation '{start}'"));
    match nearest_name(name, names()) {
        Some(nearest) => error.with_next_step(format!("did you mean {nearest}?")),
        None => error.with_next_step(format!("operations: {}", names().collect::<Vec<_>>().join(", "))),
    }
}

pub(crate) fn error_reply(error: &Error) -> DialectReply {
    DialectReply {
        text: error_text(error),
        json: CallStyle::ToolCall.error_to_json(error).to_string(),
        status: ReplyStatus::Error,
    }
}

/// Renders the result of a call as an object for programs and as text for models and people.
pub(crate) fn render_reply<T: RenderableOutcome>(
    result: Result<CallReply<T>, Error>,
    style: CallStyle,
) -> DialectReply {
    let mut reply = match result {
        Ok(reply) => reply,
        Err(error) => return error_reply(&error),
    };
    let (text, json) = match &mut reply.result {
        SuccessfulCallResult::Done(outcome) => (outcome.native_text(style), outcome_json(outcome)),
        SuccessfulCallResult::AlreadyDone(completed) => (completed.native_text(style), to_json_text(completed)),
        SuccessfulCallResult::LeftToEditor => {
            ("allowed and recorded; the editor applies the change".to_owned(), "{}".to_owned())
        }
    };
    let mut rendered = DialectReply { json, text, status: ReplyStatus::Success };
    let drafts: Vec<String> = reply.unsaved.drafts.iter().map(draft_notice).collect();
    for notice in &reply.unsaved.unsaved_texts {
        append_line(&mut rendered.text, &format!("[unsaved: {} has unsaved text in {}]", notice.owner, notice.path));
    }
    for draft in &drafts {
        append_line(&mut rendered.text, &format!("[{draft}]"));
    }
    for stale in &reply.changed_since_read {
        append_line(&mut rendered.text, &stale_read_line(stale));
    }
    if !drafts.is_empty() || !reply.changed_since_read.is_empty() {
        add_notices(&mut rendered, drafts, &reply.changed_since_read);
    }
    rendered
}

/// Few replies have notices, so that only they are worth a second look at the rendered object.
fn add_notices(rendered: &mut DialectReply, drafts: Vec<String>, changed_since_read: &[StaleReadNotice]) {
    let mut fields = rendered.json_fields();
    if !drafts.is_empty() {
        let drafts = drafts.into_iter().map(Value::String);
        match fields.get_mut("notices") {
            Some(Value::Array(notices)) => notices.extend(drafts),
            Some(_) | None => drop(fields.insert("notices".to_owned(), drafts.collect())),
        }
    }
    if !changed_since_read.is_empty() {
        fields.insert("changed_since_read".to_owned(), serde_json::json!(changed_since_read));
    }
    rendered.json = Value::Object(fields).to_string();
}

/// The JSON of an outcome. The long text of an outcome is escaped faster than the JSON library does it.
fn outcome_json(outcome: &mut impl RenderableOutcome) -> String {
    let Some((empty_field, text)) = outcome.take_long_text() else { return to_json_text(outcome) };
    let rest = to_json_text(outcome);
    // Quotes inside of strings are escaped, so the empty field occurs only where the text was taken.
    let (before, after) = rest.split_once(empty_field).unwrap_or((&rest, ""));
    let mut json = Vec::with_capacity(rest.len() + text.len() + text.len() / 8);
    json.extend_from_slice(before.as_bytes());
    json.extend_from_slice(&empty_field.as_bytes()[..empty_field.len() - 1]);
    append_escaped(&text, &mut json);
    json.push(b'"');
    json.extend_from_slice(after.as_bytes());
    String::from_utf8(json).unwrap_or_default()
}

/// The JSON of a struct, whose derived serialization cannot fail.
pub(crate) fn to_json_text(fields: &impl Serialize) -> String {
    serde_json::to_string(fields).unwrap_or_default()
}

fn append_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&escape_deceptive_line(line));
}

fn draft_notice(draft: &EditorBufferMetadata) -> String {
    format!(
        "the editor of {} disconnected with unsaved changes to {}; they are available as draft {}",
        draft.owner, draft.path, draft.id
    )
}

fn stale_read_line(stale: &StaleReadNotice) -> String {
    let StaleReadNotice { path, from, to, lines, actor } = stale;
    let lines: Vec<String> = lines.iter().map(|[first, last]| format!("{first}-{last}")).collect();
    let lines = if lines.is_empty() { String::new() } else { format!(", lines {}", lines.join(",")) };
    format!("[changed since you read: {path} ({from} -> {to}{lines}, {actor})]")
}

/// Removes the members of an object that have no value.
pub fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// The serialized fields of a struct, whose derived serialization cannot fail.
pub(crate) fn to_json_object(fields: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(fields) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}
