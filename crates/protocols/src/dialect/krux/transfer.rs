//! Capabilities with a source and a destination: delete to the trash, restore, copy, move.

use serde_json::{Value, json};
use stead_engine::{CallOptions, CallOutcome, CopyMoveScope, Error, MissingParentPolicy, RestoreConflictPolicy};

use super::{
    super::{
        TranslatedCall,
        trash_handle::{id_from_trash_handle, trash_handle},
    },
    KruxCall,
    args::invalid_input,
    capability::KruxTransferCapability,
    files::{absolute_path, outcome_number},
    into_object, paths,
};

pub(super) fn translate(
    call: &KruxCall<'_>,
    capability: KruxTransferCapability,
    options: CallOptions,
) -> Result<TranslatedCall, Error> {
    let inputs = &call.inputs;
    let restore_conflict =
        if inputs.is_set("overwrite") { RestoreConflictPolicy::TrashExisting } else { RestoreConflictPolicy::Refuse };
    let options = CallOptions {
        missing_parents: MissingParentPolicy::Refuse,
        copy_move_scope: CopyMoveScope::FilesOnly,
        restore_conflict,
        ..options
    };
    let (operation, arguments) = match capability {
        KruxTransferCapability::Delete => {
            ("remove", json!({ "path": paths::require_absolute("path", inputs.text_or_empty("path"))? }))
        }
        KruxTransferCapability::Restore => {
            let trash = match (inputs.optional_text("trash_path"), inputs.optional_text("original_path")) {
                (Some(trash), None) => id_from_trash_handle(trash),
                (None, Some(original)) => paths::require_absolute("original_path", original)?,
                (Some(_), Some(_)) => return Err(invalid_input("original_path", "excludes trash_path")),
                (None, None) => return Err(invalid_input("trash_path", "or original_path is required")),
            };
            let mut arguments = json!({ "trash": trash });
            if let Some(to) = inputs.optional_text("destination") {
                arguments["to"] = paths::require_absolute("destination", to)?.into();
            }
            ("restore", arguments)
        }
        KruxTransferCapability::Copy | KruxTransferCapability::Move => {
            let from = paths::require_absolute("source", inputs.text_or_empty("source"))?;
            let to = paths::require_absolute("destination", inputs.text_or_empty("destination"))?;
            let mapper = &call.dialect.paths;
            if mapper.parse(from).is_some_and(|from| mapper.parse(to) == Some(from)) {
                return Err(invalid_input("destination", "is the source itself"));
            }
            let operation = if capability == KruxTransferCapability::Move { "move" } else { "copy" };
            (operation, json!({ "from": from, "to": to, "overwrite": inputs.is_set("overwrite") }))
        }
    };
    Ok(TranslatedCall { operation: operation.to_owned(), arguments: into_object(arguments), options })
}

pub(super) fn render_outcome(call: &KruxCall<'_>, capability: KruxTransferCapability, outcome: &CallOutcome) -> Value {
    let field = |name: &str| outcome.json.get(name).and_then(Value::as_str).unwrap_or_default();
    let path = absolute_path(call, outcome, "path");
    match capability {
        KruxTransferCapability::Delete => json!({
            "deleted_path": path,
            "trash_path": trash_handle(field("trash"), field("path")),
            "recoverable_until": field("recoverable_until"),
        }),
        KruxTransferCapability::Restore => {
            let mut restored = json!({
                "restored_path": path,
                "trash_path": trash_handle(field("trash"), field("from")),
                "original_path": absolute_path(call, outcome, "from"),
                "size": outcome_number(outcome, "bytes"),
            });
            if let Some(version) = outcome.json.get("version") {
                restored["checksum"] = version.clone();
            }
            if outcome.json.contains_key("replaced") {
                restored["replaced_trash_path"] = trash_handle(field("replaced"), field("path")).into();
            }
            restored
        }
        KruxTransferCapability::Move => json!({
            "source": absolute_path(call, outcome, "from"), "destination": path, "size": outcome_number(outcome, "bytes"),
        }),
        KruxTransferCapability::Copy => json!({
            "source": absolute_path(call, outcome, "from"),
            "destination": path,
            "size": outcome_number(outcome, "size"),
            "checksum": outcome.json.get("version"),
        }),
    }
}
