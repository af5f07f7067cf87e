//! Reads the arguments of a tool call into a typed input. The definition of the tool says which arguments are accepted.
//! Each dialect reports rejected arguments with the sentences of its document.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Number, Value};

use crate::definition::{
    DialectDefinition, ToolArgumentCheck, ToolArgumentDefinition, ToolArgumentPattern, ToolDefinition,
    UnknownArgumentRule,
};

/// The JSON values that a dialect accepts as an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentIntegerSyntax {
    Integer,
    /// An integer may be written with a zero fraction, such as `2.0`.
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
    PatternMismatch(ToolArgumentPattern),
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
pub(super) struct CheckedArguments<'a> {
    tool: &'a str,
    accepted: Map<String, Value>,
    /// The issues of unknown arguments come first; the issues of known arguments follow in the order of the definition.
    pub(super) issues: Vec<ArgumentIssue<'a>>,
}

impl<'a> CheckedArguments<'a> {
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
            let schema = Value::Object(argument.schema());
            let rule = ArgumentValueRule { schema: &schema, check: Some(&argument.check) };
            let mut checker = ArgumentChecker { argument, integers, issues: &mut checked.issues };
            let value = match given.get(&argument.name) {
                Some(value) => checker.check_value(&argument.name, rule, value),
                None if argument.required => checker.reject(&argument.name, None, ArgumentProblem::Missing),
                None => None,
            };
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
    check: Option<&'r ToolArgumentCheck>,
}

impl<'r> ArgumentValueRule<'r> {
    fn items(self, keyword: &str) -> Self {
        Self { schema: &self.schema[keyword], check: self.check.and_then(|check| check.items.as_deref()) }
    }

    fn field(self, name: &str) -> Self {
        let check = self.check.and_then(|check| check.fields.get(name));
        Self { schema: &self.schema["properties"][name], check }
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
    fn reject(&mut self, place: &str, value: Option<&'a Value>, problem: ArgumentProblem) -> Option<Value> {
        self.issues.push(ArgumentIssue { argument: Some(self.argument), place: place.to_owned(), value, problem });
        None
    }

    /// Returns the accepted argument value, with integers in their usual form. An accepted integer that does not fit
    /// into a JSON number is left out of the arguments.
    fn check_value(&mut self, place: &str, rule: ArgumentValueRule<'_>, value: &'a Value) -> Option<Value> {
        let words = rule.list("enum");
        if !words.is_empty() && !words.contains(value) {
            return self.reject(place, Some(value), ArgumentProblem::NotOneOf);
        }
        let Ok(expected) = ArgumentJsonType::deserialize(&rule.schema["type"]) else { return Some(value.clone()) };
        let problem = match (expected, value) {
            (ArgumentJsonType::Integer, value) => match self.integers.parse(value, rule.check) {
                Ok(number) => return number.map(Value::Number),
                Err(problem) => Some(problem),
            },
            (ArgumentJsonType::Array, Value::Array(items)) => {
                if items.len() as u64 >= rule.schema["minItems"].as_u64().unwrap_or_default() {
                    return Some(self.check_items(place, rule.items("items"), items));
                }
                Some(ArgumentProblem::EmptyList)
            }
            (ArgumentJsonType::Object, Value::Object(fields)) => return Some(self.check_object(place, rule, fields)),
            (ArgumentJsonType::String, Value::String(text)) => rule.check.and_then(|check| text_problem(check, text)),
            (ArgumentJsonType::Boolean, Value::Bool(_)) => None,
            (expected, _) => Some(ArgumentProblem::WrongType(expected)),
        };
        match problem {
            Some(problem) => self.reject(place, Some(value), problem),
            None => Some(value.clone()),
        }
    }

    fn check_items(&mut self, place: &str, rule: ArgumentValueRule<'_>, items: &'a [Value]) -> Value {
        let each = |(index, item)| self.check_value(&format!("{place}.{index}"), rule, item);
        items.iter().enumerate().filter_map(each).collect()
    }

    fn check_object(&mut self, place: &str, rule: ArgumentValueRule<'_>, given: &'a Map<String, Value>) -> Value {
        let Some(properties) = rule.schema["properties"].as_object() else {
            let rule = rule.items("additionalProperties");
            let each = |(name, value): (&String, &'a Value)| {
                Some((name.clone(), self.check_value(&format!("{place}.{name}"), rule, value)?))
            };
            return given.iter().filter_map(each).collect();
        };
        let required = rule.list("required");
        let each = |name: &String| {
            let place = format!("{place}.{name}");
            let value = match given.get(name) {
                Some(value) => self.check_value(&place, rule.field(name), value),
                None if required.iter().any(|required| required == name) => {
                    self.reject(&place, None, ArgumentProblem::Missing)
                }
                None => None,
            };
            Some((name.clone(), value?))
        };
        properties.keys().filter_map(each).collect()
    }
}

fn text_problem(check: &ToolArgumentCheck, text: &str) -> Option<ArgumentProblem> {
    let is_sha256 = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match check.pattern {
        None if check.non_empty && text.is_empty() => Some(ArgumentProblem::EmptyText),
        Some(ToolArgumentPattern::Sha256OrEmpty) if text.is_empty() => None,
        Some(pattern) if !is_sha256 => Some(ArgumentProblem::PatternMismatch(pattern)),
        Some(ToolArgumentPattern::Sha256 | ToolArgumentPattern::Sha256OrEmpty) | None => None,
    }
}

impl ArgumentIntegerSyntax {
    fn parse(self, value: &Value, check: Option<&ToolArgumentCheck>) -> Result<Option<Number>, ArgumentProblem> {
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
        let limit = if float < 0.0 { i128::MIN } else { i128::MAX };
        Some(format!("{float:.0}").parse().unwrap_or(limit))
    }
}
