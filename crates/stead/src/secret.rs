//! Where the approver's secret comes from: a person's fingers, or a file that the person names. Never an argument or the
//! environment, which other processes can read.

use std::{io::ErrorKind, path::Path};

use crate::{
    outside,
    show::{Problem, usage},
};

/// Random bytes of a secret that is made here.
const MADE_BYTES: usize = 20;

/// The secret, typed or from a file.
pub(crate) fn given(file: Option<&Path>) -> Result<String, Problem> {
    match file {
        Some(file) => from_file(file),
        None => typed("approver's secret: "),
    }
}

/// A new secret: typed twice, from a file, or made here.
pub(crate) fn new(file: Option<&Path>) -> Result<String, Problem> {
    if let Some(file) = file {
        return from_file(file);
    }
    let first = typed("new approver's secret: ")?;
    if first != typed("the same again: ")? {
        return Err(usage("the two differ; nothing was set"));
    }
    Ok(first)
}

/// A secret that nobody has to think of.
pub(crate) fn made() -> Result<String, Problem> {
    let bytes: [u8; MADE_BYTES] =
        disk::random_bytes().map_err(|error| Problem::Outside(format!("no random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn typed(question: &str) -> Result<String, Problem> {
    disk::terminal::ask_hidden(question).map_err(|error| {
        usage(if error.kind() == ErrorKind::Interrupted {
            "interrupted: nothing was set and nothing was answered"
        } else if error.kind() == ErrorKind::InvalidData {
            "what was typed is not UTF-8; nothing was set and nothing was answered"
        } else {
            "there is no terminal to type the secret at; name a file that agents cannot read with --secret-file"
        })
    })
}

fn from_file(file: &Path) -> Result<String, Problem> {
    let text = outside::read(file)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}
