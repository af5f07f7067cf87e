//! Reads the approver's secret from the terminal or a file. It is never an argument or an environment variable, which other
//! processes can read.

use std::{io::ErrorKind, path::Path};

use crate::{
    host_files,
    output::{CommandError, usage_error},
};

/// Random bytes of a generated secret.
const GENERATED_BYTES: usize = 20;

pub(crate) fn read_secret(file: Option<&Path>) -> Result<String, CommandError> {
    match file {
        Some(file) => read_secret_file(file),
        None => prompt_secret("approver's secret: "),
    }
}

/// Reads a new secret from a file, or twice from the terminal.
pub(crate) fn read_new_secret(file: Option<&Path>) -> Result<String, CommandError> {
    if let Some(file) = file {
        return read_secret_file(file);
    }
    let first = prompt_secret("new approver's secret: ")?;
    if first != prompt_secret("repeat it: ")? {
        return Err(usage_error("the secrets differ; nothing was set"));
    }
    Ok(first)
}

pub(crate) fn generate_secret() -> Result<String, CommandError> {
    let bytes: [u8; GENERATED_BYTES] = stead_disk::random_bytes()
        .map_err(|error| CommandError::System(format!("cannot read random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn prompt_secret(question: &str) -> Result<String, CommandError> {
    stead_disk::terminal::prompt_hidden(question).map_err(|error| {
        usage_error(if error.kind() == ErrorKind::Interrupted {
            "interrupted: nothing was set and nothing was answered"
        } else if error.kind() == ErrorKind::InvalidData {
            "the input is not UTF-8; nothing was set and nothing was answered"
        } else {
            "no terminal to enter the secret; pass --secret-file with a file that agents cannot read"
        })
    })
}

fn read_secret_file(file: &Path) -> Result<String, CommandError> {
    let text = host_files::read_text(file)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}
