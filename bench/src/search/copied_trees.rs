//! Copies sources in several languages from cargo's registry, Python's standard library and npm packages, to search in
//! them. Ignore files of many kinds are added to the copies.

use crate::needs::SystemPackageInstallConsent;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{generated_tree::write_file, queries::QueryRng};

/// The most files that are copied into one tree.
const FILES_MAX: usize = 4_000;

pub(super) struct BenchSourceTreeCopy {
    pub(super) name: &'static str,
    pub(super) directory: PathBuf,
    pub(super) files: Vec<PathBuf>,
}

pub(super) fn copy_trees(place: &Path) -> Result<Vec<BenchSourceTreeCopy>, String> {
    let trees = [
        ("rust", crates_directory()?),
        ("python", python_library_directory()?),
        ("javascript", node_packages_directory()?),
    ];
    let mut sources = Vec::new();
    for (name, from) in trees {
        let directory = place.join(name);
        let mut files = Vec::new();
        copy_files(&from, &directory, &mut files)?;
        println!("parity: {name}: {} files of {}", files.len(), from.display());
        if files.is_empty() {
            return Err(format!("{} has no files", from.display()));
        }
        sources.push(BenchSourceTreeCopy { name, directory, files });
    }
    Ok(sources)
}

fn crates_directory() -> Result<PathBuf, String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let sources = home.ok_or("no cargo home directory")?.join("registry").join("src");
    sorted_entries(&sources)?.into_iter().next().ok_or_else(|| format!("{} is empty", sources.display()))
}

fn python_library_directory() -> Result<PathBuf, String> {
    let ask = "import sysconfig; print(sysconfig.get_paths()['stdlib'])";
    let python = crate::needs::require_python(SystemPackageInstallConsent::AskPerson)?;
    let output = Command::new(python).args(["-c", ask]).output().map_err(|error| error.to_string())?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

fn node_packages_directory() -> Result<PathBuf, String> {
    Ok(crate::needs::require_inspector(SystemPackageInstallConsent::AskPerson)?.join("node_modules"))
}

/// Copies regular files, directory by directory, sorted by name.
fn copy_files(from: &Path, to: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for path in sorted_entries(from)? {
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        let kind = fs::symlink_metadata(&path).map_err(failed)?.file_type();
        if files.len() >= FILES_MAX {
            return Ok(());
        }
        if kind.is_dir() {
            copy_files(&path, &target, files)?;
        } else if kind.is_file() {
            fs::copy(&path, &target).map_err(failed)?;
            files.push(target);
        }
    }
    Ok(())
}

fn sorted_entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let entries: Result<Vec<PathBuf>, _> =
        fs::read_dir(directory).map_err(failed)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(failed)?;
    entries.sort();
    Ok(entries)
}

impl BenchSourceTreeCopy {
    /// Adds ignore files to some directories, with rules that match files there.
    pub(super) fn plant_ignore_files(&self, chance: &mut QueryRng) -> Result<(), String> {
        write_file(&self.directory.join(".git/info/exclude"), "*.toml\n/CHANGELOG*\n")?;
        write_file(&self.directory.join(".gitignore"), "*.md\n!README.md\ntests/\n**/bench*/\n__pycache__\n*.pyc\n")?;
        for number in 0..IGNORE_FILES_PLANTED {
            let Some(file) = chance.pick(&self.files) else { break };
            let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else { continue };
            let (name, parent_name) = (name.to_string_lossy(), parent.file_name().unwrap_or_default());
            let parent_name = parent_name.to_string_lossy();
            let ending = name.rsplit_once('.').map_or("txt", |(_, ending)| ending);
            let (at, patterns) = match number % 6 {
                0 => (parent, format!("{name}\n")),
                1 => (parent, format!("*.{ending}\n!{name}\n")),
                2 => (parent.parent().unwrap_or(parent), format!("/{parent_name}/*\n!/{parent_name}/{name}\n")),
                3 => (parent.parent().unwrap_or(parent), format!("{parent_name}/\n")),
                4 => (parent, format!("[!{}]*\n", name.chars().next().unwrap_or('a'))),
                _ => (parent, format!("!*.{ending}\n# nothing\n\\#x\n{name}/\n")),
            };
            let file = if number % 4 == 0 { ".ignore" } else { ".gitignore" };
            write_file(&at.join(file), &patterns)?;
            if number % 16 == 7 {
                write_file(&at.join(".git/HEAD"), "ref: refs/heads/main\n")?;
            }
        }
        Ok(())
    }
}

impl BenchSourceTreeCopy {
    /// Adds a large file to the tree, which is the concatenation of many of its files.
    pub(super) fn plant_large_file(&self) -> Result<(), String> {
        let mut large = String::new();
        for text in self.files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
            // ripgrep shows matches before a NUL byte; that difference is listed elsewhere.
            if !text.contains('\0') {
                large.push_str(&text);
            }
            if large.len() > LARGE_BYTES_MIN {
                break;
            }
        }
        write_file(&self.directory.join("large-file.txt"), &large)
    }
}

/// The least size of the large file: the server does not read a file of this size as a whole.
const LARGE_BYTES_MIN: usize = 5 << 20;
/// The number of ignore files that are added below the root of the tree.
const IGNORE_FILES_PLANTED: usize = 64;
