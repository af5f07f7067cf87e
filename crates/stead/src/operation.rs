//! Every operation as a command. Arguments come from its definition, help from [`help_texts`].

use std::io::{IsTerminal, Read};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::PossibleValuesParser, value_parser};
use serde_json::{Map, Value};
use stead_engine::{
    Call, CallControl, CallOutcome, CallProgress, CancelToken, Error, ErrorKind, limits::WRITE_BYTES_MAX,
};
use stead_local::LandlockMode;
use stead_protocols::definition::{ToolDefinition, ToolInput, ToolInputType};

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    help_texts,
    open_workspace::{self, CallerKind},
    output::{self, CommandError, CommandExit, CommandResult, OutputFormat},
    progress_line::ProgressLine,
};

/// The argument value that means standard input.
const STANDARD_INPUT: &str = "-";

/// The flags of every operation command.
#[derive(Debug, Args)]
struct CallFlags {
    #[command(flatten)]
    caller: CallerFlags,
    /// Idempotency key; a repeated call with the same key is not applied again
    #[arg(long, value_name = "KEY", help_heading = "Caller")]
    key: Option<String>,
    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

/// The command of one operation.
pub(crate) fn operation_command(operation: &ToolDefinition) -> Command {
    let arguments = operation.inputs.iter().map(|input| input_argument(operation, input));
    let base = Command::new(operation.name.clone()).args(arguments);
    // `augment_args` sets a description from the flags' doc comment, so the command's is set afterwards.
    CallFlags::augment_args(base).about(help_texts::about(operation)).long_about(help_texts::long_about(operation))
}

fn input_argument(operation: &ToolDefinition, input: &ToolInput) -> Arg {
    let help = help_texts::argument_help(operation, input);
    let arg = Arg::new(input.name.clone()).help(help);
    let arg = match (input.kind, input.positional) {
        (ToolInputType::Boolean, _) => return arg.long(flag_name(input)).action(ArgAction::SetTrue),
        (
            ToolInputType::String
            | ToolInputType::StringOrList
            | ToolInputType::Integer
            | ToolInputType::Enum
            | ToolInputType::Json,
            Some(place),
        ) => arg.index(place).required(input.required),
        (
            ToolInputType::String
            | ToolInputType::StringOrList
            | ToolInputType::Integer
            | ToolInputType::Enum
            | ToolInputType::Json,
            None,
        ) if input.stdin => arg.long(flag_name(input)).help(format!("{help} [default: standard input]")),
        (
            ToolInputType::String
            | ToolInputType::StringOrList
            | ToolInputType::Integer
            | ToolInputType::Enum
            | ToolInputType::Json,
            None,
        ) => arg.long(flag_name(input)).required(input.required),
    };
    let arg = arg.value_name(input.name.to_uppercase());
    match input.kind {
        ToolInputType::Integer => arg.value_parser(value_parser!(u64)),
        ToolInputType::Enum => arg.value_parser(PossibleValuesParser::new(input.values.clone())),
        ToolInputType::String | ToolInputType::StringOrList | ToolInputType::Boolean | ToolInputType::Json => {
            arg.allow_hyphen_values(input.stdin)
        }
    }
}

fn flag_name(input: &ToolInput) -> String {
    input.name.replace('_', "-")
}

pub(crate) fn run(operation: &ToolDefinition, flags: &WorkspaceFlags, matches: &ArgMatches) -> CommandResult {
    let call_flags = CallFlags::from_arg_matches(matches).map_err(output::usage_error)?;
    let caller = open_workspace::caller_from_flags(&call_flags.caller, CallerKind::Person)?;
    let arguments = operation_arguments(operation, matches)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let mut call = Call::new(&caller, &operation.name, arguments);
    call.idempotency_key = call_flags.key.as_deref();
    let form = OutputFormat::from(call_flags.json);
    let meter = ProgressLine::for_person();
    let tell = |progress| meter.iter().for_each(|meter| meter.update(progress));
    let listen: Option<&(dyn Fn(CallProgress) + Sync)> = meter.is_some().then_some(&tell);
    call.control = CallControl::new(call.control.deadline(), CancelToken::default(), listen);
    let outcome = opened.engine.call(&call);
    // Clears the progress line before the answer is printed.
    drop(meter);
    match outcome {
        Ok(answer) => print_outcome(operation, answer, form),
        Err(error) => {
            if form == OutputFormat::Json {
                output::print_json(&error.to_json())?;
            }
            Err(error.into())
        }
    }
}

fn operation_arguments(operation: &ToolDefinition, matches: &ArgMatches) -> Result<Map<String, Value>, CommandError> {
    let mut arguments = Map::new();
    for input in &operation.inputs {
        let name = input.name.as_str();
        let value = match input.kind {
            ToolInputType::Boolean => matches.get_flag(name).then(|| Value::Bool(true)),
            ToolInputType::Integer => matches.get_one::<u64>(name).map(|number| (*number).into()),
            ToolInputType::String | ToolInputType::StringOrList | ToolInputType::Enum => {
                matches.get_one::<String>(name).map(|text| text.clone().into())
            }
            ToolInputType::Json => {
                let written = matches.get_one::<String>(name).filter(|text| *text != STANDARD_INPUT);
                written.map(|text| parse_json_argument(name, text)).transpose()?
            }
        };
        let left_to_input = input.stdin && value.as_ref().is_some_and(|value| value == STANDARD_INPUT);
        if let Some(value) = value.filter(|_| !left_to_input) {
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

fn parse_json_argument(name: &str, text: &str) -> Result<Value, CommandError> {
    serde_json::from_str(text).map_err(|error| output::usage_error(format!("--{name} is not JSON: {error}")))
}

/// Reads an input from standard input. Bytes that are not UTF-8 are passed as base64 if the operation has an encoding.
fn read_standard_input(
    operation: &ToolDefinition,
    input: &ToolInput,
    arguments: &mut Map<String, Value>,
) -> Result<(), CommandError> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        output::print_note("reading standard input; end with Ctrl-D");
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
            return Err(Error::new(ErrorKind::NotText, "standard input is not UTF-8")
                .with_next_step("to write binary content, run: stead write PATH")
                .into());
        }
    };
    arguments.insert(input.name.clone(), content.into());
    Ok(())
}

fn print_outcome(operation: &ToolDefinition, answer: CallOutcome, form: OutputFormat) -> CommandResult {
    if form == OutputFormat::Json {
        output::print_json(&Value::Object(answer.json))?;
    } else if operation.name == "read" && !output::is_output_terminal() {
        print_content(&answer)?;
    } else {
        output::print_text(&answer.text)?;
    }
    Ok(CommandExit::Success)
}

/// Prints the content alone, for `read` into a pipe or a file. A truncated answer is reported on standard error.
fn print_content(answer: &CallOutcome) -> Result<(), CommandError> {
    let field = |name: &str| answer.json.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("encoding") == "base64" {
        let bytes = STANDARD.decode(field("content")).map_err(|error| CommandError::System(error.to_string()))?;
        output::print_bytes(&bytes)?;
    } else {
        output::print_bytes(field("content").as_bytes())?;
    }
    if answer.json.get("truncated") == Some(&Value::Bool(true)) {
        let next = answer.json.get("next").map(Value::to_string).unwrap_or_default();
        output::print_note(&format!("output truncated; continue with {next}"));
    }
    Ok(())
}
