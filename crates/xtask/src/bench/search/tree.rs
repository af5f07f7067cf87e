//! The tree that search is measured on: packages with source files, their dependencies in directories that ignore files
//! leave out, and one large build directory. The same for every run.

use std::{fs, path::Path};

use super::queries::Chance;

/// In very few files.
pub(super) const RARE: &str = "zebraQuartz";
/// In every fifth file, in one line of twenty.
pub(super) const FREQUENT: &str = "frequentNeedle";
/// A name, and how many files have it that no ignore file leaves out.
pub(super) const NAME: &str = "rare-*.rs";
pub(super) const NAMED: u64 = 3;

const SEED: u64 = 7;
const PACKAGES: u64 = 40;
/// Different texts; files repeat them.
const TEXTS: u64 = 400;
/// Shares of the files, in percent: sources, dependencies; the rest is built.
const SOURCES: usize = 60;
const DEPENDENCIES: usize = 35;
const ENDINGS: &[&str] = &["rs", "ts", "py", "go", "md"];
const WORDS: &[&str] = &[
    "alpha", "buffer", "stream", "handle", "parse", "render", "widget", "config", "value", "index", "cache",
    "queue", "worker", "thread", "result", "error", "option", "string", "number", "object", "method",
    "class", "static", "public", "private", "return", "import", "export", "const", "function", "async",
    "yield",
];

/// Makes the tree.
pub(super) fn make(top: &Path, files: usize) -> Result<(), String> {
    let mut chance = Chance::seeded(SEED);
    let texts: Vec<String> = (0..TEXTS).map(|number| text(&mut chance, number)).collect();
    put(&top.join(".git/info/exclude"), "*.bak\n")?;
    put(&top.join(".gitignore"), "node_modules/\ntarget/\n*.log\n!keep.log\n/dist\n")?;
    let (sources, dependencies) = (files * SOURCES / 100, files * DEPENDENCIES / 100);
    for number in 0..files {
        let package = format!("package-{}", number as u64 % PACKAGES);
        let group = number / 480;
        let directory = if number < sources {
            format!("{package}/src/module-{group}")
        } else if number < sources + dependencies {
            format!("{package}/node_modules/dependency-{group}/lib")
        } else {
            "target/debug/deps".to_owned()
        };
        let ending = ENDINGS[number % ENDINGS.len()];
        let content = chance.pick(&texts).map_or("", String::as_str);
        put(&top.join(directory).join(format!("file-{number}.{ending}")), content)?;
    }
    for number in 0..PACKAGES {
        put(&top.join(format!("package-{number}/.gitignore")), "*.tmp\nbuild/\n")?;
    }
    for number in 0..NAMED {
        let path = top.join(format!("package-{number}/src/rare-{number}.rs"));
        put(&path, &format!("{}let {RARE} = {number};\n", texts[0]))?;
    }
    Ok(())
}

fn text(chance: &mut Chance, number: u64) -> String {
    let mut text = String::new();
    for _ in 0..10 + chance.below(110) {
        for _ in 0..3 + chance.below(8) {
            text.push_str(chance.pick(WORDS).copied().unwrap_or_default());
            text.push(' ');
        }
        if number.is_multiple_of(5) && chance.below(20) == 0 {
            text.push_str(FREQUENT);
        }
        text.push('\n');
    }
    text
}

pub(super) fn put(path: &Path, content: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    match fs::write(path, content) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(path)).map_err(said)?;
            fs::write(path, content).map_err(said)
        }
        other => other.map_err(said),
    }
}
