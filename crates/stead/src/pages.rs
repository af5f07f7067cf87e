//! Completion scripts and manual pages, made from the same command line that runs.

use std::path::Path;

use clap_complete::Shell;
use faces::definition::Definition;

use crate::{
    cli, outside,
    show::{self, Exit, Outcome},
};

/// Prints the completion script of a shell.
pub(crate) fn completions(definition: &Definition, shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(definition), "stead", &mut script);
    show::bytes(&script)?;
    Ok(Exit::Fine)
}

/// Prints the manual page, or writes one page per command into a directory.
pub(crate) fn man(definition: &Definition, directory: Option<&Path>) -> Outcome {
    let command = cli::command(definition);
    match directory {
        Some(directory) => {
            clap_mangen::generate_to(command, directory)
                .map_err(|error| outside::problem(directory, &error))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            show::bytes(&page)?;
        }
    }
    Ok(Exit::Fine)
}
