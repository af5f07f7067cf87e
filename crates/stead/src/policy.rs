//! Runs `stead policy`, which explains the rules and tests calls against the rules.

use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, OPERATIONS};
use stead_local::LandlockMode;
use stead_protocols::dialect::{self, DialectSet, DialectWorkspaceRootPath, TranslatedCall};
use stead_protocols::native::JsonCall;

use crate::{
    cli::{CallerAccessCliFlags, WorkspaceFlags},
    open_workspace::{self, CallerProtocol},
    operation::{print_answer, run_call},
    output::{self, CliCommandResult, CommandError, OutputFormat},
};

#[derive(Debug, Args)]
pub(crate) struct PolicyCliArgs {
    #[command(subcommand)]
    action: PolicySubcommand,
}

#[derive(Debug, Subcommand)]
enum PolicySubcommand {
    /// Show how the policy would decide a call, and by which rule, without running it
    Check {
        /// Caller: user:NAME or agent:NAME
        #[arg(long, value_name = "PRINCIPAL", default_value = "agent:mcp")]
        principal: String,
        /// Operation, or tool of a dialect with or without the dialect's name: krux/filesystem.delete
        operation: String,
        /// Arguments of the call, such as path=notes.txt, or one JSON object
        arguments: Vec<String>,
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the rules that apply to a principal
    List {
        /// Principal: user:NAME or agent:NAME
        #[arg(long, value_name = "PRINCIPAL", default_value = "agent:mcp")]
        principal: String,
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &PolicyCliArgs) -> CliCommandResult {
    let mut options = CallOptions::default();
    let (call_arguments, json) = match &arguments.action {
        PolicySubcommand::Check { principal, operation, arguments, json } => {
            let TranslatedCall { operation, arguments, options: inspected } =
                engine_request(flags, operation, parse_arguments(arguments)?)?;
            options.options_of_inspected_call = Some(Arc::new(inspected));
            (json!({ "operation": operation, "arguments": arguments, "principal": principal }), *json)
        }
        PolicySubcommand::List { principal, json } => (json!({ "principal": principal }), *json),
    };
    let caller = open_workspace::caller_from_flags(&CallerAccessCliFlags::default(), CallerProtocol::Person)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let call_arguments = call_arguments.as_object().cloned().unwrap_or_default();
    let answer = run_call(&opened, &JsonCall { options, ..JsonCall::new(&caller, "policy", call_arguments) })?;
    print_answer(answer, OutputFormat::from(json))
}

fn engine_request(
    flags: &WorkspaceFlags,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<TranslatedCall, CommandError> {
    let is_operation = OPERATIONS.iter().any(|row| row.name == name);
    let mut found: Vec<(String, TranslatedCall)> = Vec::new();
    let dialects = if is_operation { Vec::new() } else { dialect::dialect_names() };
    for dialect in dialects {
        let location = DialectWorkspaceRootPath { root: open_workspace::workspace_path(flags)? };
        let dialects = DialectSet::from_names(&[dialect.to_owned()], &[], &location).map_err(output::usage_error)?;
        let bare = name.strip_prefix(dialect).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
        if let Some((dialect, tool)) = dialects.find_tool(bare)
            && let Some(full) = dialect.full_name(tool)
        {
            found.push((full, dialect.translate_with_tier(tool, &arguments)));
        }
    }
    match <[_; 1]>::try_from(found) {
        Ok([(_, request)]) => Ok(request),
        // The name is an operation or unknown; the engine reports an unknown name.
        Err(found) if found.is_empty() => {
            Ok(TranslatedCall { operation: name.to_owned(), arguments, options: CallOptions::default() })
        }
        Err(found) => {
            let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
            Err(output::usage_error(format!(
                "several dialects have a tool '{name}'; pass one of: {}",
                names.join(", ")
            )))
        }
    }
}

/// Parses NAME=VALUE arguments; a value that is not valid JSON is a string.
fn parse_arguments(written: &[String]) -> Result<Map<String, Value>, CommandError> {
    let mut arguments = Map::new();
    for word in written {
        if let Ok(Value::Object(whole)) = serde_json::from_str::<Value>(word) {
            arguments.extend(whole);
            continue;
        }
        let (name, value) = word.split_once('=').ok_or_else(|| {
            output::usage_error(format!(
                "'{word}' is not an argument; pass NAME=VALUE, such as path=notes.txt, or one JSON object"
            ))
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        arguments.insert(name.to_owned(), value);
    }
    Ok(arguments)
}
