//! Turns every operation into a command. Other commands call operations through [`call_operation`], so that the hints
//! of all errors name commands.

use std::io::{IsTerminal, Read};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::PossibleValuesParser, value_parser};
use serde_json::{Map, Value};
use stead_engine::{
    CallControl, CallProgress, Caller, CancelToken, Error, ErrorKind, OperationEffectClass, find_operation,
    limits::WRITE_BYTES_MAX,
};
use stead_local::LandlockMode;
use stead_protocols::definition::{CommandHelpDefinition, ToolArgumentDefinition, ToolArgumentType, ToolDefinition};
use stead_protocols::native::{CallNotation, EngineJsonCalls, JsonCall, RenderedOutcome};

use crate::{
    cli::{CALLER_HEADING, CallerAccessCliFlags, WorkspaceFlags},
    command_hints,
    command_notation::render_command,
    open_workspace::{self, CallerProtocol, CommandLineWorkspace},
    output::{self, CliCommandResult, CommandError, CommandExit, OutputFormat},
    progress_line::ProgressLinePrinter,
};

const STANDARD_INPUT: &str = "-";
/// Flags that the help of a command that only reads does not show.
const FLAGS_FOR_CHANGES: [&str; 3] = ["read_only", "writable", "key"];

#[derive(Debug, Args)]
struct CommonOperationCliFlags {
    #[command(flatten)]
    caller: CallerAccessCliFlags,
    /// Idempotency key; a repeated call with the same key is not applied again
    #[arg(long, value_name = "KEY", help_heading = CALLER_HEADING)]
    key: Option<String>,
    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

/// Builds the command of an operation, unless its definition has no help for a command.
pub(crate) fn operation_command(operation: &ToolDefinition) -> Option<Command> {
    let help = operation.command.as_ref()?;
    let arguments = operation.inputs.iter().map(|input| input_argument(help, input));
    let base = Command::new(operation.name.clone()).args(arguments);
    let only_reads = find_operation(&operation.name).is_some_and(|row| row.effect == OperationEffectClass::None);
    let details = if help.details.is_empty() { String::new() } else { format!("\n\n{}", help.details) };
    // `augment_args` sets a description from the doc comment of the flags, so the description is set afterwards.
    let command = CommonOperationCliFlags::augment_args(base)
        .mut_args(|flag| {
            let matters = !only_reads || !FLAGS_FOR_CHANGES.contains(&flag.get_id().as_str());
            if matters { flag } else { flag.hide(true) }
        })
        .about(help.about.clone())
        .long_about(format!("{}{details}", help.about));
    Some(command.override_usage(usage_with_example(operation, help)))
}

/// The usage of a command with an example. Usage errors print both, because the example shows how content is passed.
fn usage_with_example(operation: &ToolDefinition, help: &CommandHelpDefinition) -> String {
    let mut positional: Vec<&ToolArgumentDefinition> =
        operation.inputs.iter().filter(|input| input.positional.is_some()).collect();
    positional.sort_by_key(|input| input.positional);
    let place = |input: &ToolArgumentDefinition| {
        let name = input.name.to_uppercase();
        if input.required { format!(" <{name}>") } else { format!(" [{name}]") }
    };
    let places: String = positional.into_iter().map(place).collect();
    format!("stead {} [OPTIONS]{places}\n\nExample: {}", operation.name, help.example)
}

fn input_argument(help: &CommandHelpDefinition, input: &ToolArgumentDefinition) -> Arg {
    let help = help.arguments.get(&input.name).cloned().unwrap_or_default();
    let arg = Arg::new(input.name.clone()).help(help.clone());
    if input.kind == ToolArgumentType::Boolean {
        return arg.long(flag_name(input)).action(ArgAction::SetTrue);
    }
    let arg = match input.positional {
        Some(place) => arg.index(place).required(input.required),
        None if input.stdin => arg.long(flag_name(input)).help(format!("{help} [default: standard input]")),
        None => arg.long(flag_name(input)).required(input.required),
    };
    let arg = arg.value_name(input.name.to_uppercase());
    match input.kind {
        ToolArgumentType::Integer => arg.value_parser(value_parser!(u64)),
        ToolArgumentType::Enum => arg.value_parser(PossibleValuesParser::new(input.values.clone())),
        ToolArgumentType::String
        | ToolArgumentType::StringOrList
        | ToolArgumentType::Boolean
        | ToolArgumentType::Json => arg.allow_hyphen_values(input.stdin),
    }
}

fn flag_name(input: &ToolArgumentDefinition) -> String {
    input.name.replace('_', "-")
}

pub(crate) fn run(operation: &ToolDefinition, flags: &WorkspaceFlags, matches: &ArgMatches) -> CliCommandResult {
    let call_flags = CommonOperationCliFlags::from_arg_matches(matches).map_err(output::usage_error)?;
    let caller = open_workspace::caller_from_flags(&call_flags.caller, CallerProtocol::Person)?;
    let arguments = operation_arguments(operation, matches)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let mut call = new_call(&caller, &operation.name, arguments);
    call.idempotency_key = call_flags.key.as_deref();
    let format = OutputFormat::from(call_flags.json);
    let progress_line = ProgressLinePrinter::for_person();
    let update = |progress| progress_line.iter().for_each(|line| line.update(progress));
    let on_progress: Option<&(dyn Fn(CallProgress) + Sync)> = progress_line.is_some().then_some(&update);
    call.control = CallControl::new(call.control.deadline(), CancelToken::default(), on_progress);
    let outcome = run_call(&opened, &call);
    // Dropping the progress line clears it before the answer is printed.
    drop(progress_line);
    match outcome {
        Ok(answer) if operation.name == "read" && format == OutputFormat::Text && !output::is_output_terminal() => {
            print_content(&answer)
        }
        Ok(answer) => print_answer(answer, format),
        Err(error) => {
            if format == OutputFormat::Json {
                output::print_json(&error.to_json())?;
            }
            Err(error.into())
        }
    }
}

/// Calls an operation of the engine without the arguments whose value is null.
pub(crate) fn call_operation(
    opened: &CommandLineWorkspace,
    caller: &Caller,
    operation: &str,
    arguments: Value,
) -> Result<RenderedOutcome, Error> {
    let mut arguments = arguments.as_object().cloned().unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    run_call(opened, &new_call(caller, operation, arguments))
}

fn new_call<'a>(caller: &'a Caller, operation: &'a str, arguments: Map<String, Value>) -> JsonCall<'a> {
    let mut call = JsonCall::new(caller, operation, arguments);
    call.notation = CallNotation::Command(render_command);
    call
}

pub(crate) fn run_call(opened: &CommandLineWorkspace, call: &JsonCall<'_>) -> Result<RenderedOutcome, Error> {
    opened.engine.call(call).map_err(|error| command_hints::with_command_hint(call, error))
}

pub(crate) fn print_answer(answer: RenderedOutcome, format: OutputFormat) -> CliCommandResult {
    output::print_as(format, || Value::Object(answer.json), || answer.text)?;
    Ok(CommandExit::Success)
}

fn operation_arguments(operation: &ToolDefinition, matches: &ArgMatches) -> Result<Map<String, Value>, CommandError> {
    let mut arguments = Map::new();
    for input in &operation.inputs {
        let name = input.name.as_str();
        let value = match input.kind {
            ToolArgumentType::Boolean => matches.get_flag(name).then(|| Value::Bool(true)),
            ToolArgumentType::Integer => matches.get_one::<u64>(name).map(|number| (*number).into()),
            ToolArgumentType::String | ToolArgumentType::StringOrList | ToolArgumentType::Enum => {
                matches.get_one::<String>(name).map(|text| text.clone().into())
            }
            ToolArgumentType::Json => {
                let given = matches.get_one::<String>(name).filter(|text| *text != STANDARD_INPUT);
                given.map(|text| parse_json_argument(operation, name, text)).transpose()?
            }
        };
        let is_from_stdin = input.stdin && value.as_ref().is_some_and(|value| value == STANDARD_INPUT);
        if let Some(value) = value.filter(|_| !is_from_stdin) {
            arguments.insert(name.to_owned(), value);
        }
    }
    for input in operation.inputs.iter().filter(|input| input.stdin) {
        if !arguments.contains_key(&input.name) {
            read_standard_input(operation, input, &mut arguments)?;
        }
    }
    Ok(arguments)
}

fn parse_json_argument(operation: &ToolDefinition, name: &str, text: &str) -> Result<Value, CommandError> {
    serde_json::from_str(text).map_err(|error| {
        let command = &operation.name;
        output::usage_error(format!("--{name} is not valid JSON: {error}; for an example, run: stead {command} --help"))
    })
}

/// Reads one argument of an operation from standard input. Bytes that are not UTF-8 are passed as base64 to an
/// operation with an argument `encoding`.
fn read_standard_input(
    operation: &ToolDefinition,
    input: &ToolArgumentDefinition,
    arguments: &mut Map<String, Value>,
) -> Result<(), CommandError> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        output::print_note("enter the text; end it with Ctrl-D on a new line");
    }
    let mut bytes = Vec::new();
    stdin.by_ref().take(WRITE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let takes_base64 = operation.inputs.iter().any(|input| input.name == "encoding");
    let content = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if takes_base64 && !arguments.contains_key("encoding") => {
            arguments.insert("encoding".to_owned(), "base64".into());
            STANDARD.encode(error.as_bytes())
        }
        Err(_) => {
            return Err(Error::new(ErrorKind::NotText, "standard input is not UTF-8 text; nothing was changed")
                .with_next_step("to write binary content, run: stead write PATH < FILE")
                .into());
        }
    };
    arguments.insert(input.name.clone(), content.into());
    Ok(())
}

/// Prints only the content of a file, for output to a pipe or a file.
fn print_content(answer: &RenderedOutcome) -> CliCommandResult {
    let field = |name: &str| answer.json.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("encoding") == "base64" {
        let bytes = STANDARD.decode(field("content")).map_err(|error| CommandError::System(error.to_string()))?;
        output::print_bytes(&bytes)?;
    } else {
        output::print_bytes(field("content").as_bytes())?;
    }
    if answer.json.get("truncated") == Some(&Value::Bool(true)) {
        let next = answer.json.get("next").and_then(Value::as_object);
        let command = next.map(|next| format!("; for the rest, run: {}", render_command("read", next)));
        output::print_note(&format!("output truncated{}", command.unwrap_or_default()));
    }
    Ok(CommandExit::Success)
}
