//! Real sources in several languages, copied from what this machine has for building and testing the project: crates
//! from cargo's registry, Python's standard library, packages from npm. Ignore files of many kinds are put into the copies.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{queries::Chance, tree::put};

/// Most files of one tree; enough to be varied, few enough to be asked hundreds of times.
const FILES_MAX: usize = 4_000;

/// A copied tree.
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) directory: PathBuf,
    /// What was copied, in order.
    pub(super) files: Vec<PathBuf>,
}

/// Copies every tree.
pub(super) fn copied(place: &Path) -> Result<Vec<Source>, String> {
    let trees = [("rust", crates()?), ("python", python()?), ("javascript", packages()?)];
    let mut sources = Vec::new();
    for (name, from) in trees {
        let directory = place.join(name);
        let mut files = Vec::new();
        copy(&from, &directory, &mut files)?;
        println!("parity: {name}: {} files of {}", files.len(), from.display());
        if files.is_empty() {
            return Err(format!("{} has no files", from.display()));
        }
        sources.push(Source { name, directory, files });
    }
    Ok(sources)
}

fn crates() -> Result<PathBuf, String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let sources = home.ok_or("there is no cargo home")?.join("registry").join("src");
    entries(&sources)?.into_iter().next().ok_or_else(|| format!("{} is empty", sources.display()))
}

fn python() -> Result<PathBuf, String> {
    let ask = "import sysconfig; print(sysconfig.get_paths()['stdlib'])";
    let python = crate::needs::python()?;
    let said = Command::new(python).args(["-c", ask]).output().map_err(|error| error.to_string())?;
    Ok(PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
}

fn packages() -> Result<PathBuf, String> {
    Ok(crate::needs::inspector()?.join("node_modules"))
}

/// Copies regular files, directory by directory in the order of names.
fn copy(from: &Path, to: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(said)?;
    for path in entries(from)? {
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        let kind = fs::symlink_metadata(&path).map_err(said)?.file_type();
        if files.len() >= FILES_MAX {
            return Ok(());
        }
        if kind.is_dir() {
            copy(&path, &target, files)?;
        } else if kind.is_file() {
            fs::copy(&path, &target).map_err(said)?;
            files.push(target);
        }
    }
    Ok(())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let said = |error: std::io::Error| format!("{}: {error}", directory.display());
    let entries: Result<Vec<PathBuf>, _> =
        fs::read_dir(directory).map_err(said)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(said)?;
    entries.sort();
    Ok(entries)
}

impl Source {
    /// Puts ignore files where some of the files are, about their neighbours.
    pub(super) fn plant(&self, chance: &mut Chance) -> Result<(), String> {
        put(&self.directory.join(".git/info/exclude"), "*.toml\n/CHANGELOG*\n")?;
        put(
            &self.directory.join(".gitignore"),
            "*.md\n!README.md\ntests/\n**/bench*/\n__pycache__\n*.pyc\n",
        )?;
        for number in 0..PLANTED {
            let Some(file) = chance.pick(&self.files) else { break };
            let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else { continue };
            let (name, parent_name) = (name.to_string_lossy(), parent.file_name().unwrap_or_default());
            let parent_name = parent_name.to_string_lossy();
            let ending = name.rsplit_once('.').map_or("txt", |(_, ending)| ending);
            let (at, patterns) = match number % 6 {
                0 => (parent, format!("{name}\n")),
                1 => (parent, format!("*.{ending}\n!{name}\n")),
                2 => {
                    (parent.parent().unwrap_or(parent), format!("/{parent_name}/*\n!/{parent_name}/{name}\n"))
                }
                3 => (parent.parent().unwrap_or(parent), format!("{parent_name}/\n")),
                4 => (parent, format!("[!{}]*\n", name.chars().next().unwrap_or('a'))),
                _ => (parent, format!("!*.{ending}\n# nothing\n\\#x\n{name}/\n")),
            };
            let file = if number % 4 == 0 { ".ignore" } else { ".gitignore" };
            put(&at.join(file), &patterns)?;
            if number % 16 == 7 {
                put(&at.join(".git/HEAD"), "ref: refs/heads/main\n")?;
            }
        }
        Ok(())
    }
}

impl Source {
    /// Puts a large file beside the others: many of them, one behind the other.
    pub(super) fn plant_large(&self) -> Result<(), String> {
        let mut large = String::new();
        for text in self.files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
            // ripgrep shows what stands before a zero byte; that difference is listed elsewhere.
            if !text.contains('\0') {
                large.push_str(&text);
            }
            if large.len() > LARGE_BYTES_MIN {
                break;
            }
        }
        put(&self.directory.join("large-file.txt"), &large)
    }
}

/// Bytes of the large file; the server holds smaller ones whole.
const LARGE_BYTES_MIN: usize = 5 << 20;
/// Ignore files in one tree, besides those at its top.
const PLANTED: usize = 64;
