//! Downloads packages for the ranking benchmark: npm packages with Java sources, Debian packages of Go sources, and
//! Debian source packages with patches.
//!
//! Each package is downloaded once, into `tools/rank` in the target directory. The installed packages and package lists
//! of the system stay unchanged.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const APT_SOURCES_DIRECTORY: &str = "/etc/apt/sources.list.d";

fn download_directory(part: &str) -> Result<PathBuf, String> {
    let home = crate::needs::target_directory().join("tools").join("rank").join(part);
    fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    Ok(home)
}

/// The directory of an npm package, without its dependencies.
pub(super) fn fetch_npm_package(name: &str, version: &str) -> Result<PathBuf, String> {
    // One directory per package, because npm removes packages that are not in the manifest.
    let home = download_directory(&format!("js/{name}"))?;
    let directory = home.join("node_modules").join(name);
    if !directory.is_dir() {
        let wanted = format!("{name}@{version}");
        println!("rank: fetching {wanted} from npm into {}", home.display());
        let flags = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save"];
        let mut get = Command::new("npm");
        get.args(["install", "--legacy-peer-deps", "--prefix"]).arg(&home).args(flags).arg(&wanted);
        crate::run_program(&mut get).map_err(|failure| format!("{wanted} cannot be installed: {failure}"))?;
    }
    Ok(directory)
}

/// The directory of an unpacked Debian package.
pub(super) fn fetch_debian_package(name: &str) -> Result<PathBuf, String> {
    let home = download_directory("deb")?;
    let directory = home.join(name);
    if !directory.is_dir() {
        println!("rank: fetching {name} with apt-get into {}", home.display());
        run_program(Command::new("apt-get").args(["download", "-qq", name]), &home)?;
        let archive = newest_file(&home, &format!("{name}_"), ".deb")?;
        run_program(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&directory), &home)?;
    }
    Ok(directory)
}

/// The directory of a Debian source package, with its patches not applied.
pub(super) fn fetch_debian_source(name: &str) -> Result<PathBuf, String> {
    let home = download_directory("source")?;
    let directory = home.join(name);
    if !directory.is_dir() {
        println!("rank: fetching the sources of {name} with apt-get into {}", home.display());
        let options = source_lists(&home)?;
        let arguments = ["source", "--download-only", "-qq", name];
        run_program(Command::new("apt-get").args(&options).args(arguments), &home)?;
        let described = newest_file(&home, &format!("{name}_"), ".dsc")?;
        let unpack = ["--no-check", "--skip-patches", "-x"];
        let mut unpacked = Command::new("dpkg-source");
        run_program(unpacked.args(unpack).arg(described).arg(&directory), &home)?;
    }
    Ok(directory)
}

/// The apt-get options for a private list of Debian source packages, which is created if needed.
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
        fs::write(&file, to_source_lists(&system_source_lists())).map_err(explain)?;
        run_program(Command::new("apt-get").args(&options).args(["update", "-qq"]), home)?;
    }
    Ok(options)
}

/// The content of all apt source files (`*.sources`) of the system.
fn system_source_lists() -> String {
    let mut files: Vec<PathBuf> =
        fs::read_dir(APT_SOURCES_DIRECTORY).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "sources"));
    files.sort();
    let texts: Vec<String> = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    texts.join("\n\n")
}

/// Converts apt sources of binary packages to sources of source packages; only those signed with Debian's own key.
fn to_source_lists(listed: &str) -> String {
    let paragraphs = listed.split("\n\n").filter(|paragraph| paragraph.contains("debian-archive-keyring"));
    let turned = paragraphs.map(|paragraph| paragraph.replace("Types: deb\n", "Types: deb-src\n"));
    turned.collect::<Vec<_>>().join("\n\n")
}

/// The file in a directory whose name has the given start and end; the last by name if there are several.
fn newest_file(directory: &Path, begin: &str, end: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begin) && name.ends_with(end)
    };
    let newest = entries.flatten().map(|entry| entry.path()).filter(fits).max();
    newest.ok_or_else(|| format!("{begin}*{end} was fetched but cannot be found"))
}

fn run_program(command: &mut Command, directory: &Path) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.current_dir(directory).status();
    let status = status.map_err(|error| format!("{name} is needed, and of Debian: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_lists_become_source_lists() {
        let ours = "Types: deb\nSuites: stable\nSigned-By: debian-archive-keyring.gpg";
        let listed = format!("{ours}\n\nTypes: deb\nSuites: other\n");
        assert_eq!(to_source_lists(&listed), ours.replace("Types: deb\n", "Types: deb-src\n"));
    }
}
