//! What a method does: one of the face's own, or a tool of a dialect that is served.

use engine::Failure;
use serde_json::{Map, Value, json};

use super::{
    Rpc, capabilities,
    code::{self, ErrorObject},
    conversation::Admitted,
    message::Request,
    notice::{self, Teller},
};
use crate::{
    dialect::{self, Dialect, Reply, Verdict},
    push::Watching,
    run::Asked,
};

/// What a caller of a method that is not there can do.
const UNKNOWN_HINT: &str = "call rpc.discover or capabilities.list to see which there are";
/// The member of the parameters that is about the call and no part of it.
const META: &str = "_meta";
/// Where it says how long the call waits for a person, when one has to approve it.
const HOLD_MEMBER: &str = "stead/hold_ms";
/// Where it carries the idempotency key.
const KEY_MEMBER: &str = "stead/key";

/// What a tool answered, and why it failed if it did.
struct Ran<'a> {
    dialect: &'a dyn Dialect,
    reply: Reply,
    failure: Option<Failure>,
}

/// What came with a call besides its arguments.
struct Attached {
    id: Option<Value>,
    key: Option<String>,
    hold_ms: u64,
    progress: Option<Value>,
}

impl Attached {
    /// Takes it out of the parameters. A key that is no text is passed on as an empty one, which the engine refuses:
    /// ignoring it could make a change twice.
    fn take(id: Option<Value>, params: &mut Map<String, Value>) -> Result<Self, ErrorObject> {
        let meta = match params.remove(META) {
            None => Map::new(),
            Some(Value::Object(meta)) => meta,
            Some(_) => return Err(ErrorObject::new(code::INVALID_PARAMS, "_meta must be an object")),
        };
        let key = meta.get(KEY_MEMBER).map(|key| key.as_str().unwrap_or_default().to_owned());
        let hold_ms = meta.get(HOLD_MEMBER).and_then(Value::as_u64).unwrap_or_default();
        Ok(Self { id, key, hold_ms, progress: notice::token(&meta)? })
    }
}

impl Rpc {
    /// Does what one request says.
    pub(super) async fn call(&self, request: Request, admitted: &Admitted) -> Result<Value, ErrorObject> {
        let Request { id, method, mut params } = request;
        let attached = Attached::take(id, &mut params)?;
        match method.as_str() {
            "rpc.discover" => {
                let served = self.dialects.iter().map(|dialect| dialect.definition());
                let document = super::document(served)
                    .map_err(|broken| ErrorObject::new(code::INTERNAL_ERROR, broken.to_string()))?;
                Ok(self.offered(document))
            }
            "capabilities.list" => capabilities::list(self, &params),
            "capabilities.describe" => capabilities::describe(self, &params),
            "capabilities.invoke" => self.invoke(&params, attached, admitted).await,
            "$/cancelRequest" => {
                admitted.conversation().cancel(params.get("id").unwrap_or(&Value::Null));
                Ok(Value::Null)
            }
            tool => {
                let ran = self.run(tool, &params, attached, admitted).await?;
                ran.plain()
            }
        }
    }

    /// `capabilities.invoke`: an outcome in an envelope; what the protocol has a code for is an error of the protocol.
    async fn invoke(
        &self,
        params: &Map<String, Value>,
        attached: Attached,
        admitted: &Admitted,
    ) -> Result<Value, ErrorObject> {
        let misfit = || {
            ErrorObject::new(
                code::INVALID_PARAMS,
                "capabilities.invoke takes {\"capability\": string, \"arguments\"?: object}",
            )
        };
        let none = Map::new();
        let capability = params.get("capability").and_then(Value::as_str).ok_or_else(misfit)?;
        let arguments = match params.get("arguments") {
            None => &none,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(misfit()),
        };
        if params.keys().any(|name| !["capability", "arguments"].contains(&name.as_str())) {
            return Err(misfit());
        }
        let ran = self.run(capability, arguments, attached, admitted).await;
        ran.map_err(|error| match error.code {
            code::METHOD_NOT_FOUND => ErrorObject { code: code::INVALID_PARAMS, ..error },
            _ => error,
        })?
        .enveloped()
    }

    /// Runs one tool. A tool that is not there is refused, and recorded like any other call.
    async fn run(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        attached: Attached,
        admitted: &Admitted,
    ) -> Result<Ran<'_>, ErrorObject> {
        let named = self.dialects.named(tool);
        let dialect::Request { operation, arguments: native, terms } = match named {
            Some((dialect, tool)) => dialect.ask(tool, arguments),
            None => dialect::unknown(tool, "method", UNKNOWN_HINT),
        };
        let watching = Watching::of(&operation);
        let asked = Asked {
            caller: admitted.take(&self.caller),
            operation,
            arguments: native,
            terms,
            key: attached.key.or_else(|| admitted.conversation().key().cloned()),
            hold_ms: attached.hold_ms,
        };
        let pace = self.runner.pace(&asked);
        let enlisted = admitted.enlist(attached.id.as_ref());
        let (told, teller) = Teller::new(admitted.conversation().out(), attached.progress);
        let call = self.runner.run(asked, pace, admitted.company(), told, enlisted.unwanted(pace));
        let (outcome, ()) = tokio::join!(call, teller.tell());
        let outcome = outcome.map_err(|broken| ErrorObject::new(code::INTERNAL_ERROR, broken.to_string()))?;
        admitted.seat().follow(&outcome);
        if let (Ok(answer), Some(push), Some((dialect, _))) =
            (&outcome, admitted.conversation().push(), named)
        {
            let caller = admitted.take(&self.caller);
            push.follow(&watching, answer, self.runner.engine(), &caller, &dialect.definition().dialect);
        }
        match (outcome, named) {
            (outcome, Some((dialect, tool))) => {
                let failure = outcome.as_ref().err().cloned();
                Ok(Ran { dialect, reply: dialect.reply(tool, arguments, outcome), failure })
            }
            (Err(failure), None) => Err(ErrorObject::of(&failure, failure.to_json())),
            (Ok(_), None) => {
                Err(ErrorObject::new(code::INTERNAL_ERROR, "a method that is not there answered"))
            }
        }
    }
}

impl Ran<'_> {
    /// The outcome of a direct call: the dialect's object, or an error that carries it.
    fn plain(self) -> Result<Value, ErrorObject> {
        match (self.reply.verdict, &self.failure) {
            (Verdict::Fine, _) => Ok(Value::Object(self.reply.json)),
            (Verdict::Error, Some(failure)) => Err(ErrorObject::of(failure, self.reply.json)),
            (Verdict::Error, None) => {
                Err(ErrorObject::new(code::FAILED, self.reply.text).with(self.reply.json))
            }
        }
    }

    /// The outcome in the envelope of `capabilities.invoke`.
    fn enveloped(self) -> Result<Value, ErrorObject> {
        match (self.reply.verdict, &self.failure) {
            (Verdict::Fine, _) => Ok(json!({ "success": true, "data": self.reply.json })),
            (Verdict::Error, Some(failure)) if code::is_of_protocol(failure.kind) => {
                Err(ErrorObject::of(failure, self.reply.json))
            }
            (Verdict::Error, failure) => {
                let error = self.dialect.sorry(&self.reply, failure.as_ref());
                Ok(json!({ "success": false, "error": error }))
            }
        }
    }
}
