//! Creates the same files in the workspace of each server in the benchmark. Their text has quotes and tabs, which JSON
//! must escape.

use std::{fs, path::Path};

pub(crate) struct BenchWorkspaceFileSpec {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
}

pub(crate) const SMALL_FILE: BenchWorkspaceFileSpec = BenchWorkspaceFileSpec { name: "small.txt", bytes: 1 << 10 };
pub(crate) const MEDIUM_FILE: BenchWorkspaceFileSpec = BenchWorkspaceFileSpec { name: "middle.txt", bytes: 100 << 10 };
pub(crate) const LARGE_FILE: BenchWorkspaceFileSpec = BenchWorkspaceFileSpec { name: "large.txt", bytes: 10 << 20 };
/// The file that the write benchmark overwrites.
pub(crate) const WRITTEN_FILE: &str = "written.txt";
/// The directory for the listing benchmark, and the number of its entries.
pub(crate) const LARGE_DIRECTORY: (&str, usize) = ("many", 10_000);
/// The directory of small files for the benchmark of pipelined reads, and the number of files.
pub(crate) const FILE_POOL: (&str, usize) = ("pool", 1_000);

pub(crate) fn fill_workspace(workspace: &Path) -> Result<(), String> {
    for sized in [SMALL_FILE, MEDIUM_FILE, LARGE_FILE] {
        write_file(&workspace.join(sized.name), &generate_text(sized.bytes, 0))?;
    }
    write_file(&workspace.join(WRITTEN_FILE), &generate_text(SMALL_FILE.bytes, 0))?;
    make_directory(&workspace.join(LARGE_DIRECTORY.0))?;
    for number in 0..LARGE_DIRECTORY.1 {
        write_file(&workspace.join(LARGE_DIRECTORY.0).join(format!("entry-{number:05}.txt")), "")?;
    }
    make_directory(&workspace.join(FILE_POOL.0))?;
    for number in 0..FILE_POOL.1 {
        write_file(&workspace.join(pool_path(number)), &generate_text(SMALL_FILE.bytes, number))?;
    }
    Ok(())
}

pub(crate) fn pool_path(number: usize) -> String {
    format!("{}/file-{number:04}.txt", FILE_POOL.0)
}

/// Generates a text of `bytes` bytes that depends on the seed.
pub(crate) fn generate_text(bytes: usize, seed: usize) -> String {
    let mut text = String::with_capacity(bytes + 128);
    let mut line = seed;
    while text.len() < bytes {
        text.push_str(&format!("{line:>8}\tlet place = \"{seed}/{}\"; // one line of many\n", line * 7919));
        line += 1;
    }
    text.truncate(bytes);
    text
}

fn make_directory(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

fn write_file(path: &Path, content: &str) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_text_has_its_length_and_seed() {
        assert_eq!(generate_text(1000, 1).len(), 1000);
        assert_eq!(generate_text(1000, 1), generate_text(1000, 1));
        assert_ne!(generate_text(1000, 1), generate_text(1000, 2));
    }
}
