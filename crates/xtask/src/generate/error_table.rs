//! Reads `definitions/errors.yaml`, and renders the files that need no other definition.

use std::{collections::BTreeSet, fs, path::Path};

use serde::Deserialize;

use super::reference::{NOTICE, escape_cell, push_line};

const RUST_NOTICE: &str = "// Generated from definitions/errors.yaml by cargo xtask generate; do not edit.\n";

/// HTTP status codes with the names of their constants in `axum::http::StatusCode`.
const HTTP_STATUS_CODES: &[(u16, &str)] = &[
    (400, "BAD_REQUEST"),
    (403, "FORBIDDEN"),
    (404, "NOT_FOUND"),
    (409, "CONFLICT"),
    (410, "GONE"),
    (412, "PRECONDITION_FAILED"),
    (413, "PAYLOAD_TOO_LARGE"),
    (422, "UNPROCESSABLE_ENTITY"),
    (423, "LOCKED"),
    (428, "PRECONDITION_REQUIRED"),
    (429, "TOO_MANY_REQUESTS"),
    (500, "INTERNAL_SERVER_ERROR"),
    (503, "SERVICE_UNAVAILABLE"),
    (504, "GATEWAY_TIMEOUT"),
    (507, "INSUFFICIENT_STORAGE"),
];

/// JSON-RPC error codes with the names of their constants in `stead_protocols::rpc::errors`.
const RPC_ERROR_CODES: &[(i64, &str)] = &[
    (-32601, "METHOD_NOT_FOUND"),
    (-32602, "INVALID_PARAMS"),
    (-32603, "INTERNAL_ERROR"),
    (-32000, "RATE_LIMITED"),
    (-32001, "POLICY_DENIED"),
    (-32002, "APPROVAL_PENDING"),
    (-32004, "CALL_FAILED"),
];

/// Exit codes with the names of their `CommandExit` variants and their meanings.
const EXIT_CODES: &[(u8, &str, &str)] = &[
    (0, "Success", "the command succeeded"),
    (1, "Failed", "the command failed because of the current state or a system failure"),
    (2, "Usage", "the command line or an argument is invalid"),
    (3, "Refused", "a rule refused the call"),
    (4, "Stale", "a file or the state changed since it was read: read again, decide, call again"),
    (5, "Tampered", "verification found that the journal was tampered with"),
];

/// One row of `definitions/errors.yaml`; words in the columns `retry`, `comma`, `krux` and `acp` become enum variants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredErrorRow {
    pub(crate) kind: String,
    name: Option<String>,
    class: ErrorTableErrorClass,
    http: u16,
    rpc: i64,
    exit: u8,
    retry: String,
    comma: String,
    krux: String,
    acp: String,
    meaning: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrorTableErrorClass {
    Refused,
    StateMismatch,
    SystemFailure,
}

impl ErrorTableErrorClass {
    fn reference_text(self) -> &'static str {
        match self {
            ErrorTableErrorClass::Refused => "refused by a rule",
            ErrorTableErrorClass::StateMismatch => "conflicts with the current state",
            ErrorTableErrorClass::SystemFailure => "system failure",
        }
    }
}

impl DeclaredErrorRow {
    fn variant(&self) -> String {
        self.name.clone().unwrap_or_else(|| camel_case(&self.kind))
    }
}

pub(crate) fn load(path: &Path) -> Result<Vec<DeclaredErrorRow>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
}

fn parse(text: &str) -> Result<Vec<DeclaredErrorRow>, String> {
    let rows: Vec<DeclaredErrorRow> = serde_yaml_ng::from_str(text).map_err(|error| error.to_string())?;
    let mut kinds = BTreeSet::new();
    match rows.iter().find(|row| !kinds.insert(&row.kind)) {
        Some(row) => Err(format!("{} is declared twice", row.kind)),
        None => Ok(rows),
    }
}

pub(crate) fn engine_table(rows: &[DeclaredErrorRow]) -> String {
    let mut text = format!("{RUST_NOTICE}\nerror_kinds! {{\n");
    for row in rows {
        let DeclaredErrorRow { kind, class, meaning, .. } = row;
        push_line(&mut text, &format!("    /// {meaning}\n    {} = \"{kind}\", {class:?};", row.variant()));
    }
    text + "}\n"
}

pub(crate) fn protocol_table(rows: &[DeclaredErrorRow]) -> Result<String, String> {
    let mut text = format!("{RUST_NOTICE}// kind: http, rpc, exit, retry, comma, krux, acp\n\nerror_rows! {{\n");
    for row in rows {
        let http = constant_name(HTTP_STATUS_CODES, row.http, row)?;
        let rpc = constant_name(RPC_ERROR_CODES, row.rpc, row)?;
        let exits: Vec<(u8, &str)> = EXIT_CODES.iter().map(|(code, variant, _)| (*code, *variant)).collect();
        let exit = constant_name(&exits, row.exit, row)?;
        let [retry, comma, acp] = [&row.retry, &row.comma, &row.acp].map(|word| camel_case(word));
        let (kind, krux) = (row.variant(), &row.krux);
        push_line(&mut text, &format!("    {kind}: {http}, {rpc}, {exit}, {retry}, {comma}, {krux}, {acp};"));
    }
    Ok(text + "}\n")
}

fn constant_name<'a, N: PartialEq + std::fmt::Display>(
    published: &[(N, &'a str)],
    number: N,
    row: &DeclaredErrorRow,
) -> Result<&'a str, String> {
    let found = published.iter().find(|(known, _)| *known == number);
    found.map(|(_, name)| *name).ok_or_else(|| format!("errors.yaml: {}: {number} is not a published code", row.kind))
}

pub(crate) fn errors_page(rows: &[DeclaredErrorRow]) -> String {
    let mut page = format!("{NOTICE}\n\n# Errors\n\n");
    page.push_str(
        "Every error has the form `{\"error\": {\"kind\", \"detail\", \"hint\"?, …details}}`. Programs compare `kind`, people read \
         `detail`, and `hint` gives the next step.\nThe kind also determines the status code over HTTP, the [JSON-RPC \
         code](json-rpc.md) and the [exit code](exit-codes.md) of the command line.\n\n\
         | kind | cause | HTTP | JSON-RPC | exit | meaning |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let DeclaredErrorRow { kind, http, rpc, exit, .. } = row;
        let (cause, meaning) = (row.class.reference_text(), escape_cell(&row.meaning));
        push_line(&mut page, &format!("| `{kind}` | {cause} | {http} | {rpc} | {exit} | {meaning} |"));
    }
    page
}

pub(crate) fn exit_codes_page(rows: &[DeclaredErrorRow]) -> String {
    let mut page = format!("{NOTICE}\n\n# Exit codes\n\n");
    page.push_str(
        "Every `stead` command exits with one of these codes. With `--json` a failed operation also prints\n\
         `{\"error\": {\"kind\", \"detail\", \"hint\"?, …}}` on standard output; otherwise the error is printed on standard error.\n\
         [Errors](errors.md) explains the error kinds.\n\n\
         | code | meaning | error kinds |\n| --- | --- | --- |\n",
    );
    for (code, _, meaning) in EXIT_CODES {
        let kinds: Vec<String> =
            rows.iter().filter(|row| row.exit == *code).map(|row| format!("`{}`", row.kind)).collect();
        let kinds = if kinds.is_empty() { "–".to_owned() } else { kinds.join(", ") };
        push_line(&mut page, &format!("| {code} | {meaning} | {kinds} |"));
    }
    page.push_str(
        "\nA command does not fail if the reader of its standard output closes the pipe early. `stead mcp` exits with 0 when its\n\
         client closes standard input. `stead acp` exits with the exit code of its agent, or with 128 plus the signal number if a\n\
         signal ended the agent.\n",
    );
    page
}

fn camel_case(word: &str) -> String {
    let parts = word.split('_').map(|part| part.split_at(part.len().min(1)));
    parts.map(|(first, rest)| first.to_uppercase() + rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "- { kind: is_dir, name: IsDirectory, class: state_mismatch, http: 409, rpc: -32004, exit: 1, \
                       retry: after_others, comma: not_found, krux: IsADirectory, acp: internal_error, meaning: A directory. }\n";

    #[test]
    fn row_becomes_one_line_of_each_table() {
        let rows = parse(ROW).unwrap();
        let engine = "    /// A directory.\n    IsDirectory = \"is_dir\", StateMismatch;\n";
        assert!(engine_table(&rows).contains(engine), "{}", engine_table(&rows));
        let protocols =
            "IsDirectory: CONFLICT, CALL_FAILED, Failed, AfterOthers, NotFound, IsADirectory, InternalError;";
        assert!(protocol_table(&rows).unwrap().contains(protocols), "{:?}", protocol_table(&rows));
        assert!(errors_page(&rows).contains("| `is_dir` | conflicts with the current state | 409 | -32004 | 1 |"));
        assert!(exit_codes_page(&rows).contains("system failure | `is_dir` |"));
    }

    #[test]
    fn unpublished_numbers_and_repeated_kinds_are_rejected() {
        for (published, other) in [("409", "418"), ("-32004", "-32005"), ("exit: 1", "exit: 9")] {
            let rows = parse(&ROW.replace(published, other)).unwrap();
            assert!(protocol_table(&rows).unwrap_err().contains("is_dir"), "{other}");
        }
        assert!(parse(&ROW.repeat(2)).unwrap_err().contains("is_dir is declared twice"));
        assert!(parse(&ROW.replace("state_mismatch", "world")).is_err());
    }
}
