//! Every operation as a command, built from its definition.

use std::io::{IsTerminal, Read};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::PossibleValuesParser, value_parser,
};
use engine::{Answer, Call, Cancel, Control, Failure, Kind, Progress, limits::WRITE_BYTES_MAX};
use faces::definition::{Input, InputType, Operation};
use local::Wall;
use serde_json::{Map, Value};

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    progress::Meter,
    show::{self, Exit, Form, Outcome, Problem},
    wire::{self, Asker},
};

/// What says "from standard input".
const STANDARD_INPUT: &str = "-";

/// The flags that every operation has.
#[derive(Debug, Args)]
struct CallFlags {
    #[command(flatten)]
    caller: CallerFlags,
    /// Idempotency key: the same key changes nothing twice
    #[arg(long, value_name = "KEY", help_heading = "Caller")]
    key: Option<String>,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
}

/// One operation as a command.
pub(crate) fn command(operation: &Operation) -> Command {
    let base = Command::new(operation.name.clone()).args(operation.inputs.iter().map(argument));
    // The flags bring an explanation of their own, so the command's comes after them.
    CallFlags::augment_args(base)
        .about(operation.summary.trim_end_matches('.').to_owned())
        .long_about(format!("{} {}", operation.summary, operation.when))
        .after_help(failures(operation))
}

fn failures(operation: &Operation) -> String {
    let rows: Vec<String> =
        operation.errors.iter().map(|error| format!("  {:<16} {}", error.kind, error.recovery)).collect();
    format!("Failures worth knowing:\n{}", rows.join("\n"))
}

fn argument(input: &Input) -> Arg {
    let arg = Arg::new(input.name.clone()).help(input.description.trim_end_matches('.').to_owned());
    let arg = match (input.kind, input.positional) {
        (InputType::Boolean, _) => return arg.long(flag(input)).action(ArgAction::SetTrue),
        (
            InputType::String | InputType::Texts | InputType::Integer | InputType::Enum | InputType::Json,
            Some(place),
        ) => arg.index(place).required(input.required),
        (
            InputType::String | InputType::Texts | InputType::Integer | InputType::Enum | InputType::Json,
            None,
        ) if input.stdin => arg
            .long(flag(input))
            .help(format!("{} [default: standard input]", input.description.trim_end_matches('.'))),
        (
            InputType::String | InputType::Texts | InputType::Integer | InputType::Enum | InputType::Json,
            None,
        ) => arg.long(flag(input)).required(input.required),
    };
    let arg = arg.value_name(input.name.to_uppercase());
    match input.kind {
        InputType::Integer => arg.value_parser(value_parser!(u64)),
        InputType::Enum => arg.value_parser(PossibleValuesParser::new(input.values.clone())),
        InputType::String | InputType::Texts | InputType::Boolean | InputType::Json => {
            arg.allow_hyphen_values(input.stdin)
        }
    }
}

fn flag(input: &Input) -> String {
    input.name.replace('_', "-")
}

/// Runs one operation.
pub(crate) fn run(operation: &Operation, flags: &WorkspaceFlags, matches: &ArgMatches) -> Outcome {
    let call_flags = CallFlags::from_arg_matches(matches).map_err(show::usage)?;
    let caller = wire::caller(&call_flags.caller, Asker::Person)?;
    let arguments = arguments(operation, matches)?;
    let opened = wire::open(flags, Wall::Leave)?;
    let mut call = Call::new(&caller, &operation.name, arguments);
    call.key = call_flags.key.as_deref();
    let form = Form::from(call_flags.json);
    let meter = Meter::for_person();
    let tell = |progress| meter.iter().for_each(|meter| meter.tell(progress));
    let listen: Option<&(dyn Fn(Progress) + Sync)> = meter.is_some().then_some(&tell);
    call.control = Control::new(call.control.deadline(), Cancel::default(), listen);
    let outcome = opened.engine.call(&call);
    // The line goes before the answer comes.
    drop(meter);
    match outcome {
        Ok(answer) => print(operation, answer, form),
        Err(failure) => {
            if form == Form::Json {
                show::json(&failure.to_json())?;
            }
            Err(failure.into())
        }
    }
}

fn arguments(operation: &Operation, matches: &ArgMatches) -> Result<Map<String, Value>, Problem> {
    let mut arguments = Map::new();
    for input in &operation.inputs {
        let name = input.name.as_str();
        let value = match input.kind {
            InputType::Boolean => matches.get_flag(name).then(|| Value::Bool(true)),
            InputType::Integer => matches.get_one::<u64>(name).map(|number| (*number).into()),
            InputType::String | InputType::Texts | InputType::Enum => {
                matches.get_one::<String>(name).map(|text| text.clone().into())
            }
            InputType::Json => {
                let written = matches.get_one::<String>(name).filter(|text| *text != STANDARD_INPUT);
                written.map(|text| parsed(name, text)).transpose()?
            }
        };
        let left_to_input = input.stdin && value.as_ref().is_some_and(|value| value == STANDARD_INPUT);
        if let Some(value) = value.filter(|_| !left_to_input) {
            arguments.insert(name.to_owned(), value);
        }
    }
    for input in operation.inputs.iter().filter(|input| input.stdin) {
        if !arguments.contains_key(&input.name) {
            from_standard_input(operation, input, &mut arguments)?;
        }
    }
    Ok(arguments)
}

/// An argument that is written as JSON.
fn parsed(name: &str, text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|error| show::usage(format!("--{name} is not JSON: {error}")))
}

/// Text as it is; bytes that are no text in base64, where the operation can take that.
fn from_standard_input(
    operation: &Operation,
    input: &Input,
    arguments: &mut Map<String, Value>,
) -> Result<(), Problem> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        show::remark("reading standard input; end with Ctrl-D");
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
            return Err(Failure::new(Kind::NotText, "standard input is not UTF-8")
                .hint("write the whole file with stead write, which also takes bytes")
                .into());
        }
    };
    arguments.insert(input.name.clone(), content.into());
    Ok(())
}

fn print(operation: &Operation, answer: Answer, form: Form) -> Outcome {
    if form == Form::Json {
        show::json(&Value::Object(answer.json))?;
    } else if operation.name == "read" && !show::to_terminal() {
        print_content(&answer)?;
    } else {
        show::text(&answer.text)?;
    }
    Ok(Exit::Fine)
}

/// What `read` answers into a pipe or a file: the content and nothing else; what is missing is said beside it.
fn print_content(answer: &Answer) -> Result<(), Problem> {
    let field = |name: &str| answer.json.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("encoding") == "base64" {
        let bytes = STANDARD.decode(field("content")).map_err(|error| Problem::Outside(error.to_string()))?;
        show::bytes(&bytes)?;
    } else {
        show::bytes(field("content").as_bytes())?;
    }
    if answer.json.get("truncated") == Some(&Value::Bool(true)) {
        let next = answer.json.get("next").map(Value::to_string).unwrap_or_default();
        show::remark(&format!("the answer is truncated; it goes on with {next}"));
    }
    Ok(())
}
