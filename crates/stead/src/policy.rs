//! Runs `stead policy`, which explains the rules and tests calls against the rules.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use stead_engine::{CallControl, OPERATIONS, ops::InspectPolicyArgs};
use stead_local::LandlockMode;
use stead_protocols::{
    dialect::{self, DialectReply, DialectSet, DialectWorkspaceRootPath},
    native,
    prepared_call::PreparedCall,
};

use crate::{
    cli::{CallerAccessCliFlags, WorkspaceFlags},
    command_style::COMMAND_STYLE,
    open_workspace::{self, CallerProtocol},
    operation::print_answer,
    output::{self, AnswerFormatFlag, CliCommandResult, CommandError},
};

const CHECK_USAGE: &str = "stead policy check [OPTIONS] <OPERATION> [ARGUMENTS]...

Example: stead policy check write path=notes.txt --principal agent:mcp";

#[derive(Debug, Args)]
pub(crate) struct PolicyCliArgs {
    #[command(subcommand)]
    action: PolicySubcommand,
}

#[derive(Debug, Subcommand)]
enum PolicySubcommand {
    /// Show how the policy would decide a call, and by which rule, without running it
    #[command(override_usage = CHECK_USAGE)]
    Check {
        /// Caller: user:NAME or agent:NAME
        #[arg(long, value_name = "PRINCIPAL", default_value = "agent:mcp")]
        principal: String,
        /// Operation, or tool of a dialect with or without the dialect's name: krux/filesystem.delete
        operation: String,
        /// Arguments of the call, such as path=notes.txt, or one JSON object
        arguments: Vec<String>,
        #[command(flatten)]
        format: AnswerFormatFlag,
    },
    /// List the rules that apply to a principal
    List {
        /// Principal: user:NAME or agent:NAME
        #[arg(long, value_name = "PRINCIPAL", default_value = "agent:mcp")]
        principal: String,
        #[command(flatten)]
        format: AnswerFormatFlag,
    },
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &PolicyCliArgs) -> CliCommandResult {
    let (call, format) = match &arguments.action {
        PolicySubcommand::Check { principal, operation, arguments, format } => {
            (inspecting_call(flags, operation, parse_arguments(arguments)?, principal)?, *format)
        }
        PolicySubcommand::List { principal, format } => (policy_call(principal, None), *format),
    };
    let caller = open_workspace::caller_from_flags(&CallerAccessCliFlags::default(), CallerProtocol::Person)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let answer = call.run(&opened.engine, &caller, None, &CallControl::default()).into_result()?;
    print_answer(&answer, format.into())
}

fn policy_call(principal: &str, inspected: Option<PreparedCall<DialectReply>>) -> PreparedCall<DialectReply> {
    let arguments = InspectPolicyArgs {
        operation: inspected.as_ref().map(|call| call.operation().to_owned()),
        principal: Some(principal.to_owned()),
        inspected: inspected.and_then(PreparedCall::into_inspected),
        ..InspectPolicyArgs::default()
    };
    native::prepare_call(arguments, COMMAND_STYLE)
}

fn inspecting_call(
    flags: &WorkspaceFlags,
    name: &str,
    arguments: Map<String, Value>,
    principal: &str,
) -> Result<PreparedCall<DialectReply>, CommandError> {
    let is_operation = OPERATIONS.iter().any(|row| row.name == name);
    let mut found: Vec<(String, PreparedCall<DialectReply>)> = Vec::new();
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
        Ok([(_, call)]) => Ok(policy_call(principal, Some(call))),
        // The name is an operation or unknown; an unknown name is reported as an invalid argument of `policy`.
        Err(found) if found.is_empty() => {
            let arguments = json!({ "operation": name, "arguments": arguments, "principal": principal });
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            Ok(native::prepare_json_call("policy", &arguments, COMMAND_STYLE))
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
