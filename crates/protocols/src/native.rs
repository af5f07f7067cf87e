//! The native form of calls: an operation is given by its name, its arguments are a JSON object, and its outcome is
//! rendered as an object for programs and as text for models and people.

mod call_notation;
mod text;

use serde::Serialize;
use serde_json::{Map, Value};
use stead_engine::{
    BeforeAfterBytes, CallControl, CallMetadata, CallOptions, CallReply, Caller, ConversationSessionSwitch,
    EditorBufferMetadata, Engine, Error, ErrorKind, OPERATIONS, SuccessfulCallResult, decode_arguments,
    for_each_operation,
    ops::{self, OperationWithDefinition, StaleReadNotice},
};
use stead_text::visible::escape_deceptive_line;

pub use self::call_notation::CallNotation;
use self::text::NativeTextRenderable;

/// A call whose operation is given by its name and whose arguments are JSON.
pub struct JsonCall<'a> {
    /// The authenticated caller and its grants.
    pub caller: &'a Caller,
    /// The name of the requested operation, as in the operation table.
    pub operation: &'a str,
    /// The arguments of the operation as a JSON object.
    pub arguments: Map<String, Value>,
    /// The idempotency key of the call. A call that repeats an idempotency key returns the first outcome and changes
    /// nothing.
    pub idempotency_key: Option<&'a str>,
    /// The options that the caller's dialect sets for the call.
    pub options: CallOptions,
    /// The deadline, cancel token and progress listener of the call.
    pub control: CallControl<'a>,
    /// How the text of the outcome writes the call that comes next.
    pub notation: CallNotation,
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
            notation: CallNotation::default(),
        }
    }

    fn metadata(&self) -> CallMetadata<'_> {
        CallMetadata {
            caller: self.caller,
            idempotency_key: self.idempotency_key,
            options: &self.options,
            control: &self.control,
        }
    }
}

/// The outcome of a call as a JSON object for programs and as text for models and people.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedOutcome {
    /// The result of the call as a JSON object.
    pub json: Map<String, Value>,
    /// The result of the call as compact text for models and people.
    pub text: String,
    /// The content of the affected files before and after the call, if the options of the call request it.
    pub before_after: Vec<BeforeAfterBytes>,
    /// The session to which later calls belong, if the call switched to another session.
    pub session_switch: Option<ConversationSessionSwitch>,
}

/// Runs calls with JSON arguments.
pub trait EngineJsonCalls {
    /// Runs the call, and renders its outcome.
    fn call(&self, call: &JsonCall<'_>) -> Result<RenderedOutcome, Error>;
}

impl EngineJsonCalls for Engine {
    fn call(&self, call: &JsonCall<'_>) -> Result<RenderedOutcome, Error> {
        let prepared = match (&call.options.argument_error, find_native_call(call.operation)) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(native)) => (native.prepare)(&call.arguments),
            (None, None) => Err(unknown_operation_error(call.operation)),
        };
        match prepared {
            Ok(prepared) => prepared.run(self, call),
            Err(error) => Err(self.refuse(call.operation, &call.arguments, error, &call.metadata())),
        }
    }
}

/// A call with decoded arguments, whose type only its row of the table knows.
trait PreparedNativeCall {
    fn run(self: Box<Self>, engine: &Engine, call: &JsonCall<'_>) -> Result<RenderedOutcome, Error>;
}

struct DecodedArguments<O>(O);

impl<O: OperationWithDefinition> PreparedNativeCall for DecodedArguments<O>
where
    O::Result: Serialize + NativeTextRenderable,
{
    fn run(self: Box<Self>, engine: &Engine, call: &JsonCall<'_>) -> Result<RenderedOutcome, Error> {
        engine.run(self.0, &call.metadata()).map(|reply| render_reply(reply, call.notation))
    }
}

type PrepareNativeCallFn = fn(&Map<String, Value>) -> Result<Box<dyn PreparedNativeCall>, Error>;

struct NativeCallRow {
    name: &'static str,
    prepare: PrepareNativeCallFn,
}

macro_rules! native_calls {
    ($($name:literal $effect:ident $cost:ident $args:ident => $outcome:ident $([$($content:literal),+])?
        $(by $authority:ident)?;)+) => {
        const NATIVE_CALLS: &[NativeCallRow] = &[$(NativeCallRow {
            name: $name,
            prepare: |arguments| Ok(Box::new(DecodedArguments(decode_arguments::<ops::$args>(arguments)?))),
        },)+];
    };
}

for_each_operation!(native_calls);

fn find_native_call(operation: &str) -> Option<&'static NativeCallRow> {
    NATIVE_CALLS.iter().find(|row| row.name == operation)
}

fn unknown_operation_error(name: &str) -> Error {
    let known: Vec<&str> = OPERATIONS.iter().map(|row| row.name).collect();
    let start: String = name.chars().take(64).collect();
    Error::new(ErrorKind::UnknownOperation, format!("there is no operation '{start}'"))
        .with_next_step(format!("operations: {}", known.join(", ")))
}

fn render_reply<T: Serialize + NativeTextRenderable>(reply: CallReply<T>, notation: CallNotation) -> RenderedOutcome {
    let (mut json, mut text) = match &reply.result {
        SuccessfulCallResult::Done(outcome) => (to_json_object(outcome), outcome.native_text(notation)),
        SuccessfulCallResult::AlreadyDone(completed) => (to_json_object(&**completed), completed.native_text(notation)),
        SuccessfulCallResult::LeftToEditor => {
            (Map::new(), "allowed and recorded; the editor applies the change".to_owned())
        }
    };
    let drafts: Vec<String> = reply.unsaved.drafts.iter().map(draft_notice).collect();
    for notice in &reply.unsaved.unsaved_texts {
        append_line(&mut text, &format!("[unsaved: {} has unsaved text in {}]", notice.owner, notice.path));
    }
    for draft in &drafts {
        append_line(&mut text, &format!("[{draft}]"));
    }
    for stale in &reply.changed_since_read {
        append_line(&mut text, &stale_read_line(stale));
    }
    add_notices(&mut json, drafts);
    if !reply.changed_since_read.is_empty() {
        let stale: Vec<Value> = reply.changed_since_read.iter().map(|stale| to_json_object(stale).into()).collect();
        json.insert("changed_since_read".to_owned(), stale.into());
    }
    RenderedOutcome { json, text, before_after: reply.before_after, session_switch: reply.session_switch }
}

fn add_notices(fields: &mut Map<String, Value>, added: Vec<String>) {
    if added.is_empty() {
        return;
    }
    let added = added.into_iter().map(Value::String);
    match fields.get_mut("notices") {
        Some(Value::Array(notices)) => notices.extend(added),
        Some(_) | None => drop(fields.insert("notices".to_owned(), added.collect())),
    }
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

/// The serialized fields of a struct, whose derived serialization cannot fail.
pub(crate) fn to_json_object(fields: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(fields) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}
