//! Decodes the JSON arguments of native calls.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stead_engine::{Error, ErrorKind, nearest_name};

/// A decoding error names the invalid argument and suggests a known argument with a similar name.
pub(super) fn decode_arguments<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, Error> {
    let problem = |arguments: &Map<String, Value>| T::deserialize(arguments).err().map(|error| error.to_string());
    T::deserialize(arguments).map_err(|error| describe_problem(arguments, &error.to_string(), &problem))
}

/// The function `problem` returns the decoding error of other arguments of the same operation.
fn describe_problem(
    arguments: &Map<String, Value>,
    message: &str,
    problem: &dyn Fn(&Map<String, Value>) -> Option<String>,
) -> Error {
    // Decoding only the ill-typed argument gives the same message, which identifies the argument.
    let is_about_names = ["unknown field", "missing field"].iter().any(|start| message.starts_with(start));
    let fails_alone = |(name, value): &(&String, &Value)| {
        let alone = Map::from_iter([((*name).clone(), (*value).clone())]);
        !is_about_names && problem(&alone).is_some_and(|problem| problem == message)
    };
    let ill_typed = arguments.iter().find(fails_alone).map(|(name, _)| name);
    // Serde's message says "field", but callers know the word "argument".
    let message = message.replace("unknown field", "unknown argument").replace("missing field", "missing argument");
    let message = match ill_typed {
        Some(name) => format!("argument `{name}`: {message}"),
        None => message,
    };
    let hint = match suggest_argument(&message) {
        Some(name) => format!("did you mean `{name}`?"),
        None if message.starts_with("unknown argument") => "pass only the expected arguments".to_owned(),
        None if message.starts_with("missing argument") => "add the argument".to_owned(),
        None => "pass a value of the expected type".to_owned(),
    };
    Error::new(ErrorKind::BadRequest, message).with_next_step(hint)
}

/// Only serde's error message lists both the unknown and the known names. If serde changes the wording of its message,
/// only the suggestion is lost.
fn suggest_argument(message: &str) -> Option<&str> {
    let listed = message.strip_prefix("unknown argument ")?;
    let mut names = listed.split('`').skip(1).step_by(2);
    let given = names.next()?;
    nearest_name(given, names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn decode_error_names_ill_typed_argument() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct DecodeTestArgs {
            #[expect(dead_code, reason = "only decoded")]
            path: String,
            #[expect(dead_code, reason = "only decoded")]
            max: Option<u64>,
        }
        for (arguments, expected) in [
            (json!({ "path": 5 }), "argument `path`: invalid type: integer `5`, expected a string"),
            (json!({ "path": "a", "max": "b" }), "argument `max`: invalid type: string \"b\", expected u64"),
            (json!({ "max": 1 }), "missing argument `path`"),
            (json!({ "path": "a", "x": 1 }), "unknown argument `x`, expected `path` or `max`"),
        ] {
            let arguments = arguments.as_object().expect("an object");
            assert_eq!(decode_arguments::<DecodeTestArgs>(arguments).expect_err("a misfit").message, expected);
        }
        assert_eq!(suggest_argument("unknown argument `pat`, expected `path`"), Some("path"));
        assert_eq!(suggest_argument("missing argument `path`"), None);
    }
}
