//! Shell completions and manual pages, generated from the clap command line.

use std::path::Path;

use clap_complete::Shell;
use stead_protocols::definition::DialectDefinition;

use crate::{
    cli, host_files,
    output::{self, CommandExit, CommandResult},
};

pub(crate) fn print_completions(definition: &DialectDefinition, shell: Shell) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::build_command_line(definition), "stead", &mut script);
    output::print_bytes(&script)?;
    Ok(CommandExit::Success)
}

pub(crate) fn print_or_write_man_pages(definition: &DialectDefinition, directory: Option<&Path>) -> CommandResult {
    let command = cli::build_command_line(definition);
    match directory {
        Some(directory) => {
            clap_mangen::generate_to(command, directory).map_err(|error| host_files::file_error(directory, &error))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            output::print_bytes(&page)?;
        }
    }
    Ok(CommandExit::Success)
}
