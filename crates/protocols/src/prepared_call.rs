//! Calls that are ready to run: an operation with typed arguments, the options of the call, and the function that
//! renders its result. Every protocol and every dialect runs its calls in this form.

use serde_json::{Map, Value};
use stead_engine::{
    BeforeAfterBytes, CallControl, CallDurationFactor, CallForecast, CallMetadata, CallOptions, CallReply, Caller,
    ConversationSessionSwitch, Engine, Error, SuccessfulCallResult, find_operation,
    ops::{BegunOrEndedWatch, InspectedCall, OperationWithDefinition},
};

use crate::{
    dialect::DialectReply,
    native::{self, CallStyle, RenderableOutcome},
};

/// A call that is ready to run; its result is rendered as `T`.
pub struct PreparedCall<T> {
    pub options: CallOptions,
    operation: Box<dyn PreparedOperation<T>>,
}

/// An operation whose outcome the protocols can render.
pub trait RenderableOperation: OperationWithDefinition<Result: RenderableOutcome + Send> {}

impl<O: OperationWithDefinition<Result: RenderableOutcome + Send>> RenderableOperation for O {}

/// The result of a call whose operation the protocol knows.
pub(crate) type TypedCallResult<O> = Result<CallReply<<O as OperationWithDefinition>::Result>, Error>;

/// The outcome of an operation, and the content of the affected files if the options of the call request it.
pub(crate) struct OutcomeWithBytes<T> {
    pub(crate) outcome: T,
    pub(crate) before_after: Vec<BeforeAfterBytes>,
}

impl<T> OutcomeWithBytes<T> {
    pub(crate) fn from_reply(mut reply: CallReply<T>) -> Result<Self, Error> {
        let before_after = std::mem::take(&mut reply.before_after);
        Ok(Self { outcome: reply.into_outcome()?, before_after })
    }

    /// Returns the content that a file of the call had before the call or that the call read, and the content after the
    /// call.
    pub(crate) fn before_and_after(&self, index: usize) -> (Option<&[u8]>, Option<&[u8]>) {
        let file = self.before_after.get(index);
        file.map_or((None, None), |file| (file.before.as_deref(), file.after.as_deref()))
    }

    pub(crate) fn bytes_before(&self) -> &[u8] {
        self.before_and_after(0).0.unwrap_or_default()
    }
}

/// The rendered reply to a call that has run, and the facts about the call that its connection needs.
pub struct FinishedCall<T> {
    pub reply: T,
    pub error: Option<Error>,
    /// The session to which later calls belong, if the call switched to another session.
    pub session_switch: Option<ConversationSessionSwitch>,
    /// The number of the journal entry with the change of the call.
    pub entry: Option<u64>,
    /// The id of the watch that the call began or ended.
    pub(crate) watch: Option<(BegunOrEndedWatch, String)>,
}

impl<T> FinishedCall<T> {
    fn failed(error: Error, reply: T) -> Self {
        Self { reply, error: Some(error), session_switch: None, entry: None, watch: None }
    }

    /// The reply to a call that succeeded, or the error of a call that failed.
    pub fn into_result(self) -> Result<T, Error> {
        match self.error {
            None => Ok(self.reply),
            Some(error) => Err(error),
        }
    }
}

impl<T: 'static> PreparedCall<T> {
    /// Prepares a call whose result `render` turns into the reply.
    pub(crate) fn new<O: RenderableOperation>(
        arguments: O,
        options: CallOptions,
        render: impl FnOnce(TypedCallResult<O>) -> T + Send + 'static,
    ) -> Self {
        Self { options, operation: Box::new(TypedOperation { arguments, render }) }
    }

    /// Prepares a call that the engine only records, because its arguments are invalid.
    pub(crate) fn rejected(
        operation: &str,
        arguments: &Map<String, Value>,
        error: Error,
        options: CallOptions,
        render: impl FnOnce(Error) -> T + Send + 'static,
    ) -> Self {
        let (operation, arguments) = (operation.to_owned(), arguments.clone());
        Self { options, operation: Box::new(RejectedOperation { operation, arguments, error, render }) }
    }

    /// The name of the engine operation that the prepared call requests.
    pub fn operation(&self) -> &str {
        self.operation.name()
    }

    pub(crate) fn forecast(&self, engine: &Engine) -> CallForecast {
        engine.forecast(self.operation.duration_factor(), &self.options)
    }

    /// Runs the prepared call and renders its result. The call leaves one journal entry.
    pub fn run(
        self,
        engine: &Engine,
        caller: &Caller,
        idempotency_key: Option<&str>,
        control: &CallControl<'_>,
    ) -> FinishedCall<T> {
        let Self { options, operation } = self;
        operation.run(engine, &CallMetadata { caller, idempotency_key, options: &options, control })
    }

    /// Returns the prepared call for the operation `policy`, which explains the call without running it. The result is
    /// `None` if no operation has the name of the call.
    pub fn into_inspected(self) -> Option<InspectedCall> {
        self.operation.inspect(self.options)
    }
}

impl PreparedCall<DialectReply> {
    /// Prepares a call of a dialect. A call that repeats an idempotency key has no outcome of its operation, so its
    /// reply is the native one.
    pub(crate) fn for_dialect<O: RenderableOperation>(
        arguments: O,
        options: CallOptions,
        render: impl FnOnce(Result<OutcomeWithBytes<O::Result>, Error>) -> DialectReply + Send + 'static,
    ) -> Self {
        Self::new(arguments, options, |result| match result {
            Ok(CallReply { result: SuccessfulCallResult::Done(outcome), before_after, .. }) => {
                render(Ok(OutcomeWithBytes { outcome, before_after }))
            }
            Ok(reply) => native::render_reply(Ok(reply), CallStyle::ToolCall),
            Err(error) => render(Err(error)),
        })
    }
}

/// An operation whose type only its caller knows.
trait PreparedOperation<T>: Send {
    fn name(&self) -> &str;
    fn duration_factor(&self) -> CallDurationFactor<'_>;
    fn run(self: Box<Self>, engine: &Engine, call: &CallMetadata<'_>) -> FinishedCall<T>;
    fn inspect(self: Box<Self>, options: CallOptions) -> Option<InspectedCall>;
}

struct TypedOperation<O, R> {
    arguments: O,
    render: R,
}

impl<T, O: RenderableOperation, R: FnOnce(TypedCallResult<O>) -> T + Send> PreparedOperation<T>
    for TypedOperation<O, R>
{
    fn name(&self) -> &str {
        O::DEFINITION.name
    }

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        self.arguments.duration_factor()
    }

    fn run(self: Box<Self>, engine: &Engine, call: &CallMetadata<'_>) -> FinishedCall<T> {
        match engine.run(self.arguments, call) {
            Err(error) => FinishedCall::failed(error.clone(), (self.render)(Err(error))),
            Ok(reply) => {
                let (entry, session_switch) = (reply.entry, reply.session_switch.clone());
                let watch = match &reply.result {
                    SuccessfulCallResult::Done(outcome) => outcome.watch(),
                    SuccessfulCallResult::AlreadyDone(_) | SuccessfulCallResult::LeftToEditor => None,
                };
                FinishedCall { error: None, session_switch, entry, watch, reply: (self.render)(Ok(reply)) }
            }
        }
    }

    fn inspect(self: Box<Self>, options: CallOptions) -> Option<InspectedCall> {
        Some(InspectedCall::new(self.arguments, options))
    }
}

struct RejectedOperation<R> {
    operation: String,
    arguments: Map<String, Value>,
    error: Error,
    render: R,
}

impl<T, R: FnOnce(Error) -> T + Send> PreparedOperation<T> for RejectedOperation<R> {
    fn name(&self) -> &str {
        &self.operation
    }

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::Unknown
    }

    fn run(self: Box<Self>, engine: &Engine, call: &CallMetadata<'_>) -> FinishedCall<T> {
        let error = engine.refuse(&self.operation, &self.arguments, self.error, call);
        FinishedCall::failed(error.clone(), (self.render)(error))
    }

    fn inspect(self: Box<Self>, options: CallOptions) -> Option<InspectedCall> {
        Some(InspectedCall::rejected(find_operation(&self.operation)?, self.error, options))
    }
}
