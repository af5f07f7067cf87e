//! Reads the arguments of a tool call into a typed input. The definition of the tool says which arguments are accepted.
//! Each dialect reports rejected arguments with the sentences of its document.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Number, Value};

use crate::definition::{
    DialectDefinition, ToolArgumentDefinition, ToolArgumentStringFormat, ToolDefinition, UnknownArgumentRule,
    UnpublishedToolArgumentConstraints,
};

/// Declares the input of a dialect: an enum with one variant per tool, and the structs of the tools' arguments. The
/// structs are shared with the functions that render the replies. An input can also be serialized, so that tests can
/// compare it with the definition.
macro_rules! tool_inputs {
    ($inputs:ident with $case:literal fields: $($tool:literal => $variant:ident($input:ident $({
        $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)?
    })?),)+) => {
        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        pub(super) enum $inputs { $(#[serde(rename = $tool)] $variant(std::sync::Arc<$input>),)+ }

        $($(#[derive(Debug, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = $case)]
        pub(super) struct $input { $($(#[$attribute])* pub(super) $field: $type,)* })?)+
    };
}

pub(super) use tool_inputs;

/// The largest safe integer of JavaScript.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentIntegerSyntax {
    Integer,
    /// An integer may be written with a zero fraction, such as `2.0`. Such an integer is dropped if it is no safe
    /// integer of JavaScript.
    ZeroFraction,
    /// An integer may be written with a zero fraction or as a JSON string, but must fit into 64 bits.
    ZeroFractionOrText,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ArgumentJsonType {
    String,
    Integer,
    Boolean,
    Array,
    Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentProblem {
    Unknown,
    Missing,
    WrongType(ArgumentJsonType),
    NotOneOf,
    EmptyText,
    EmptyList,
    PatternMismatch(ToolArgumentStringFormat),
    NotInteger,
    BelowMinimum(u64),
    Overflow,
}

#[derive(Debug)]
pub(super) struct ArgumentIssue<'a> {
    pub(super) argument: Option<&'a ToolArgumentDefinition>,
    /// The place of the rejected value in the arguments, such as `edits.0.oldText`.
    pub(super) place: String,
    pub(super) value: Option<&'a Value>,
    pub(super) problem: ArgumentProblem,
}

impl ArgumentIssue<'_> {
    pub(super) fn argument_name(&self) -> &str {
        self.argument.map_or(&self.place, |argument| &argument.name)
    }
}

#[derive(Debug)]
pub(super) struct ArgumentCheckResult<'a> {
    tool: &'a str,
    accepted: Map<String, Value>,
    /// The issues of unknown arguments come first; the issues of known arguments follow in the order of the definition.
    pub(super) issues: Vec<ArgumentIssue<'a>>,
}

impl<'a> ArgumentCheckResult<'a> {
    pub(super) fn new(
        definition: &'a DialectDefinition,
        tool: &'a ToolDefinition,
        integers: ArgumentIntegerSyntax,
        given: &'a Map<String, Value>,
    ) -> Self {
        let mut checked = Self { tool: &tool.name, accepted: Map::new(), issues: Vec::new() };
        if definition.unknown_arguments == UnknownArgumentRule::Refused {
            let unknown = given.iter().filter(|(name, _)| tool.inputs.iter().all(|input| input.name != **name));
            checked.issues.extend(unknown.map(|(name, value)| ArgumentIssue {
                argument: None,
                place: name.clone(),
                value: Some(value),
                problem: ArgumentProblem::Unknown,
            }));
        }
        for argument in &tool.inputs {
            let schema = argument.schema();
            let rule = ArgumentValueRule { schema: &schema, check: Some(&argument.check), required: argument.required };
            let mut checker = ArgumentChecker { argument, integers, issues: &mut checked.issues };
            let value = checker.check_value(&argument.name, rule, given.get(&argument.name));
            let value = value.or_else(|| argument.default.clone());
            checked.accepted.extend(value.map(|value| (argument.name.clone(), value)));
        }
        checked
    }

    /// Decodes the accepted arguments into an enum whose variants are the tools.
    pub(super) fn decode<T: DeserializeOwned>(self) -> Result<T, String> {
        let tagged = Map::from_iter([(self.tool.to_owned(), Value::Object(self.accepted))]);
        serde_json::from_value(Value::Object(tagged)).map_err(|error| error.to_string())
    }
}

/// The published JSON Schema of an argument value, and the checks that the schema does not mention.
#[derive(Clone, Copy)]
struct ArgumentValueRule<'r> {
    schema: &'r Value,
    check: Option<&'r UnpublishedToolArgumentConstraints>,
    required: bool,
}

impl<'r> ArgumentValueRule<'r> {
    fn items(self, keyword: &str) -> Self {
        let check = self.check.and_then(|check| check.items.as_deref());
        Self { schema: &self.schema[keyword], check, required: true }
    }

    fn field(self, name: &str) -> Self {
        let check = self.check.and_then(|check| check.fields.get(name));
        let required = self.list("required").iter().any(|required| required == name);
        Self { schema: &self.schema["properties"][name], check, required }
    }

    fn list(self, keyword: &str) -> &'r [Value] {
        self.schema[keyword].as_array().map_or(&[], Vec::as_slice)
    }
}

struct ArgumentChecker<'a, 'i> {
    argument: &'a ToolArgumentDefinition,
    integers: ArgumentIntegerSyntax,
    issues: &'i mut Vec<ArgumentIssue<'a>>,
}

impl<'a> ArgumentChecker<'a, '_> {
    /// Returns the accepted argument value, with integers in their usual form. An accepted integer that does not fit
    /// into a JSON number is left out of the arguments.
    fn check_value(&mut self, place: &str, rule: ArgumentValueRule<'_>, value: Option<&'a Value>) -> Option<Value> {
        let checked = match value {
            None if rule.required => Err(ArgumentProblem::Missing),
            None => return None,
            Some(value) => self.check_given(place, rule, value),
        };
        checked.unwrap_or_else(|problem| {
            let (argument, place) = (Some(self.argument), place.to_owned());
            self.issues.push(ArgumentIssue { argument, place, value, problem });
            None
        })
    }

    fn check_given(
        &mut self,
        place: &str,
        rule: ArgumentValueRule<'_>,
        value: &'a Value,
    ) -> Result<Option<Value>, ArgumentProblem> {
        let words = rule.list("enum");
        if !words.is_empty() && !words.contains(value) {
            return Err(ArgumentProblem::NotOneOf);
        }
        let Ok(expected) = ArgumentJsonType::deserialize(&rule.schema["type"]) else {
            return Ok(Some(value.clone()));
        };
        Ok(Some(match (expected, value) {
            (ArgumentJsonType::String, Value::String(text)) => {
                check_text(rule.check, text)?;
                value.clone()
            }
            (ArgumentJsonType::Integer, value) => {
                return self.integers.parse(value, rule.check).map(|number| number.map(Value::Number));
            }
            (ArgumentJsonType::Boolean, Value::Bool(_)) => value.clone(),
            (ArgumentJsonType::Array, Value::Array(items)) => {
                if (items.len() as u64) < rule.schema["minItems"].as_u64().unwrap_or_default() {
                    return Err(ArgumentProblem::EmptyList);
                }
                let check =
                    |(index, item)| self.check_value(&format!("{place}.{index}"), rule.items("items"), Some(item));
                items.iter().enumerate().filter_map(check).collect()
            }
            (ArgumentJsonType::Object, Value::Object(given)) => self.check_object(place, rule, given),
            (expected, _) => return Err(ArgumentProblem::WrongType(expected)),
        }))
    }

    fn check_object(&mut self, place: &str, rule: ArgumentValueRule<'_>, given: &'a Map<String, Value>) -> Value {
        let mut check = |name: &String, rule: ArgumentValueRule<'_>| {
            Some((name.clone(), self.check_value(&format!("{place}.{name}"), rule, given.get(name))?))
        };
        match rule.schema["properties"].as_object() {
            Some(fields) => fields.keys().filter_map(|name| check(name, rule.field(name))).collect(),
            None => given.keys().filter_map(|name| check(name, rule.items("additionalProperties"))).collect(),
        }
    }
}

fn check_text(check: Option<&UnpublishedToolArgumentConstraints>, text: &str) -> Result<(), ArgumentProblem> {
    let is_sha256 = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match check.and_then(|check| check.pattern) {
        None if check.is_some_and(|check| check.non_empty) && text.is_empty() => Err(ArgumentProblem::EmptyText),
        Some(ToolArgumentStringFormat::Sha256OrEmpty) if text.is_empty() => Ok(()),
        Some(pattern) if !is_sha256 => Err(ArgumentProblem::PatternMismatch(pattern)),
        Some(ToolArgumentStringFormat::Sha256 | ToolArgumentStringFormat::Sha256OrEmpty) | None => Ok(()),
    }
}

impl ArgumentIntegerSyntax {
    fn parse(
        self,
        value: &Value,
        check: Option<&UnpublishedToolArgumentConstraints>,
    ) -> Result<Option<Number>, ArgumentProblem> {
        let whole = match (self, value) {
            (ArgumentIntegerSyntax::ZeroFractionOrText, Value::String(text)) => {
                text.parse::<i64>().map(i128::from).map_err(|_| ArgumentProblem::NotInteger)?
            }
            (_, Value::Number(number)) => self.whole_number(number).ok_or(ArgumentProblem::NotInteger)?,
            (_, _) => return Err(ArgumentProblem::WrongType(ArgumentJsonType::Integer)),
        };
        let min = check.map_or(0, |check| check.min);
        if self == ArgumentIntegerSyntax::ZeroFractionOrText && i64::try_from(whole).is_err() {
            return Err(ArgumentProblem::Overflow);
        }
        if whole < i128::from(min) {
            return Err(ArgumentProblem::BelowMinimum(min));
        }
        Ok(Number::from_i128(whole))
    }

    fn whole_number(self, number: &Number) -> Option<i128> {
        if self == ArgumentIntegerSyntax::Integer || !number.is_f64() {
            return number.as_i128();
        }
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        if self == ArgumentIntegerSyntax::ZeroFraction && float > SAFE_INTEGER_MAX {
            return Some(i128::MAX);
        }
        let limit = if float < 0.0 { i128::MIN } else { i128::MAX };
        Some(format!("{float:.0}").parse().unwrap_or(limit))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde::Serialize;
    use serde_json::json;

    use super::*;

    fn example_value(schema: &Value, check: &UnpublishedToolArgumentConstraints) -> Value {
        let no_check = UnpublishedToolArgumentConstraints::default();
        let items = check.items.as_deref().unwrap_or(&no_check);
        match (schema["enum"].get(0), schema["type"].as_str()) {
            (Some(word), _) => word.clone(),
            (None, Some("integer")) => 1.into(),
            (None, Some("boolean")) => true.into(),
            (None, Some("array")) => json!([example_value(&schema["items"], items)]),
            (None, Some("object")) => match schema["properties"].as_object() {
                Some(fields) => {
                    let check = |name| check.fields.get(name).unwrap_or(&no_check);
                    fields.iter().map(|(name, field)| (name.clone(), example_value(field, check(name)))).collect()
                }
                None => json!({ "x": example_value(&schema["additionalProperties"], items) }),
            },
            (None, _) => check.pattern.map_or("x".to_owned(), |_| "0a".repeat(32)).into(),
        }
    }

    pub(in super::super) fn example_arguments(tool: &ToolDefinition) -> Map<String, Value> {
        let example =
            |input: &ToolArgumentDefinition| (input.name.clone(), example_value(&input.schema(), &input.check));
        tool.inputs.iter().map(example).collect()
    }

    /// An input type has exactly the fields that the definition declares, and needs only the required ones.
    pub(in super::super) fn assert_inputs_match_definition<T: DeserializeOwned + Serialize>(definition_json: &str) {
        let definition = DialectDefinition::from_json(definition_json).unwrap();
        for tool in &definition.operations {
            let read = |arguments: &Map<String, Value>| {
                let checked = ArgumentCheckResult::new(&definition, tool, ArgumentIntegerSyntax::Integer, arguments);
                assert!(checked.issues.is_empty(), "{}: {:?}", tool.name, checked.issues);
                json!(checked.decode::<T>().unwrap())
            };
            let mut arguments = example_arguments(tool);
            assert_eq!(read(&arguments), json!({ tool.name.as_str(): arguments }));
            arguments.retain(|name, _| tool.inputs.iter().any(|input| input.required && input.name == *name));
            read(&arguments);
        }
    }
}
