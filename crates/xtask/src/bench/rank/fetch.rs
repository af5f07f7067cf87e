//! What ranking is asked about and no build brings along: packages of npm with Java in them, Debian's packages of Go
//! sources, and Debian's source packages, whose patches are commits with a subject line.
//!
//! Owns `tools/rank` in the target directory. Promises to fetch a thing once, to say what it fetches, and to leave the
//! system's own packages and lists alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Where a system says which packages there are.
const LISTS: &str = "/etc/apt/sources.list.d";

fn home(part: &str) -> Result<PathBuf, String> {
    let home = crate::needs::target_directory().join("tools").join("rank").join(part);
    fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    Ok(home)
}

/// The directory of a package of npm, without what it needs to run.
pub(super) fn npm(name: &str, version: &str) -> Result<PathBuf, String> {
    // One place each: what is installed later takes away what nobody wrote down.
    let home = home(&format!("js/{name}"))?;
    let directory = home.join("node_modules").join(name);
    if !directory.is_dir() {
        let wanted = format!("{name}@{version}");
        println!("rank: fetching {wanted} from npm into {}", home.display());
        let flags = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save"];
        let mut get = Command::new("npm");
        get.args(["install", "--legacy-peer-deps", "--prefix"]).arg(&home).args(flags).arg(&wanted);
        crate::succeed(&mut get).map_err(|failure| format!("{wanted} cannot be had: {failure}"))?;
    }
    Ok(directory)
}

/// The directory that a package of Debian unpacks to.
pub(super) fn debian(name: &str) -> Result<PathBuf, String> {
    let home = home("deb")?;
    let directory = home.join(name);
    if !directory.is_dir() {
        println!("rank: fetching {name} with apt-get into {}", home.display());
        succeed(Command::new("apt-get").args(["download", "-qq", name]), &home)?;
        let archive = newest(&home, &format!("{name}_"), ".deb")?;
        succeed(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&directory), &home)?;
    }
    Ok(directory)
}

/// The directory of a source package of Debian, its patches beside it and not applied.
pub(super) fn source(name: &str) -> Result<PathBuf, String> {
    let home = home("source")?;
    let directory = home.join(name);
    if !directory.is_dir() {
        println!("rank: fetching the sources of {name} with apt-get into {}", home.display());
        let options = source_lists(&home)?;
        let asked = ["source", "--download-only", "-qq", name];
        succeed(Command::new("apt-get").args(&options).args(asked), &home)?;
        let described = newest(&home, &format!("{name}_"), ".dsc")?;
        let unpack = ["--no-check", "--skip-patches", "-x"];
        let mut unpacked = Command::new("dpkg-source");
        succeed(unpacked.args(unpack).arg(described).arg(&directory), &home)?;
    }
    Ok(directory)
}

/// How apt-get is told to look for sources in lists of our own, which are made if need be.
fn source_lists(home: &Path) -> Result<Vec<String>, String> {
    let lists = home.join("lists");
    let file = home.join("debian.sources");
    let options: Vec<String> = [
        format!("Dir::Etc::sourcelist={}", file.display()),
        "Dir::Etc::sourceparts=-".to_owned(),
        format!("Dir::State::lists={}", lists.display()),
    ]
    .into_iter()
    .flat_map(|option| ["-o".to_owned(), option])
    .collect();
    if !file.is_file() {
        let explain = |error: std::io::Error| format!("{}: {error}", file.display());
        fs::create_dir_all(lists.join("partial")).map_err(explain)?;
        fs::write(&file, of_sources(&listed())).map_err(explain)?;
        succeed(Command::new("apt-get").args(&options).args(["update", "-qq"]), home)?;
    }
    Ok(options)
}

/// Every list of packages that the system has and that is written in paragraphs.
fn listed() -> String {
    let mut files: Vec<PathBuf> =
        fs::read_dir(LISTS).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "sources"));
    files.sort();
    let texts: Vec<String> = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    texts.join("\n\n")
}

/// The same lists, of sources; only those of Debian itself, which its key vouches for.
fn of_sources(listed: &str) -> String {
    let paragraphs = listed.split("\n\n").filter(|paragraph| paragraph.contains("debian-archive-keyring"));
    let turned = paragraphs.map(|paragraph| paragraph.replace("Types: deb\n", "Types: deb-src\n"));
    turned.collect::<Vec<_>>().join("\n\n")
}

/// The last file, by name, that begins and ends so.
fn newest(directory: &Path, begin: &str, end: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begin) && name.ends_with(end)
    };
    let newest = entries.flatten().map(|entry| entry.path()).filter(fits).max();
    newest.ok_or_else(|| format!("{begin}*{end} was fetched but cannot be found"))
}

fn succeed(command: &mut Command, directory: &Path) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.current_dir(directory).status();
    let status = status.map_err(|error| format!("{name} is needed, and of Debian: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_packages_become_lists_of_sources() {
        let ours = "Types: deb\nSuites: stable\nSigned-By: debian-archive-keyring.gpg";
        let listed = format!("{ours}\n\nTypes: deb\nSuites: other\n");
        assert_eq!(of_sources(&listed), ours.replace("Types: deb\n", "Types: deb-src\n"));
    }
}
