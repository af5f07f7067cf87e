//! Turns every operation into a command. Other commands call operations through [`call_operation`], so that the hints
//! of all errors name commands.

use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::PossibleValuesParser, value_parser};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stead_engine::{
    AdministrationStore, CallControl, CallProgress, Caller, CancelToken, Error, ErrorKind, OperationEffectClass,
    RequiredAuthority, SecretTransport, find_operation, limits::WRITE_BYTES_MAX, ops::ReadArgs,
};
use stead_protocols::{
    definition::{
        CommandHelpDefinition, ToolArgumentDefinition, ToolArgumentType, ToolDefinition, ToolStreamDirection,
    },
    dialect::DialectReply,
    native::JsonCall,
};

use crate::{
    approvals,
    cli::{CALLER_HEADING, CallerAccessCliFlags, WorkspaceFlags},
    command_stream::CommandStream,
    command_style::COMMAND_STYLE,
    host_files,
    open_workspace::{self, CallerProtocol, CommandLineWorkspace},
    output::{self, AnswerFormatFlag, CliCommandResult, CommandError, CommandExit, OutputFormat},
    progress_line::ProgressLinePrinter,
    workspaces,
};

const STANDARD_INPUT: &str = "-";
/// The id of the file that a command writes or reads as a stream.
const STREAM_FILE: &str = "stream_file";
/// Flags that the help of a command that only reads does not show.
const FLAGS_FOR_CHANGES: [&str; 2] = ["writable", "key"];
/// A flag for servers: a command that changes files would always fail with it.
const FLAG_FOR_SERVERS: &str = "read_only";

/// A command that administers has no idempotency key, because the journal does not keep its answer.
#[derive(Debug, Args)]
struct IdempotencyKeyCliFlag {
    /// Idempotency key; a repeated call with the same key is not applied again
    #[arg(long, value_name = "KEY", help_heading = CALLER_HEADING)]
    key: Option<String>,
}

#[derive(Debug, Args)]
struct ApproverSecretCliFlag {
    /// Read the approver's secret, if one is set, from this file instead of the terminal
    #[arg(long, value_name = "FILE", help_heading = CALLER_HEADING)]
    secret_file: Option<PathBuf>,
}

/// Builds the command of an operation, unless its definition has no help for a command.
pub(crate) fn operation_command(operation: &ToolDefinition) -> Option<Command> {
    let help = operation.command.as_ref()?;
    let name = operation.command_words().rsplit(' ').next().unwrap_or_default().to_owned();
    let declared = operation.inputs.iter().filter(|input| !input.inherited);
    let mut command = Command::new(name).args(declared.map(|input| input_argument(help, input)));
    if let Some(flag) = &help.file {
        let file = Arg::new(STREAM_FILE).value_name("FILE").value_parser(value_parser!(PathBuf));
        let file = if flag.is_empty() { file } else { file.long(flag.clone()) };
        let default = match operation.stream {
            Some(ToolStreamDirection::Input) => "Archive to read [default: standard input]",
            Some(ToolStreamDirection::Output) | None => "File to create [default: standard output]",
        };
        command = command.arg(file.help(default));
    }
    let row = find_operation(&operation.name);
    let only_reads = row.is_some_and(|row| row.effect == OperationEffectClass::None);
    if has_caller_flags(operation) {
        command = CallerAccessCliFlags::augment_args(command);
    }
    command = match row.map_or(RequiredAuthority::Use, |row| row.authority) {
        RequiredAuthority::Use => IdempotencyKeyCliFlag::augment_args(command),
        RequiredAuthority::Administer | RequiredAuthority::SetSecret => command,
        RequiredAuthority::AdministerConfirmed | RequiredAuthority::Export | RequiredAuthority::IssueSecret => {
            ApproverSecretCliFlag::augment_args(command)
        }
    };
    let details = if help.details.is_empty() { String::new() } else { format!("\n\n{}", help.details) };
    // `augment_args` sets a description from the doc comment of the flags, so the description is set afterwards.
    let command = AnswerFormatFlag::augment_args(command)
        .mut_args(|flag| {
            let id = flag.get_id().as_str();
            let is_own = operation.inputs.iter().any(|input| input.name == id);
            let is_useless = id == FLAG_FOR_SERVERS || only_reads && FLAGS_FOR_CHANGES.contains(&id);
            if is_useless && !is_own { flag.hide(true) } else { flag }
        })
        .about(help.about.clone())
        .long_about(format!("{}{details}", help.about));
    let command = match &help.rows {
        Some(_) => command.mut_arg("json", |flag| flag.help("Print one JSON object per line")),
        None => command,
    };
    Some(command.override_usage(usage_with_example(operation, help)))
}

/// The usage of a command with an example. Usage errors print both, because the example shows how content is passed.
fn usage_with_example(operation: &ToolDefinition, help: &CommandHelpDefinition) -> String {
    let mut positional: Vec<&ToolArgumentDefinition> =
        operation.inputs.iter().filter(|input| input.positional.is_some()).collect();
    positional.sort_by_key(|input| input.positional);
    let place = |input: &ToolArgumentDefinition| {
        let name = value_name(input);
        let name = if input.required { format!(" <{name}>") } else { format!(" [{name}]") };
        if input.kind == ToolArgumentType::StringList { format!("{name}...") } else { name }
    };
    let places: String = positional.into_iter().map(place).collect();
    format!("stead {} [OPTIONS]{places}\n\nExample: {}", operation.command_words(), help.example)
}

/// An operation with an argument `principal` is called as the person at the terminal.
fn has_caller_flags(operation: &ToolDefinition) -> bool {
    operation.inputs.iter().all(|input| input.name != "principal")
}

fn input_argument(help: &CommandHelpDefinition, input: &ToolArgumentDefinition) -> Arg {
    let described = || input.description.trim_end_matches('.').to_owned();
    let help = help.arguments.get(&input.name).cloned().unwrap_or_else(described);
    let arg = Arg::new(argument_id(input)).help(help.clone());
    if (input.kind == ToolArgumentType::Boolean && input.writes.is_none()) || input.switch.is_some() {
        return arg.long(flag_name(input)).action(ArgAction::SetTrue);
    }
    let arg = match input.positional {
        Some(place) => arg.index(place).required(input.required),
        None if input.stdin => arg.long(flag_name(input)).help(format!("{help} [default: standard input]")),
        None => arg.long(flag_name(input)).required(input.required),
    };
    let mut arg = arg.value_name(value_name(input));
    if input.file || input.writes.is_some() {
        arg = arg.value_parser(value_parser!(PathBuf));
    }
    match input.kind {
        ToolArgumentType::StringList => arg.action(ArgAction::Append).num_args(1),
        ToolArgumentType::Integer => arg.value_parser(value_parser!(u64)),
        ToolArgumentType::Enum => arg.value_parser(PossibleValuesParser::new(input.values.clone())),
        ToolArgumentType::String
        | ToolArgumentType::StringOrList
        | ToolArgumentType::Boolean
        | ToolArgumentType::Json => arg.allow_hyphen_values(input.stdin),
    }
}

/// An id differs from the name of the argument where a flag of another command has that name.
fn argument_id(input: &ToolArgumentDefinition) -> String {
    input.switch.as_ref().or(input.flag.as_ref()).unwrap_or(&input.name).clone()
}

fn flag_name(input: &ToolArgumentDefinition) -> String {
    argument_id(input).replace('_', "-")
}

fn value_name(input: &ToolArgumentDefinition) -> String {
    input.value.clone().unwrap_or_else(|| argument_id(input).to_uppercase())
}

pub(crate) fn run(operation: &ToolDefinition, flags: &WorkspaceFlags, matches: &ArgMatches) -> CliCommandResult {
    let mut caller = caller_of_command(operation, matches)?;
    let arguments = operation_arguments(operation, matches)?;
    let opened = workspaces::open_target(&operation.name, flags, matches)?;
    if let Ok(secret_file) = matches.try_get_one::<PathBuf>("secret_file")
        && opened.local.has_approver_secret()?
    {
        approvals::verify_secret(&opened, &mut caller, secret_file.map(PathBuf::as_path))?;
    }
    let mut next = Some(arguments);
    let mut exit = CommandExit::Success;
    while let Some(arguments) = next.take() {
        let page = run_page(operation, &opened, &caller, arguments, matches)?;
        (exit, next) = (page.0, page.1);
    }
    Ok(exit)
}

/// Runs one call, prints its answer, and returns the arguments of the next page of a command with rows.
fn run_page(
    operation: &ToolDefinition,
    opened: &CommandLineWorkspace,
    caller: &Caller,
    arguments: Map<String, Value>,
    matches: &ArgMatches,
) -> Result<(CommandExit, Option<Map<String, Value>>), CommandError> {
    let mut call = new_call(caller, &operation.name, arguments);
    call.idempotency_key = matches.try_get_one::<String>("key").ok().flatten().map(String::as_str);
    let format = OutputFormat::from(matches.get_flag("json"));
    let file = || matches.get_one::<PathBuf>(STREAM_FILE).map(PathBuf::as_path);
    let stream = operation.stream.map(|direction| CommandStream::open(direction, file())).transpose()?;
    let progress_line = ProgressLinePrinter::for_person();
    let update = |progress| progress_line.iter().for_each(|line| line.update(progress));
    let on_progress: Option<&(dyn Fn(CallProgress) + Sync)> = progress_line.is_some().then_some(&update);
    call.control = CallControl::new(call.control.deadline(), CancelToken::default(), on_progress);
    if let Some(stream) = &stream {
        call.control = call.control.with_stream(stream);
    }
    let outcome = run_call(opened, &call);
    // Dropping the progress line clears it before the answer is printed.
    drop(progress_line);
    stream.as_ref().map(CommandStream::finish).transpose()?;
    match outcome {
        Ok(answer) if operation.name == "read" && format == OutputFormat::Text && !output::is_output_terminal() => {
            Ok((print_content(&answer)?, None))
        }
        Ok(mut answer) => {
            let fields = write_result_files(operation, matches, &mut answer)?;
            let is_tampered = operation.name == "log.verify" && fields.get("ok") == Some(&Value::Bool(false));
            let next = fields.get("next").and_then(Value::as_object).cloned();
            let has_rows = operation.command.as_ref().is_some_and(|command| command.rows.is_some());
            if let Some(note) = note_about(&operation.name, &fields).filter(|_| format == OutputFormat::Text) {
                output::print_note(&note);
            }
            let exit = print_rows(operation, &answer, format)?;
            Ok((if is_tampered { CommandExit::Tampered } else { exit }, next.filter(|_| has_rows)))
        }
        Err(error) => {
            if format == OutputFormat::Json {
                output::print_json(&COMMAND_STYLE.error_to_json(&error))?;
            }
            Err(error.into())
        }
    }
}

/// Writes the fields of the result for which the person named a file, and returns the other fields.
fn write_result_files(
    operation: &ToolDefinition,
    matches: &ArgMatches,
    answer: &mut DialectReply,
) -> Result<Map<String, Value>, CommandError> {
    let mut fields = answer.json_fields();
    for input in &operation.inputs {
        let Some(field) = &input.writes else { continue };
        if let (Some(file), Some(Value::String(text))) =
            (matches.get_one::<PathBuf>(&argument_id(input)), fields.remove(field))
        {
            host_files::replace_text(file, &format!("{text}\n"))?;
            answer.json = json!(fields).to_string();
        }
    }
    Ok(fields)
}

/// A remark about an answer, for people only.
fn note_about(operation: &str, fields: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    match operation {
        "token.create" | "token.rotate" => {
            let (id, principal) = (text("id")?, text("principal")?);
            Some(format!("created token {id} for {principal}; copy it now, it is not shown again"))
        }
        "workspace.list" => {
            Some(format!("there are more workspaces: repeat the command with --cursor {}", text("cursor")?))
        }
        _ => None,
    }
}

fn caller_of_command(operation: &ToolDefinition, matches: &ArgMatches) -> Result<Caller, CommandError> {
    let flags = if has_caller_flags(operation) {
        CallerAccessCliFlags::from_arg_matches(matches).map_err(output::usage_error)?
    } else {
        CallerAccessCliFlags::default()
    };
    open_workspace::caller_from_flags(&flags, CallerProtocol::Person)
}

/// Calls an operation of the engine without the arguments whose value is null.
pub(crate) fn call_operation(
    opened: &CommandLineWorkspace,
    caller: &Caller,
    operation: &str,
    arguments: Value,
) -> Result<DialectReply, Error> {
    let mut arguments = arguments.as_object().cloned().unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    run_call(opened, &new_call(caller, operation, arguments))
}

fn new_call<'a>(caller: &'a Caller, operation: &'a str, arguments: Map<String, Value>) -> JsonCall<'a> {
    let mut call = JsonCall::new(caller, operation, arguments);
    call.style = COMMAND_STYLE;
    call.options.secrets = SecretTransport::CommandLine;
    call
}

pub(crate) fn run_call(opened: &CommandLineWorkspace, call: &JsonCall<'_>) -> Result<DialectReply, Error> {
    call.run(&opened.engine).into_result()
}

/// Prints the answer. A command with rows prints one JSON object per row.
fn print_rows(operation: &ToolDefinition, answer: &DialectReply, format: OutputFormat) -> CliCommandResult {
    if operation.stream == Some(ToolStreamDirection::Output) {
        output::print_note(&answer.text);
        return Ok(CommandExit::Success);
    }
    let rows = operation.command.as_ref().and_then(|command| command.rows.as_ref());
    let Some(rows) = rows.filter(|_| format == OutputFormat::Json) else { return print_answer(answer, format) };
    match answer.json_fields().get(rows).and_then(Value::as_array) {
        Some(rows) => rows.iter().try_for_each(output::print_json)?,
        None => output::print_json(&answer.json)?,
    }
    Ok(CommandExit::Success)
}

pub(crate) fn print_answer(answer: &DialectReply, format: OutputFormat) -> CliCommandResult {
    match format {
        OutputFormat::Json => output::print_json(&answer.json)?,
        OutputFormat::Text => output::print_text(&answer.text)?,
    }
    Ok(CommandExit::Success)
}

fn operation_arguments(operation: &ToolDefinition, matches: &ArgMatches) -> Result<Map<String, Value>, CommandError> {
    let mut arguments = Map::new();
    for input in &operation.inputs {
        let (name, id) = (input.name.as_str(), argument_id(input));
        let value = match input.kind {
            _ if input.switch.is_some() => matches.get_flag(&id).then(|| Value::from(id.as_str())),
            ToolArgumentType::Boolean if input.writes.is_some() => {
                matches.contains_id(&id).then_some(Value::Bool(true))
            }
            ToolArgumentType::Boolean => matches.get_flag(&id).then(|| Value::Bool(true)),
            ToolArgumentType::Integer => matches.get_one::<u64>(&id).map(|number| (*number).into()),
            ToolArgumentType::StringList => {
                Some(read_texts(input, matches)?).filter(|texts| !texts.is_empty()).map(Value::from)
            }
            ToolArgumentType::String | ToolArgumentType::StringOrList | ToolArgumentType::Enum => {
                read_texts(input, matches)?.pop().map(Value::from)
            }
            ToolArgumentType::Json => {
                let given = matches.get_one::<String>(&id).filter(|text| *text != STANDARD_INPUT);
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

/// The texts of an argument, or the contents of the files that the person named for it.
fn read_texts(input: &ToolArgumentDefinition, matches: &ArgMatches) -> Result<Vec<String>, CommandError> {
    let id = argument_id(input);
    if input.file {
        return matches
            .get_many::<PathBuf>(&id)
            .into_iter()
            .flatten()
            .map(|path| host_files::read_text(path))
            .collect();
    }
    Ok(matches.get_many::<String>(&id).into_iter().flatten().cloned().collect())
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
                .with_next_step("standard input of stead write may be binary")
                .into());
        }
    };
    arguments.insert(input.name.clone(), content.into());
    Ok(())
}

/// Prints only the content of a file, for output to a pipe or a file.
fn print_content(answer: &DialectReply) -> CliCommandResult {
    let fields = answer.json_fields();
    let field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("encoding") == "base64" {
        let bytes = STANDARD.decode(field("content")).map_err(|error| CommandError::System(error.to_string()))?;
        output::print_bytes(&bytes)?;
    } else {
        output::print_bytes(field("content").as_bytes())?;
    }
    if fields.get("truncated") == Some(&Value::Bool(true)) {
        let next = fields.get("next").and_then(|next| ReadArgs::deserialize(next).ok());
        let command = next.map(|next| format!("; for the rest, {}", COMMAND_STYLE.render_call(next)));
        output::print_note(&format!("output truncated{}", command.unwrap_or_default()));
    }
    Ok(CommandExit::Success)
}
